-- docs/changing.md on two replicas: an edit that is refused, held or stopped stays so when the leader is killed, and
-- the version before works on, on the other one. changing_spec and trial_spec have one replica, and the ways back.
local api = require "spec.e2e.support.api"
local cjson = require "cjson.safe"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubectl = require "spec.e2e.support.kubectl"
local scripts = require "spec.e2e.support.scripts"
local wait = require "spec.e2e.support.wait"

local WIDGETS = 12
local PARTS = scripts.parts

-- The ConfigMap of a Widget has the version of itself.
local ENDLESS = scripts.edited(scripts.edited(PARTS, "function(widget)", "function(widget, ctx)"),
  "data = { said = widget.spec.say },", [[data = {
            said = widget.spec.say,
            at = (ctx.get(ConfigMap, widget.metadata.name .. "-" .. i) or widget).metadata.resourceVersion,
          },]])

local TEST = [[
local testing = require "moonloop.testing"
local Widget = { apiVersion = "e2e.moonloop.dev/v1", kind = "Widget" }

describe("parts", function()
  it("are three", function()
    local world = testing.world()
    world.apply { apiVersion = Widget.apiVersion, kind = "Widget", metadata = { name = "w" }, spec = { say = "one" } }
    world.expect({ apiVersion = "v1", kind = "ConfigMap" }, "w-3", { data = { said = "one" } })
  end)
end)
]]

-- `script`: its text; `tests`: beside it, or nil; `event`: its reason; `says`: part of its note; `gauge`: it is 1.
local EDITS = {
  ["refused for a function that does not exist"] = {
    script = scripts.edited(PARTS, "widget.spec.say then", "string.trimm(widget.spec.say) then"),
    event = "ScriptRefused", says = "parts.lua:11: ", gauge = "moonloop_script_refused",
  },
  ["refused for a field that a ConfigMap does not have"] = {
    script = scripts.edited(PARTS, "data = { said", "datas = { said"),
    event = "ScriptRefused", says = "parts.lua:15: ", gauge = "moonloop_script_refused",
  },
  ["refused for a test that fails"] = {
    script = scripts.edited(PARTS, "i = 1, 3", "i = 1, 2"), tests = TEST,
    event = "ScriptRefused", says = "parts_test.lua:8: parts are three: ", gauge = "moonloop_script_refused",
  },
  ["refused for failures"] = {
    script = scripts.edited(PARTS, "local children = {}", 'local children = {}; assert(not widget.spec.say, "bad")'),
    event = "ScriptRefused", says = "fails for 12 of 12 objects", gauge = "moonloop_script_refused",
  },
  ["held for its deletes"] = {
    script = scripts.edited(PARTS, "if widget.spec.say then", "if not widget.spec.say then"),
    event = "ScriptHeld", says = "would delete 36 objects", gauge = "moonloop_script_held",
  },
  ["held as it would write without end"] = {
    script = ENDLESS,
    event = "ScriptHeld", says = "would write without end for 12 of 12 objects", gauge = "moonloop_script_held",
  },
  ["stopped for what the API server refuses"] = {
    script = scripts.edited(PARTS, "data = { said", 'data = { ["no key"] = "", said'),
    event = "ScriptStopped", says = "for which the version before did not", gauge = "moonloop_script_held",
  },
}

describe("An edit on two replicas, of which the leader is killed,", function()
  local ns, leader, standby

  setup(scripts.install_widgets)

  local function put(script, tests)
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = script, ["parts_test.lua"] = tests })
  end

  local function start(name)
    return host.start {
      name = name, configmaps = ns .. "/scripts", namespaces = ns,
      args = {
        "--leader-elect", "--leader-election-namespace", ns, "--leader-election-lease-duration", "4s",
        "--leader-election-renew-deadline", "3s", "--leader-election-retry-period", "500ms",
      },
    }
  end

  before_each(function()
    ns = cluster.namespace "edits"
    put(PARTS)
    for i = 1, WIDGETS do
      api.create("Widget", ns, { metadata = { name = ("w%02d"):format(i) }, spec = { say = "one" } })
    end
    leader = start "edits-leader"
    leader:till_log { logger = "election", msg = "leading" }
    standby = start "edits-standby"
    standby:till_log { msg = "script is live" }
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function parts()
    local count = 0
    for _, map in ipairs(api.list("ConfigMap", ns)) do
      count = count + (map.metadata.name:find "^w%d%d%-%d$" and 1 or 0)
    end
    return count
  end

  local function till_kept(revision)
    wait.till("the first version to be kept", 60, function()
      local map = api.get("ConfigMap", ns, "scripts-revisions")
      local text = map and map.data and map.data["parts." .. revision]
      local entry = text and cjson.decode(text)
      return entry and entry.files, text
    end)
  end

  local function revision_of(one)
    local status = host.command { "status", "--pid", tostring(one.pid), "-o", "json" }
    return assert(cjson.decode(status.out)).controllers[1].revision
  end

  for what, edit in pairs(EDITS) do
    it("is " .. what .. ", and stays so", function()
      wait.till("all ConfigMaps", 60, function() return parts() == 3 * WIDGETS, parts() end)
      local good = revision_of(leader)
      till_kept(good)
      put(edit.script, edit.tests)
      cluster.till_event(ns, "ConfigMap", "scripts", edit.event, edit.says, 60)
      for _, one in ipairs { leader, standby } do
        wait.till(edit.gauge, 60, function()
          return one:metric(edit.gauge, { file = "parts.lua" }) == 1
        end)
      end
      leader:kill()
      standby:till_log({ logger = "election", msg = "leading" }, 40)
      api.patch("Widget", ns, "w01", { spec = { say = "two" } })
      wait.till("the version before to work", 40, function()
        local map = api.get("ConfigMap", ns, "w01-3")
        return map and map.data.said == "two" and not map.data.at, cjson.encode(map)
      end)
      assert.equal(3 * WIDGETS, parts())
      assert.equal(good, revision_of(standby))
      assert.equal(1, standby:metric(edit.gauge, { file = "parts.lua" }))
      put(PARTS .. "-- mended\n")
      standby:till_log { msg = "new version is live" }
      wait.till("nothing to be refused or held", 30, function()
        return standby:metric(edit.gauge, { file = "parts.lua" }) == 0
      end)
    end)
  end
end)
