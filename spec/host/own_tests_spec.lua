-- The tests beside a script, which a new version has to pass before it goes live: the binary with its processes, in
-- `moonloop dev` and in `moonloop run`. test_operator_own_tests has which versions are tested.
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local MAPS = "/api/v1/namespaces/default/configmaps"

-- Copies a word of a ConfigMap, upper case, into another one.
local SCRIPT = [[
local moonloop = require "moonloop"
local ConfigMap = moonloop.kind("v1", "ConfigMap", { labels = "copy=yes" })

return moonloop.controller {
  name = "copy",
  reconciles = ConfigMap,
  owns = { moonloop.kind("v1", "Secret") },
  reconcile = function(map)
    return { children = { {
      apiVersion = "v1", kind = "Secret", metadata = { name = map.metadata.name },
      stringData = { word = map.data.word:upper() },
    } } }
  end,
}
]]
local LOWER = SCRIPT:gsub(":upper%(%)", ":lower()")

local TEST = [[
local testing = require "moonloop.testing"
local Secret = { apiVersion = "v1", kind = "Secret" }

describe("copy", function()
  it("makes words large", function()
    local world = testing.world()
    world.apply {
      apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a", labels = { copy = "yes" } },
      data = { word = "one" },
    }
    world.settle()
    assert.equal("T05F", (world.get(Secret, "a").data.word):sub(1, 4))
  end)
  %s
end)
]]
local GOOD = TEST:format("")

-- A test that is at fault itself: it begins in line 14.
local function bad(body)
  return TEST:format(('it("misbehaves", function()\n%s\nend)'):format(body))
end


describe("A script's own tests", function()
  local folder, cluster

  after_each(host.stop_all)

  local function put(name, text)
    shell.save(folder .. "/" .. name, text)
  end

  local function processes(name)
    local count = 0
    for line in shell.must("ps -eo pid,ppid,comm"):gmatch "[^\n]+" do
      count = count + (line:find(name, 1, true) and 1 or 0)
    end
    return count
  end

  local function folders()
    return (shell.must("ls -d " .. cluster.tmp .. "/moonloop-tests-* 2>/dev/null | wc -l")):match "%d+"
  end

  describe("in moonloop dev", function()
    before_each(function()
      folder = shell.folder "own" .. "/scripts"
      shell.must("mkdir -p " .. folder)
      put("copy.lua", SCRIPT)
      put("copy_test.lua", GOOD)
      cluster = dev.start { "--pods", "none", "--scripts", folder }
      cluster:till_said "script is live"
    end)

    local function refused_with(text)
      cluster:till_said("script refused; the last good version keeps running [^\n]*" .. text, 15)
    end

    it("let a good version go live, and refuse a bad one with their name and line", function()
      put("copy.lua", SCRIPT .. "-- edited\n")
      cluster:till_said("the new version passes its own tests", 30)
      cluster:till_said "new version is live"
      put("copy.lua", LOWER)
      refused_with "copy_test%.lua:12: copy makes words large: "
      cluster:must("POST", MAPS, {
        apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a", labels = { copy = "yes" } },
        data = { word = "one" },
      })
      local word = wait.till("the Secret", 10, function()
        local secret = cluster:get "/api/v1/namespaces/default/secrets/a"
        return secret and secret.data.word
      end)
      assert.equal("T05F", word:sub(1, 4)) -- "ONE"
      put("copy_test.lua", (GOOD:gsub("T05F", "b25l")))
      cluster:till_said("new version is live.*new version is live", 30)
      assert.equal("0", folders())
    end)

    it("are refused where they are bad themselves, and harm nobody", function()
      local cases = {
        { "local x = = 1", "copy_test%.lua:15: unexpected symbol near '='" },
        { "while true do end", "copy_test%.lua:14: copy misbehaves: all tests of a version have %d+ s of CPU" },
        { 'package.loadlib("libc.so.6", "abort")()', "copy_test%.lua:14: copy misbehaves: it ends its process" },
        { "os.exit(0)", "copy_test%.lua:15: copy misbehaves: it calls os%.exit" },
        {
          'for _ = 1, 100 do io.write(("x"):rep(1000000)) end error "told"',
          "copy_test%.lua:15: copy misbehaves: told",
        },
        {
          'assert(not os.execute "true") assert(not io.open("/etc/passwd", "a")) error "kept in"',
          "copy_test%.lua:15: copy misbehaves: kept in",
        },
      }
      for i, case in ipairs(cases) do
        put("copy_test.lua", bad(case[1]))
        put("copy.lua", SCRIPT .. "-- " .. i .. "\n")
        refused_with(case[2])
      end
      put("copy_test.lua", GOOD)
      cluster:till_said("new version is live", 30)
      assert.equal("0", folders())
      assert.is_nil(cluster.host:exit_code())
    end)

    it("are not those of a script that is named alone", function()
      local alone = dev.start { "--pods", "none", "--scripts", folder .. "/copy.lua" }
      alone:till_said "script is live"
      put("copy.lua", LOWER)
      alone:till_said("new version is live", 30)
      refused_with "copy_test%.lua:12: copy makes words large: "
    end)

    it("of the newest edit count, and end with the host", function()
      put("copy_test.lua", bad "while true do end")
      put("copy.lua", LOWER)
      wait.till("tests at work", 20, function()
        return folders() == "1"
      end)
      put("copy_test.lua", GOOD)
      put("copy.lua", SCRIPT .. "-- newest\n")
      cluster:till_said("new version is live", 30)
      assert.is_nil(cluster.host:stderr():find "script refused")
      put("copy_test.lua", bad "while true do end")
      put("copy.lua", LOWER)
      wait.till("tests at work", 20, function()
        return folders() == "1"
      end)
      cluster.host:stop()
      assert.equal("0", folders())
    end)
  end)

  describe("in moonloop run, which has given up its rights,", function()
    local moonloop

    local function start()
      moonloop = host.start {
        name = "tested", scripts = folder, kubeconfig = cluster.kubeconfig, env = { TMPDIR = cluster.tmp },
      }
      moonloop:till_ready()
    end

    before_each(function()
      folder = shell.folder "own" .. "/scripts"
      shell.must("mkdir -p " .. folder)
      put("copy.lua", SCRIPT)
      put("copy_test.lua", GOOD)
      cluster = dev.start { "--pods", "none" }
      start()
    end)

    local function tester()
      return shell.must("ps -o pid=,comm= --ppid " .. moonloop.pid):match "(%d+) moonloop%-tester"
    end

    it("refuse a version, and the metric and /readyz say so", function()
      put("copy.lua", LOWER)
      local line = moonloop:till_log({ msg = "script refused; the last good version keeps running" }, 30)
      assert.truthy(line.error:find("copy_test.lua:12: copy makes words large: ", 1, true))
      assert.equal(1, moonloop:metric("moonloop_script_refused", { file = "copy.lua" }))
      local page = moonloop:get "/readyz?verbose"
      assert.truthy(page:find("the newest version is refused", 1, true), page)
      put("copy.lua", SCRIPT .. "-- good\n")
      moonloop:till_log({ msg = "new version is live" }, 30)
      moonloop:stop()
      assert.equal(0, processes "moonloop-tests")
      assert.equal("0", folders())
    end)

    it("are not run, and hold up nothing, when their process was killed", function()
      shell.must("kill -9 " .. tester())
      put("copy.lua", LOWER)
      local line = moonloop:till_log({ msg = "the tests of a script were not run" }, 30)
      assert.truthy(line.error:find("start moonloop again", 1, true), line.error)
      moonloop:till_log { msg = "new version is live" }
    end)

    it("end with a host that is killed", function()
      put("copy_test.lua", bad "while true do end")
      put("copy.lua", LOWER)
      wait.till("tests at work", 20, function()
        return folders() == "1"
      end)
      moonloop:kill()
      wait.till("the folder to be gone", 10, function()
        return folders() == "0"
      end)
    end)
  end)
end)
