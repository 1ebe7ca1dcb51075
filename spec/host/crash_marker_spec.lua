-- A process that is killed while a script is at work, and what the next ones make of that. The script loops at its top,
-- up to its budget: the marker says when it is at work.
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local QUARANTINED = "looper.lua: this version was at work when the process died twice in a row; "
  .. "change it to have it loaded again"

local CONTROLLER = [[
local moonloop = require "moonloop"
%s
return moonloop.controller {
  name = "%s",
  reconciles = moonloop.kind("v1", "ConfigMap"),
  reconcile = function() end,
}
]]

local LOOPS = 'for _ = 1, 40 do string.rep("x", 1000000) end while true do end'


describe("moonloop run --state-dir", function()
  local cluster, scripts, state

  before_each(function()
    cluster = dev.start { "--pods", "none" }
    scripts, state = shell.folder "scripts", shell.folder "state"
  end)

  after_each(function()
    host.stop_all()
  end)

  -- `at_top` runs while the script is loaded.
  local function put(name, at_top)
    shell.write(scripts .. "/" .. name .. ".lua", CONTROLLER:format(at_top or "", name))
  end

  local function start()
    return host.start {
      name = "marked", scripts = scripts, kubeconfig = cluster.kubeconfig, args = { "--state-dir", state },
    }
  end

  local function at_work()
    local page = shell.read(state .. "/crash-marker") or ""
    return #page > 16 and string.unpack("<I8", page, 9) ~= 0
  end

  -- On a busy machine the signal may come when the budget is used up: that is no death of the script's, so again.
  local function die_at_work()
    wait.till("a process to die in a script", 60, function()
      local moonloop = start()
      moonloop:till_log { msg = "serving" } -- from then on the page is its own
      wait.till("a script to be at work", 10, function()
        return at_work() or moonloop:lines { msg = "script refused" }[1]
      end)
      moonloop:kill()
      return at_work()
    end)
  end

  it("does not load a third time what the process died in twice", function()
    put("looper", LOOPS)
    die_at_work()
    die_at_work()
    put("other")
    local moonloop = start()
    moonloop:till_log { msg = "script is live", script = "other.lua" }
    moonloop:till_log { msg = "script refused", script = "looper.lua", error = QUARANTINED }
    assert.is_truthy(moonloop:get("/readyz?verbose"):find(QUARANTINED, 1, true))
    assert.equal(1, moonloop:metric("moonloop_script_quarantined_total", { file = "looper.lua" }))
    assert.equal(2, moonloop:lines({ msg = "the process died while a script was at work" })[1].deaths)
    put("looper")
    moonloop:till_log { msg = "script is live", script = "looper.lua" }
    moonloop:till_ready()
  end)

  it("runs the last good version instead, till the file changes", function()
    put("looper")
    put("other")
    local moonloop = start():till_ready()
    moonloop:stop() -- in order: what worked is good
    put("looper", LOOPS)
    die_at_work()
    die_at_work()
    moonloop = start()
    moonloop:till_log {
      msg = "script refused", script = "looper.lua", error = QUARANTINED .. "; till then the last good version runs",
    }
    moonloop:till_log { msg = "script is live", script = "looper.lua" }
    moonloop:till_ready()
    assert.equal(1, moonloop:metric("moonloop_script_quarantined_total", { file = "looper.lua" }))
    moonloop:stop()
    moonloop = start():till_ready() -- the set with the quarantined version has not become the good one
    assert.equal(1, moonloop:metric("moonloop_script_quarantined_total", { file = "looper.lua" }))
    put("looper", "-- mended")
    moonloop:till_log { msg = "new version is live", script = "looper.lua" }
  end)

  -- How an edit can be wrong, by the words of the refusal: what is put in place of looper.lua.
  local REFUSED = {
    ["looper.lua:"] = function() put("looper", "no Lua at all") end,
    ["there is no absent.lua next to this script"] = function() put("looper", 'require "absent"') end,
    ["is UTF-16; save it as UTF-8"] = function() shell.write(scripts .. "/looper.lua", "\xff\xfer\0") end,
    ["larger than 1048576 bytes"] = function() shell.write(scripts .. "/looper.lua", ("-"):rep(1048577)) end,
    ["no other script requires it"] = function() shell.write(scripts .. "/looper.lua", "return {}") end,
    ['the name "first" is taken by first.lua'] = function()
      shell.write(scripts .. "/looper.lua", CONTROLLER:format("", "first"))
    end,
  }

  for words, put_refused in pairs(REFUSED) do
    it("runs the last good version of a file that is refused at a start: " .. words, function()
      put("looper")
      start():till_ready():stop()
      put("first")
      put_refused()
      for _ = 1, 2 do -- and what is refused does not become the good one
        local moonloop = start()
        moonloop:till_log { msg = "script refused", script = "looper.lua", error = words }
        moonloop:till_log { msg = "script is live", script = "looper.lua", controller = "looper" }
        moonloop:till_log { msg = "script is live", script = "first.lua", controller = "first" }
        moonloop:till_ready()
        assert.equal(1, moonloop:metric("moonloop_script_refused", { file = "looper.lua" }))
        assert.equal(0, moonloop:metric "moonloop_script_quarantined_total")
        moonloop:stop()
      end
      local moonloop = start()
      moonloop:till_log { msg = "script is live", script = "looper.lua" }
      shell.write(scripts .. "/absent.lua", "return {}")
      put("looper", 'require "absent"')
      moonloop:till_log { msg = "new version is live", script = "looper.lua" }
      assert.equal(0, moonloop:metric("moonloop_script_refused", { file = "looper.lua" }))
    end)
  end

  it("loads a file again when what it lacked comes, though the last good version did not need it", function()
    put("looper")
    start():till_ready():stop()
    put("looper", 'require "absent"')
    local moonloop = start()
    moonloop:till_log { msg = "script refused; the last good version keeps running", script = "looper.lua" }
    moonloop:till_log { msg = "script is live", script = "looper.lua" }
    shell.write(scripts .. "/absent.lua", "return {}")
    moonloop:till_log { msg = "new version is live", script = "looper.lua" }
    assert.equal(0, moonloop:metric("moonloop_script_refused", { file = "looper.lua" }))
  end)

  it("runs nothing of files that are gone at a start: only a running process keeps their controllers", function()
    put("looper")
    put("other")
    local moonloop = start():till_ready()
    os.remove(scripts .. "/looper.lua")
    moonloop:till_log { level = "error", msg = "script refused; the last good version keeps running",
      error = "is no longer in" }
    assert.equal(1, moonloop:metric "moonloop_controllers_without_file")
    moonloop:stop()
    moonloop = start():till_ready()
    assert.equal(0, moonloop:metric "moonloop_controllers_without_file")
    assert.same({}, moonloop:lines { script = "looper.lua" })
    moonloop:stop()
    os.remove(scripts .. "/other.lua")
    moonloop = start():till_ready()
    assert.equal(0, moonloop:metric "moonloop_controllers_without_file")
    assert.same({}, moonloop:lines { msg = "script is live" })
  end)

  it("forgets a death when the process ends in order after it", function()
    put("looper", LOOPS)
    die_at_work()
    local moonloop = start()
    moonloop:till_log({ msg = "script refused", script = "looper.lua", error = "used more than" })
    moonloop:stop()
    die_at_work()
    moonloop = start()
    moonloop:till_log({ msg = "script refused", script = "looper.lua", error = "used more than" })
    assert.equal(0, moonloop:metric "moonloop_script_quarantined_total")
  end)

  it("works without a marker when there is no such folder", function()
    put("other")
    state = state .. "/none"
    local moonloop = start():till_ready()
    moonloop:till_log { msg = "no crash marker; a script that kills the process will not be quarantined",
      error = "cannot be opened" }
  end)
end)
