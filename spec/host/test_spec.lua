-- moonloop test: which tests it finds, which modules they and their scripts find, and its exit codes.
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"

local UTIL = "return { answer = function() return 42 end }"

local SCRIPT = [[
local moonloop = require "moonloop"
local util = require "util"
return moonloop.controller {
  name = "copier",
  reconciles = moonloop.kind("v1", "ConfigMap"),
  owns = { moonloop.kind("v1", "Secret") },
  reconcile = function(map, ctx)
    ctx.ensure {
      apiVersion = "v1", kind = "Secret", metadata = { name = map.metadata.name },
      stringData = { answer = tostring(util.answer()) },
    }
  end,
}
]]

local TEST = [[
local moonloop = require "moonloop"
local testing = require "moonloop.testing"
local util = require "util"
it("copies", function()
  local world = testing.world {}
  world.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a" } }
  assert.equal(42, util.answer())
  assert.is_table(world.get(moonloop.kind("v1", "Secret"), "a"))
end)
]]

local function folder(files)
  local path = shell.folder "test"
  for name, text in pairs(files) do
    shell.write(path .. "/" .. name, text)
  end
  return path
end


local function test(...)
  return host.command { "test", "--output", "plainTerminal", ... }
end


describe("moonloop test", function()
  it("lets a test, and its script, require a module of their folder", function()
    local result = test(folder {
      ["copier.lua"] = SCRIPT, ["copier_test.lua"] = TEST, ["util.lua"] = UTIL, ["broken.lua"] = "(",
    })
    assert.same({ 0, "" }, { result.code, result.err }, result.out)
    assert.matches("1 success / 0 failures / 0 errors", result.out)
  end)

  it("gives each test the module of its own folder", function()
    local paths = {}
    for i = 1, 2 do
      paths[i] = folder {
        ["a_test.lua"] = ('it("is %d", function() assert.equal(%d, require "which") end)'):format(i, i),
        ["which.lua"] = "return " .. i,
      }
    end
    local result = test(table.unpack(paths))
    assert.equal(0, result.code, result.out .. result.err)
  end)

  it("names the line of a module that does not compile, and the module that is not there", function()
    local result = test(folder { ["a_test.lua"] = 'require "util"', ["util.lua"] = "local x =" })
    assert.equal(1, result.code)
    assert.matches("util%.lua:1: unexpected symbol", result.out)
    result = test(folder { ["a_test.lua"] = 'require "nowhere"' })
    assert.equal(1, result.code)
    assert.matches("module 'nowhere' not found", result.out)
  end)

  it("fails for a script that is not there, and says so", function()
    local path = folder { ["a_test.lua"] = 'it("is", function() require("moonloop.testing").world {} end)' }
    local result = test(path)
    assert.equal(1, result.code)
    assert.matches("a%.lua: No such file or directory", result.out)
  end)

  describe("without a test to run fails", function()
    local some = { ["copier.lua"] = SCRIPT, ["util.lua"] = UTIL, ["copier_test.lua"] = TEST }

    it("for a folder without tests", function()
      for _, path in ipairs { folder {}, folder { ["copier.lua"] = SCRIPT } } do
        local result = test(folder(some), path)
        assert.same({ 1, "" }, { result.code, result.out })
        local why = "moonloop test: %s: no test in it; tests are in files whose names end in _test.lua\n"
        assert.equal(why:format(path), result.err)
      end
    end)

    it("for a file without tests", function()
      local path = folder { ["a_test.lua"] = "local x = 1" } .. "/a_test.lua"
      local result = test(path)
      assert.equal(1, result.code)
      assert.matches("a_test%.lua: no test in it", result.err)
    end)

    it("for a filter that no test passes", function()
      local path = folder(some)
      local result = test(path, "--filter", "copies", "--filter", "nothing")
      assert.equal(0, result.code, result.err)
      result = test(path, "--filter", "nothing", "--filter", "none")
      assert.equal(1, result.code)
      assert.equal("moonloop test: no test matches --filter nothing --filter none\n", result.err)
    end)

    it("for a path that is not there", function()
      local result = test "/nonexistent"
      assert.equal(2, result.code)
      assert.equal("moonloop test: /nonexistent: No such file or directory\n", result.err)
    end)
  end)
end)
