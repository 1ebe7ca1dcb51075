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

-- Calls that are wrong, by what is reported.
local WRONG = {
  ['world.get("Pod", "a")'] = 'world.get(Kind, name [, namespace]): kind: expected a kind such as '
    .. 'moonloop.kind("v1", "Pod"), got "Pod"',
  ["world.get(Pod)"] = "world.get(Kind, name [, namespace]): name: expected a string, got nothing",
  ["world:settle()"] = "world.settle(): call it with a dot, not with a colon",
  ["world.now(1)"] = "world.now(): expected at most 0 arguments, got 1",
  ['world.finishpod "a"'] = "world has no 'finishpod'; did you mean 'finish_pod'?",
  ['world.finish_pod("a", {})'] = 'world.finish_pod(name [, how [, namespace]]): how: expected "Succeeded", "Failed" '
    .. "or an integer, got a table",
  ['world.expect(Pod, "a")'] = "world.expect(Kind, name, fields [, namespace]): fields: expected a table or false, "
    .. "got nothing",
  ['world.expect(Pod, "a", {})'] = "Pod a should be there, and is not",
  ['world.fault("conflict", { verbs = "get" })'] = "world.fault(name [, where]): unknown field 'verbs'; did you mean "
    .. "'verb'?",
  ["testing.world { pod = 1 }"] = "testing.world(options): unknown field 'pod'; did you mean 'pods'?",
  ['testing.world { now = "noon" }'] = "testing.world(options): now: expected an instant like 2006-01-02T15:04:05Z",
  ['world.list(moonloop.kind("x/v1", "Y"))'] = "no kind Y in x/v1; are its CustomResourceDefinitions among the world's "
    .. "crds?",
  ["moonloop.controller {}"] = "moonloop in a test has no 'controller'; it has array, is_null, kind, null",
  ['moonloop.kind("v1")'] = "moonloop.kind(apiVersion, kind): expected an API version and a kind, as in "
    .. 'moonloop.kind("apps/v1", "Deployment")',
}

local WRONG_TEST = [[
local moonloop, testing = require "moonloop", require "moonloop.testing"
local Pod = moonloop.kind("v1", "Pod")
local world
before_each(function() world = testing.world {} end)
]]

-- A script with lines that can run and lines that cannot, a kind with fields, and a test that leaves some out.
local COVERED = [[
local moonloop = require "moonloop"
local Thing = moonloop.kind("example.com/v1", "Thing")

local function unused(x)
  if x then
    x = x + 1
  end
  return x
end

local function forever(n)
  while true do
    n = n + 1
  end
end

return moonloop.controller {
  name = "covered",
  reconciles = Thing,
  reconcile = function(thing)
    for _ = 1, 2 do
      if thing.spec.mode == "odd" then
        unused(
          1
        )
      elseif thing.spec.mode == "ever" then
        forever(1)
      end
    end
  end,
}
]]

local COVERED_CRD = [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              mode: {type: string}
              size: {type: object, properties: {x: {type: integer}}}
              users: {type: array, items: {type: object, properties: {name: {type: string}, role: {type: string}}}}
]]

local COVERED_TEST = [[
local testing = require "moonloop.testing"
it("runs", function()
  local world = testing.world { scripts = "%s" }
  world.apply { apiVersion = "example.com/v1", kind = "Thing", metadata = { name = "a" }, spec = %s }
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

  it("reports a wrong call at the line of the test, with what to do", function()
    local lines, line = {}, 5
    for call in pairs(WRONG) do
      lines[#lines + 1] = ('it("%d", function()\n  %s\nend)\n'):format(#lines + 1, call)
    end
    local path = folder { ["util.lua"] = UTIL, ["copier.lua"] = SCRIPT, ["copier_test.lua"] = WRONG_TEST
      .. table.concat(lines) }
    local result = test(path)
    assert.equal(1, result.code)
    for _, text in ipairs(lines) do
      local why = WRONG[text:match "\n  ([^\n]*)"]
      assert.truthy(result.out:find(("/copier_test.lua:%d: %s\n"):format(line + 1, why), 1, true), result.out)
      line = line + 3
    end
  end)

  it("reports a wrong call of a helper there, and of a tail call at the test's first line", function()
    local path = folder { ["util.lua"] = UTIL, ["copier.lua"] = SCRIPT, ["copier_test.lua"] = WRONG_TEST
      .. 'local function helper() world.get(1, "a") end\nit("a", function() helper() end)\n'
      .. 'it("b", function()\n  return world.get(2, "a")\nend)\n' }
    local result = test(path)
    assert.matches("/copier_test%.lua:5: world%.get.- got 1\n", result.out)
    assert.matches("/copier_test%.lua:7: world%.get.- got 2\n", result.out)
  end)

  describe("when a test ends the process", function()
    local ABORT = 'package.loadlib("libc.so.6", "abort")()'

    it("names it, lets it fail, and tells the others' results", function()
      local path = folder {
        ["a_test.lua"] = ([[
          it("is well", function() end)
          for i = 1, 2 do it("twice", function() if i == 2 then %s end end) end

          it("fails", function() error "told" end)
        ]]):format(ABORT),
        ["b_test.lua"] = 'it("is well, too", function() end)',
      }
      local result = test(path)
      assert.equal(1, result.code)
      assert.matches("moonloop test: %S+/a_test%.lua:2: twice: it ended the process of the tests: signal 6 "
        .. "%(Aborted%); the others run again\n", result.err)
      assert.matches("3 successes / 0 failures / 2 errors", result.out)
      assert.matches("a_test%.lua:2: it ended the process of the tests: signal 6", result.out)
      assert.matches("a_test%.lua:4: told", result.out)
    end)

    it("names the file where no test runs", function()
      local path = folder {
        ["a_test.lua"] = ABORT,
        ["b_test.lua"] = ([[
          local begun = 0
          before_each(function() begun = begun + 1; if begun == 2 then %s end end)
          it("first", function() end)
          it("second", function() end)
        ]]):format(ABORT),
        ["c_test.lua"] = 'it("is well", function() end)',
      }
      local result = test(path)
      assert.equal(1, result.code)
      assert.matches("/a_test%.lua, before its first test: outside of a test: it ended", result.err)
      assert.matches('/b_test%.lua, after or before "first": outside of a test: it ended', result.err)
      assert.matches("1 success / 0 failures / 2 errors", result.out)
      assert.matches("a_test%.lua:1: it ended the process of the tests", result.out)
    end)

    it("ends after some of them", function()
      local tests = {}
      for i = 1, 12 do
        tests[i] = ('it("t%d", function() %s end)\n'):format(i, ABORT)
      end
      local result = test(folder { ["a_test.lua"] = table.concat(tests) })
      assert.equal(1, result.code)
      assert.matches("a_test%.lua:9: t9: it ended the process of the tests: signal 6 %(Aborted%); it is the last of "
        .. "9\n$", result.err)
    end)

    it("names a test that does not end", function()
      local path = folder {
        ["a_test.lua"] = 'it("loops", function() while true do end end)\nit("is well", function() end)',
      }
      local result = test(path, "--timeout", "4s")
      assert.equal(1, result.code)
      assert.matches("a_test%.lua:1: loops: it has not ended after 4 s %(%-%-timeout%); the others run again",
        result.err)
      assert.matches("1 success / 0 failures / 1 error", result.out)
    end)

    it("does not take os.exit for its end", function()
      local result = test(folder { ["a_test.lua"] = 'it("exits", function()\n  os.exit(0)\nend)' })
      assert.same({ 1, "" }, { result.code, result.err })
      assert.matches("a_test%.lua:2: it calls os%.exit", result.out)
    end)
  end)

  describe("--coverage", function()
    local path

    local function cover(spec, ...)
      path = folder { ["covered.lua"] = COVERED, ["crds.yaml"] = "" }
      shell.must("mkdir " .. path .. "/crds")
      shell.write(path .. "/crds/thing.yaml", COVERED_CRD)
      shell.write(path .. "/covered_test.lua", COVERED_TEST:format(path .. "/covered.lua", spec))
      return test(path, ...)
    end

    it("shows the lines that ran, of those that can, and the fields that no test set", function()
      local result = cover('{ mode = "x", users = { { name = "n" } } }', "--coverage")
      assert.same({ 0, "" }, { result.code, result.err }, result.out)
      local rows = result.out:match "\n(file .*)$"
      local expected = ([[
file  lines     run       %  not run
F        18      11    61.1  5-8, 13, 23-25, 27
all      18      11    61.1
fields of Thing that no test set: spec.size, spec.users[].role
]]):gsub("[ ]+", " ")
      assert.equal(expected, (rows:gsub(path:gsub("%p", "%%%0") .. "/covered.lua", "F"):gsub("[ ]+", " ")))
    end)

    it("writes lcov's form to a file", function()
      local file = shell.folder "lcov" .. "/lcov.info"
      local result = cover('{ mode = "odd", size = { x = 1 }, users = { { role = "r", name = "n" } } }',
        "--coverage=" .. file)
      assert.equal(0, result.code, result.err)
      assert.is_nil(result.out:find("no test set", 1, true))
      local text = shell.must("cat " .. file)
      assert.matches("^TN:\nSF:" .. path:gsub("%p", "%%%0") .. "/covered%.lua\nDA:1,1\n", text)
      assert.matches("\nDA:6,2\nDA:8,2\n.*\nDA:13,0\n.*\nLF:18\nLH:15\nend_of_record\n$", text)
    end)

    it("keeps files of one name apart, and goes with other forms of output", function()
      local paths = {}
      for i = 1, 2 do
        paths[i] = folder {
          ["a.lua"] = ('local moonloop = require "moonloop"\n%sreturn moonloop.controller {\n  name = "a", '
            .. 'reconciles = moonloop.kind("v1", "ConfigMap"), reconcile = function() end,\n}\n')
            :format(i == 1 and "" or "local _ = moonloop\n"),
          ["a_test.lua"] = 'it("is", function() require("moonloop.testing").world {} end)',
        }
      end
      local result = host.command { "test", "--output", "TAP", "--coverage", paths[1], paths[2] }
      assert.equal(0, result.code, result.err)
      assert.is_nil(result.out:find("not run", 1, true))
      for i, path_of in ipairs(paths) do
        assert.matches("\n" .. path_of:gsub("%p", "%%%0") .. ("/a%%.lua +%d +%d +100"):format(i + 2, i + 2), result.err)
      end
    end)

    it("leaves the limit of CPU time to scripts, and notes what ran before", function()
      local result = cover('{ mode = "ever" }', "--coverage")
      assert.equal(0, result.code, result.err)
      assert.matches("/covered%.lua .* 5%-8, 23%-25\n", result.out)
    end)

    it("says that its file cannot be written", function()
      local result = cover("{}", "--coverage=/nonexistent/lcov")
      assert.equal(1, result.code)
      assert.equal("moonloop test: --coverage=/nonexistent/lcov: /nonexistent/lcov: No such file or directory\n",
        result.err)
    end)

    it("is left out where nobody asks", function()
      assert.is_nil(cover("{}").out:find("not run", 1, true))
    end)
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
