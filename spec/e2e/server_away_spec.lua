-- An API server that goes away and comes back, falls silent, was restored from a backup, or whose clock differs: how
-- soon the host works again, and whether it says so only then.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubectl = require "spec.e2e.support.kubectl"
local probe = require "spec.e2e.support.probe"
local proxy = require "spec.e2e.support.proxy"
local scripts = require "spec.e2e.support.scripts"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local own = cluster.controlplane and it or pending -- what it restarts is the specs' own
local faulty = proxy.available and it or pending

-- How often the API server is restarted; ten times on a machine with time.
local RESTARTS = tonumber(os.getenv "E2E_RESTARTS" or 2)

describe("When the API server", function()
  local ns

  before_each(function()
    ns = cluster.namespace "away"
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function start(opts)
    opts = opts or {}
    opts.name, opts.scripts, opts.namespaces = "away", opts.scripts or "reconcilers/cnat.lua", ns
    return host.start(opts):till_ready()
  end

  -- Seconds from the creation of an At that is due until its pod is there.
  local function till_pod(name)
    local begun = wait.now()
    cluster.at(ns, name, cluster.PAST)
    cluster.till_pod(ns, name .. "-pod", 15)
    return wait.now() - begun
  end

  local function kill(component)
    shell.must(("awk -v n=%s '$1 == n { print $2 }' %s/pids | xargs kill -9"):format(component, cluster.controlplane))
  end

  own("restarts, the host works as soon as it is ready, and says so then", function()
    local moonloop = start()
    for turn = 1, RESTARTS do
      kill "kube-apiserver"
      moonloop:till_log({ msg = "cannot list or watch", resource = "ats" }, 10, turn)
      wait.holds("an outage", turn == 1 and 8 or 2, function() return true end) -- in which a backoff would grow
      cluster.restart "kube-apiserver"
      local took = till_pod("at-" .. turn)
      print(("pod after restart %d: %.2f s"):format(turn, took))
      assert.is_true(took < wait.patient(3), took)
      moonloop:till_log({ msg = "list and watch work again", resource = "ats" }, 5, turn)
    end
    moonloop:till_ready(3)
    cluster.restart "kubelet" -- whose own backoff may have grown
  end)

  faulty("falls silent, both watches are left within 30 s", function()
    local faults = proxy.open "away"
    faults:add {
      { name = "ats", path = "/ats\\?.*watch=", times = 1, action = "stall", bytes = 0 },
      { name = "pods", path = "/pods\\?.*watch=", times = 1, action = "stall", bytes = 0 },
    }
    local moonloop = start { kubeconfig = faults.kubeconfig }
    local begun = wait.now()
    cluster.at(ns, "at-1", cluster.PAST)
    cluster.till_phase(ns, "at-1", "DONE", 30)
    assert.is_true(wait.now() - begun < 30 + wait.patient(2), wait.now() - begun)
    assert.equal(1, faults:hits "ats")
    assert.equal(1, faults:hits "pods")
    assert.equal(0, #moonloop:lines { level = "error" })
    faults:clear()
  end)

  faulty("cannot serve one kind for a while, the others go on", function()
    local faults = proxy.open "away"
    faults:add {
      { name = "busy", path = "/configmaps", action = "status", code = 429, reason = "TooManyRequests",
        message = "storage is (re)initializing", retryAfter = 1 },
    }
    kubectl.configmap(ns, "scripts", { ["cnat.lua"] = scripts.cnat })
    local moonloop = host.start {
      name = "away", scripts = "reconcilers/cnat.lua", configmaps = ns .. "/scripts", namespaces = ns,
      kubeconfig = faults.kubeconfig,
    }
    moonloop:till_log { msg = "cannot list or watch", resource = "configmaps", error = "storage is (re)initializing" }
    assert.equal("busybox", probe.image(ns))
    assert.equal(0, #moonloop:lines { msg = "overloaded" })
    assert.equal(0, moonloop:metric "moonloop_throttled_total")
    faults:clear()
  end)

  own("was restored from a backup, the host believes it", function()
    local folder = cluster.controlplane
    local function start_again()
      shell.must(shell.line { "spec/e2e/controlplane/controlplane.sh", "restart", folder, "etcd" })
      cluster.restart "kube-apiserver"
    end
    local moonloop = start()
    assert.is_true(till_pod "before" < wait.patient(2))
    kill "etcd"
    shell.must(("rm -rf %s/backup && cp -r %s/etcd %s/backup"):format(folder, folder, folder))
    start_again()
    till_pod "lost"
    kill "etcd"
    shell.must(("rm -rf %s/etcd && mv %s/backup %s/etcd"):format(folder, folder, folder))
    start_again()
    assert.is_nil(api.get("At", ns, "lost"))
    local took = till_pod "after"
    assert.is_true(took < wait.patient(10), took)
    assert.equal(0, #moonloop:lines { level = "error" })
    cluster.restart "kube-controller-manager" -- whose watches are in the future
    cluster.restart "kubelet"
  end)

  it("has another time, the host says so", function()
    local library = shell.path "skewed_clock.so"
    shell.must(shell.line { "cc", "-shared", "-fPIC", "-o", library, "spec/e2e/fixtures/skewed_clock.c" })
    local function with_clock(seconds)
      return start { env = { LD_PRELOAD = library, SKEW_SECONDS = tostring(seconds),
        ASAN_OPTIONS = "verify_asan_link_order=0" } }
    end
    local moonloop = with_clock(30)
    local line = moonloop:till_log { msg = "the clock of this machine differs from the API server's", level = "warn" }
    assert.is_true(math.abs(line.seconds - 30) < 3, line.seconds)
    assert.is_true(math.abs(moonloop:metric "moonloop_clock_skew_seconds" - 30) < 3)
    local body, code = moonloop:get "/readyz"
    assert.equal(200, code)
    assert.matches("^ok\nnote: the clock of this machine is [%d.]+ s ahead of the API server's\n$", body)
    moonloop:stop()
    moonloop = with_clock(0)
    assert.equal("ok", (moonloop:get "/readyz"))
    assert.equal(0, moonloop:metric "moonloop_clock_skew_seconds")
    assert.equal(0, #moonloop:lines { msg = "the clock of this machine differs" })
  end)
end)
