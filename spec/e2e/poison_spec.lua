-- Objects that are hard to digest: each costs itself at most, never the process or the others.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local mime = require "mime"
local probe = require "spec.e2e.support.probe"
local proxy = require "spec.e2e.support.proxy"
local scripts = require "spec.e2e.support.scripts"
local wait = require "spec.e2e.support.wait"

local faulty = proxy.available and it or pending

local DEPTH = 10000
local STORED_DEPTH = 9990
local CNAT = "cnat.programming-kubernetes.info/v1alpha1"

local function nested(depth)
  return ('{"a":'):rep(depth) .. "1" .. ("}"):rep(depth)
end


describe("An object", function()
  local ns, moonloop, faults

  setup(scripts.install_widgets)

  before_each(function()
    ns = cluster.namespace "poison"
    faults = proxy.available and proxy.open "poison" or nil
  end)

  after_each(function()
    if faults then
      faults:clear()
    end
    host.stop_all()
    cluster.forget(ns)
  end)

  local function start(files)
    moonloop = host.start {
      name = "poison",
      scripts = scripts.folder(files or { ["cnat.lua"] = scripts.cnat }),
      namespaces = ns,
      kubeconfig = faults and faults.kubeconfig,
    }
    moonloop:till_ready()
  end

  local function till_named(name)
    wait.till("a log line about " .. name, 10, function()
      return moonloop:complaints(name)[1], "none"
    end)
  end

  it("of 1.4 MB is worked on like any other", function()
    start()
    cluster.at(ns, "big", cluster.PAST, "echo" .. (" " .. ("x"):rep(999)):rep(1400))
    cluster.at(ns, "small", cluster.PAST)
    cluster.till_phase(ns, "small", "DONE", 10)
    local pod = cluster.till_pod(ns, "big-pod", 10)
    assert.equal(1401, #pod.spec.containers[1].command)
    cluster.till_phase(ns, "big", "DONE")
  end)

  it("of 1.4 MB that is more than a script's memory holds fails alone", function()
    start()
    cluster.at(ns, "many", cluster.PAST, "echo" .. (" x"):rep(700000))
    cluster.till_event(ns, "At", "many", "ReconcileFailed", "cnat.lua:")
    assert.equal("busybox", probe.image(ns))
  end)

  -- A watch event with metadata as it should be and whatever else.
  local function event(name, command)
    local rv = api.get("Namespace", nil, ns).metadata.resourceVersion
    return ('{"type":"ADDED","object":{"apiVersion":"%s","kind":"At",'
      .. '"metadata":{"name":"%s","namespace":"%s","uid":"0-1","resourceVersion":"%s","generation":1},'
      .. '"spec":{"schedule":"2020-01-01T00:00:00Z","command":%s}}}\n'):format(CNAT, name, ns, rv, command)
  end

  local POISON = {
    { what = "nested 10,000 deep", name = "abyss", command = nested(DEPTH) },
    { what = "that is not UTF-8", name = "latin", command = '"caf\xe9"' },
    { what = "with half a surrogate pair", name = "halved", command = '"\\ud83d"' },
  }

  for _, poison in ipairs(POISON) do
    faulty(("%s is left out, named in the log, and the others go on"):format(poison.what), function()
      faults:add {
        { name = "poison", path = "/ats\\?.*watch=", times = 1, action = "inject",
          bodyBase64 = (mime.b64(event(poison.name, poison.command))) },
      }
      start()
      cluster.at(ns, "before", cluster.PAST)
      cluster.till_phase(ns, "before", "DONE")
      assert.equal(1, faults:hits "poison")
      till_named(poison.name)
      assert.equal("busybox", probe.image(ns))
      assert.is_nil(api.get("Pod", ns, poison.name .. "-pod"))
    end)
  end

  local LINES = {
    ["is no JSON"] = "<html>not quite</html>\n",
    ["has an unknown type"] = '{"type":"MOVED","object":{"kind":"At"}}\n',
    ["has no metadata"] = ('{"type":"ADDED","object":{"apiVersion":"%s","kind":"At"}}\n'):format(CNAT),
    ["is empty"] = "\n",
    ["is of another kind"] = '{"type":"ADDED","object":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}}\n',
  }

  for what, line in pairs(LINES) do
    faulty(("after a line of the watch that %s is worked on all the same"):format(what), function()
      faults:add { { name = "line", path = "/ats\\?.*watch=", times = 1, action = "inject", body = line } }
      start()
      assert.equal("busybox", probe.image(ns))
      wait.till("the line", 5, function()
        return faults:hits "line" == 1
      end)
    end)
  end

  it("that is nested deeply and really stored fails alone, from the first list on", function()
    local answer, code = api.request("POST", ("/apis/e2e.moonloop.dev/v1/namespaces/%s/widgets"):format(ns),
      ('{"apiVersion":"e2e.moonloop.dev/v1","kind":"Widget","metadata":{"name":"well"},"spec":%s}'):format(
        nested(STORED_DEPTH)))
    assert.equal(201, code, answer and answer.message)
    api.create("Widget", ns, { metadata = { name = "plain" }, spec = { say = "hello" } })
    start { ["widgets.lua"] = scripts.widgets }
    wait.till("the other Widget's status", 10, function()
      local status = api.get("Widget", ns, "plain").status
      return status and status.said == "hello"
    end)
    till_named "well"
  end)
end)
