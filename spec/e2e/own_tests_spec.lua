-- The tests beside a script in a ConfigMap: they decide before a new version is live, with the definitions of the
-- server, and after a restart. test_operator_own_tests and spec/host/own_tests_spec.lua have the rest.
local api = require "spec.e2e.support.api"
local cjson = require "cjson.safe"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubectl = require "spec.e2e.support.kubectl"
local scripts = require "spec.e2e.support.scripts"
local wait = require "spec.e2e.support.wait"

local TEST = [[
local testing = require "moonloop.testing"
local Widget = { apiVersion = "e2e.moonloop.dev/v1", kind = "Widget" }

describe("widgets", function()
  it("say what they are told", function()
    local world = testing.world()
    world.apply { apiVersion = Widget.apiVersion, kind = "Widget", metadata = { name = "w" }, spec = { say = "one" } }
    world.expect(Widget, "w", { status = { said = "one" } })
  end)
end)
]]
local SILENT = scripts.edited(scripts.widgets, "said = widget.spec.say", 'said = ""')
local FAILS = "widgets_test.lua:8: widgets say what they are told: "

describe("A script in a ConfigMap with its tests", function()
  local ns, moonloop

  setup(scripts.install_widgets)

  local function put(script)
    kubectl.configmap(ns, "scripts", { ["widgets.lua"] = script, ["widgets_test.lua"] = TEST })
  end

  local function start(name)
    moonloop = host.start { name = name, configmaps = ns .. "/scripts", namespaces = ns }
    moonloop:till_ready(30)
  end

  before_each(function()
    ns = cluster.namespace "tested"
    put(scripts.widgets)
    start "tested"
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function till_said(text)
    wait.till("status.said " .. text, 10, function()
      local widget = api.get("Widget", ns, "w")
      return widget.status and widget.status.said == text, cjson.encode(widget)
    end)
  end

  it("is refused when one fails, and the version before runs on, after a restart too", function()
    api.create("Widget", ns, { metadata = { name = "w" }, spec = { say = "one" } })
    till_said "one"
    put(SILENT)
    cluster.till_event(ns, "ConfigMap", "scripts", "ScriptRefused", FAILS, 30)
    assert.equal(1, moonloop:metric("moonloop_script_refused", { file = "widgets.lua" }))
    moonloop:stop()
    start "tested-again"
    moonloop:till_log({ msg = "script refused", error = FAILS }, 30)
    api.patch("Widget", ns, "w", { spec = { say = "two" } })
    till_said "two"
    put(scripts.widgets .. "-- edited\n")
    moonloop:till_log({ msg = "the new version passes its own tests" }, 30)
    moonloop:till_log { msg = "new version is live" }
  end)
end)
