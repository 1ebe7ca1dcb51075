-- Faults between the host and the API server: under each, no At is lost, and each has exactly one pod.
local audit = require "spec.e2e.support.audit"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local judge = require "spec.e2e.support.judge"
local kubectl = require "spec.e2e.support.kubectl"
local probe = require "spec.e2e.support.probe"
local proxy = require "spec.e2e.support.proxy"
local scripts = require "spec.e2e.support.scripts"
local wait = require "spec.e2e.support.wait"

local faulty = proxy.available and it or pending
local restarted = cluster.controlplane and it or pending -- one whose state outlives it

local PODS = "/pods(\\?|$)"
local STATUS = "/ats/[^/]+/status(\\?|$)"
local AT_WATCH = "/ats\\?.*watch="
local POD_WATCH = "/pods\\?.*watch="

local EXPIRED = '{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
  .. '"message":"too old resource version","reason":"Expired","code":410}}\n'

describe("With a fault on the way,", function()
  local ns, mark, faults, moonloop

  before_each(function()
    ns = cluster.namespace "faults"
    mark = audit.mark()
    faults = proxy.open "faults"
  end)

  after_each(function()
    faults:clear()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function start()
    moonloop = host.start {
      name = "faults", scripts = "reconcilers/cnat.lua", namespaces = ns, kubeconfig = faults.kubeconfig,
    }
    moonloop:till_ready()
  end

  local function ats(count, schedule)
    for index = 1, count do
      cluster.at(ns, "at-" .. index, schedule or cluster.PAST, index % 2 == 0 and "sleep 1" or nil)
    end
  end

  local function assert_all_done(count, seconds)
    cluster.till_done(ns, count, seconds or 30)
    judge.one_pod_each(mark, ns, count)
  end

  faulty("a watch cut in the middle of a line is resumed where it was", function()
    faults:add {
      { name = "cut-ats", path = AT_WATCH, times = 3, action = "cut", bytes = 700 },
      { name = "cut-pods", path = POD_WATCH, times = 3, action = "cut", bytes = 1500 },
    }
    start()
    ats(20)
    assert_all_done(20)
    assert.is_true(faults:hits "cut-ats" >= 2)
    assert.is_true(faults:hits "cut-pods" >= 2)
  end)

  faulty("a watch whose whole connection is cut is opened again", function()
    faults:add { { name = "cut", path = AT_WATCH, times = 2, action = "cut", bytes = 900, connection = true } }
    start()
    ats(20)
    assert_all_done(20)
    assert.equal(2, faults:hits "cut")
  end)

  faulty("a reply lost after a create makes no second pod", function()
    faults:add {
      { name = "stream", method = "POST", path = PODS, times = 3, action = "drop-reply" },
      { name = "connection", method = "POST", path = PODS, times = 3, action = "drop-reply", connection = true },
    }
    start()
    ats(20)
    assert_all_done(20)
    assert.equal(3, faults:hits "stream")
    assert.equal(3, faults:hits "connection")
  end)

  faulty("a reply lost after a status write is written no differently", function()
    faults:add { { name = "lost", method = "PATCH", path = STATUS, times = 5, action = "drop-reply" } }
    start()
    ats(10)
    assert_all_done(10)
    assert.equal(5, faults:hits "lost")
  end)

  faulty("a 409 on the status is tried again", function()
    faults:add {
      { name = "conflict", method = "PATCH", path = STATUS, times = 5, action = "status", code = 409,
        reason = "Conflict", message = "the object has been modified" },
    }
    start()
    ats(10)
    assert_all_done(10)
    assert.equal(5, faults:hits "conflict")
  end)

  faulty("a 410 in the watch is answered with a new list", function()
    faults:add {
      { name = "ats", path = AT_WATCH, times = 2, action = "inject", body = EXPIRED },
      { name = "pods", path = POD_WATCH, times = 2, action = "inject", body = EXPIRED },
    }
    start()
    ats(10)
    assert_all_done(10)
    assert.equal(2, faults:hits "ats")
    assert.equal(2, faults:hits "pods")
  end)

  faulty("a 410 instead of a watch is answered with a new list", function()
    faults:add {
      { name = "gone", path = AT_WATCH, times = 2, action = "status", code = 410, reason = "Expired", message = "old" },
    }
    start()
    ats(10)
    assert_all_done(10)
    assert.equal(2, faults:hits "gone")
  end)

  faulty("a 429 on a create is tried again after the time it names", function()
    faults:add {
      { name = "busy", method = "POST", path = PODS, times = 2, action = "status", code = 429,
        reason = "TooManyRequests", message = "slow down", retryAfter = 1 },
    }
    start()
    ats(1)
    assert_all_done(1)
    local asked = {}
    for _, request in ipairs(faults:log()) do
      if request.method == "POST" and request.path:find("/pods", 1, true) then
        asked[#asked + 1] = audit.seconds(request.time)
      end
    end
    assert.equal(3, #asked)
    for index = 2, 3 do
      assert.is_true(asked[index] - asked[index - 1] >= 0.95, "tried again too soon")
    end
  end)

  faulty("a 500 and a 503 on the first list are tried again", function()
    faults:add {
      { path = "/ats\\?", times = 2, action = "status", code = 500, reason = "InternalError" },
      { path = "/pods\\?", times = 2, action = "status", code = 503, reason = "ServiceUnavailable" },
    }
    ats(5)
    start()
    assert_all_done(5)
  end)

  faulty("slow answers cost time and nothing else", function()
    faults:add {
      { name = "slow-create", method = "POST", path = PODS, action = "delay", ms = 700 },
      { name = "slow-status", method = "PATCH", path = STATUS, action = "delay", ms = 400 },
    }
    start()
    ats(20)
    assert_all_done(20)
  end)

  faulty("connections that are to be left after each answer cost nothing", function()
    faults:add { { name = "away", action = "goaway" } }
    start()
    ats(20)
    assert_all_done(20)
    assert.is_true(faults:hits "away" >= 60, faults:hits "away") -- three writes an At
  end)

  faulty("a create that nobody answers is given up, and asked for again", function()
    faults:add { { name = "black hole", method = "POST", path = PODS, times = 2, action = "delay", ms = 300000 } }
    start()
    ats(5)
    assert_all_done(5, 60)
    assert.equal(2, faults:hits "black hole")
  end)

  faulty("an At that comes due while the server is away runs when it is back", function()
    start()
    ats(10, cluster.due_in(2))
    cluster.till_phase(ns, "at-10", "PENDING")
    faults:down()
    wait.pass(2.5)
    assert.is_nil(moonloop:exit_code())
    local _, alive = moonloop:get "/healthz"
    assert.equal(200, alive)
    faults:up()
    assert_all_done(10)
  end)

  restarted("an API server that restarts is found again", function()
    start()
    ats(10, cluster.due_in(3))
    cluster.restart "kube-apiserver"
    cluster.restart_clients()
    assert_all_done(10)
  end)

  faulty("a ConfigMap of scripts whose watch is cut is still followed", function()
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat })
    faults:add { { name = "cut", path = "/configmaps\\?.*watch=", times = 1, action = "cut", bytes = 300 } }
    moonloop = host.start {
      name = "faults", configmaps = ns .. "/scripts", namespaces = ns, kubeconfig = faults.kubeconfig,
    }
    moonloop:till_ready()
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat_with_image "busybox:1.37" })
    assert.is_true(probe.till_image(ns, "busybox:1.37") < wait.patient(5))
    assert.equal(1, faults:hits "cut")
  end)
end)
