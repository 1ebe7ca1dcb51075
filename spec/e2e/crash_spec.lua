-- kill -9 at any moment: no second pod, no lost At. E2E_SEED replays the moments of a run.
local audit = require "spec.e2e.support.audit"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local judge = require "spec.e2e.support.judge"
local proxy = require "spec.e2e.support.proxy"
local wait = require "spec.e2e.support.wait"

local audited = audit.available and it or pending
local faulty = proxy.available and it or pending

local CRASHES = 8
local ATS = 60
local STARTS = 20

describe("A host that is killed", function()
  local ns, mark

  before_each(function()
    ns = cluster.namespace "crash"
    mark = audit.available and audit.mark()
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function start(kubeconfig)
    return host.start { name = "crash", scripts = "reconcilers/cnat.lua", namespaces = ns, kubeconfig = kubeconfig }
  end

  audited("at random moments makes one pod for each At all the same, and loses none", function()
    local seed = math.tointeger(os.getenv "E2E_SEED") or os.time()
    print(("crash_spec: E2E_SEED=%d"):format(seed))
    math.randomseed(seed)
    for index = 1, ATS do
      cluster.at(ns, ("at-%02d"):format(index), cluster.due_in(index % 8), index % 2 == 0 and "sleep 1" or nil)
    end
    for _ = 1, CRASHES do
      local moonloop = start()
      wait.pass(math.random() * 1.2)
      moonloop:kill()
    end
    start()
    cluster.till_done(ns, ATS)
    judge.one_pod_each(mark, ns, ATS)
  end)

  it("is ready at once each time that it starts again, however much there is to list", function()
    for index = 1, ATS do
      cluster.at(ns, ("at-%02d"):format(index), cluster.PAST)
    end
    start()
    cluster.till_done(ns, ATS)
    host.stop_all()
    for _ = 1, STARTS do
      start():till_ready(3):kill()
    end
  end)

  faulty("between the creation of a pod and the reply makes no second one", function()
    local faults = proxy.open "crash"
    faults:add { { name = "silence", method = "POST", path = "/pods(\\?|$)", action = "stall" } }
    cluster.at(ns, "at-1", cluster.PAST)
    local moonloop = start(faults.kubeconfig)
    cluster.till_pod(ns, "at-1-pod")
    moonloop:kill()
    assert.is_true(faults:hits "silence" >= 1)
    faults:clear()
    start(faults.kubeconfig)
    cluster.till_phase(ns, "at-1", "DONE")
    judge.one_pod_each(mark, ns, 1)
  end)
end)
