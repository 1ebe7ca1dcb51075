-- An API server that goes away and comes back, falls silent, was restored from a backup, or whose clock differs: how
-- soon the host works again, and whether it says so only then.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local judge = require "spec.e2e.support.judge"
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

  -- Lines of level error, but for a write that was under way when something was killed.
  local function errors(moonloop)
    local found = {}
    for _, line in ipairs(moonloop:lines { level = "error" }) do
      found[#found + 1] = line.msg ~= "reconcile failed; trying again" and line.msg or nil
    end
    return found
  end

  local function kill(component)
    shell.must(("awk -v n=%s '$1 == n { print $2 }' %s/pids | xargs kill -9"):format(component, cluster.controlplane))
    wait.till("the end of " .. component, 10, function()
      local status = shell.run(shell.line { "spec/e2e/controlplane/controlplane.sh", "status", cluster.controlplane })
      return status:find("ended: " .. component, 1, true)
    end)
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
    cluster.restart_clients()
  end)

  -- For so many seconds. After that an At that is due has its pod soon.
  local function restart_server(seconds, name)
    kill "kube-apiserver"
    wait.pass(seconds)
    cluster.restart "kube-apiserver"
    local took = till_pod(name)
    print(("pod after %d s without a server: %.2f s"):format(seconds, took))
    assert.is_true(took < wait.patient(3), took)
  end

  local function start_two(...)
    local replicas = {}
    for _, name in ipairs { "away-a", "away-b" } do
      replicas[#replicas + 1] = host.start {
        name = name, scripts = "reconcilers/cnat.lua", namespaces = ns,
        args = { "--leader-election-namespace", ns, ... },
      }
      replicas[#replicas]:till_ready()
    end
    return table.unpack(replicas)
  end

  own("restarts, caches that are filled by streams are soon whole again", function()
    local mark = audit.mark()
    local moonloop = start { args = { "--watch-list" } }
    for turn, seconds in ipairs { 2, 8 } do
      local name = "gone-" .. turn
      cluster.at(ns, name, cluster.PAST)
      cluster.till_phase(ns, name, "DONE")
      api.delete("At", ns, name) -- no object shows that this was seen: a list has to follow
      restart_server(seconds, "at-" .. turn)
    end
    wait.till("a streaming list in the log", 20, function() -- where a watch stands when it has ended
      for _, event in ipairs(audit.since(mark, { ns = ns, resource = "ats", by_moonloop = true, code = 200 })) do
        if event.requestURI:find("sendInitialEvents=true", 1, true) then
          return true
        end
      end
      return false, #moonloop:log()
    end)
    assert.same({}, errors(moonloop))
    cluster.restart_clients()
  end)

  own("restarts, its leader goes on leading", function()
    local mark = audit.mark()
    -- Longer than an outage on a machine that is busy, where a server takes its time to start.
    local leader, standby = start_two("--leader-elect", "--leader-election-lease-duration", "60s",
      "--leader-election-renew-deadline", "50s")
    local lease = api.get("Lease", ns, "moonloop").spec
    restart_server(2, "at-1")
    restart_server(5, "at-2")
    local now = api.get("Lease", ns, "moonloop").spec
    assert.same({ lease.holderIdentity, lease.leaseTransitions }, { now.holderIdentity, now.leaseTransitions })
    assert.equal(1, leader:metric "leader_election_master_status")
    assert.equal(0, standby:metric "leader_election_master_status")
    cluster.restart_clients()
    cluster.till_done(ns, 2)
    judge.one_pod_each(mark, ns, 2)
  end)

  own("is away for longer than a lease lasts, one that stood by leads as soon as it is back", function()
    local mark = audit.mark()
    local leader, standby = start_two "--leader-elect"
    cluster.at(ns, "at-1", cluster.PAST)
    cluster.till_phase(ns, "at-1", "DONE")
    restart_server(20, "at-2")
    assert.equal(4, leader:till_exit(1))
    assert.equal(1, #standby:lines { logger = "election", msg = "leading" })
    cluster.restart_clients()
    cluster.till_done(ns, 2)
    judge.one_pod_each(mark, ns, 2)
  end)

  own("restarts, each replica has its share again", function()
    local mark = audit.mark()
    local terms = { "--shard", "--leader-election-lease-duration", "30s", "--leader-election-renew-deadline", "25s" }
    local replicas = { start_two(table.unpack(terms)) }
    local function assert_shared(first, limit)
      local begun = wait.now()
      for index = first, first + 7 do -- of both shares
        cluster.at(ns, ("at-%02d"):format(index), cluster.PAST)
      end
      wait.till("a pod for each", limit, function()
        local pods = #api.list("Pod", ns)
        return pods == first + 7, pods
      end)
      print(("pods of both shares: %.2f s"):format(wait.now() - begun))
      for _, replica in ipairs(replicas) do
        wait.till("two members", 20, function() return replica:metric "moonloop_shard_members" == 2 end)
      end
    end
    restart_server(2, "at-01")
    assert_shared(2, 3)
    kill "kube-apiserver" -- for longer than a lease lasts: they end, and are started again, as the kubelet does
    for _, replica in ipairs(replicas) do
      assert.equal(4, replica:till_exit(35))
    end
    cluster.restart "kube-apiserver"
    replicas = { start_two(table.unpack(terms)) }
    assert_shared(10, 35) -- after the lease duration: those before them may only have been cut off
    cluster.restart_clients()
    cluster.till_done(ns, 17)
    judge.one_pod_each(mark, ns, 17)
  end)

  -- A kind that goes with its definition, and comes back.
  local function remake_a_kind(between)
    local function install()
      cluster.install("spec/e2e/fixtures/gadgets.yaml", "gadgets.e2e.moonloop.dev")
    end
    install()
    finally(function()
      host.stop_all()
      kubectl.run("delete", "crd", "gadgets.e2e.moonloop.dev", "--ignore-not-found", "--wait=false")
    end)
    local moonloop = start { scripts = scripts.folder {
      ["gadgets.lua"] = scripts.widgets:gsub("Widget", "Gadget"):gsub("widget", "gadget"),
    } }
    moonloop:till_ready()
    local function till_said(name)
      -- The server itself takes two seconds for it, when the definition is new.
      api.create("Gadget", ns, { metadata = { name = name }, spec = { say = "hello" } })
      local begun = wait.now()
      wait.till("the Gadget's status", 10, function()
        local status = api.get("Gadget", ns, name).status
        return status and status.said == "hello"
      end)
      return wait.now() - begun
    end
    till_said "first"
    for turn = 1, 2 do
      kubectl.run("delete", "crd", "gadgets.e2e.moonloop.dev")
      moonloop:till_log({ msg = "cannot list or watch", resource = "gadgets" }, 10, turn)
      between()
      install()
      local took = till_said("again-" .. turn)
      print(("status after the kind was made again: %.2f s"):format(took))
      assert.is_true(took < wait.patient(2), took)
    end
    assert.same({}, errors(moonloop))
  end

  it("has a kind deleted and made again, the host works on it at once", function()
    remake_a_kind(function() wait.pass(6) end) -- in which a backoff would grow
  end)

  own("restarts while a kind is gone, the host works on it when it is made again", function()
    remake_a_kind(function()
      kill "kube-apiserver"
      wait.pass(3)
      cluster.restart "kube-apiserver"
    end)
    cluster.restart_clients()
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
    assert.same({}, errors(moonloop))
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

  -- The cache of a kind is made anew by each edit of its definition.
  own("makes the cache of a kind anew, the others go on", function()
    cluster.install("spec/e2e/fixtures/gadgets.yaml", "gadgets.e2e.moonloop.dev")
    finally(function()
      host.stop_all()
      kubectl.run("delete", "crd", "gadgets.e2e.moonloop.dev", "--ignore-not-found", "--wait=false")
    end)
    local definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.e2e.moonloop.dev"
    local mark = audit.mark()
    local moonloop = start { scripts = scripts.folder {
      ["cnat.lua"] = scripts.cnat, ["gadgets.lua"] = scripts.widgets:gsub("Widget", "Gadget"):gsub("widget", "gadget"),
    } }
    moonloop:till_ready()
    for index = 1, 200 do -- which take a moment to read
      api.create("Gadget", ns, { metadata = { name = "g" .. index }, spec = { say = ("x"):rep(20000) } })
    end
    for turn = 1, 12 do
      local change = { spec = { names = { shortNames = { "gd" .. turn } } } }
      local _, code = api.request("PATCH", definition, change, "application/merge-patch+json")
      assert.equal(200, code)
      assert.is_true(till_pod("at-" .. turn) < wait.patient(2))
    end
    api.create("Gadget", ns, { metadata = { name = "last" }, spec = { say = "hello" } })
    wait.till("the Gadget's status", 10, function()
      local status = api.get("Gadget", ns, "last").status
      return status and status.said == "hello"
    end)
    local refused = audit.since(mark, { ns = ns, by_moonloop = true, code = 429 })
    for _, event in ipairs(refused) do
      assert.matches("(re)initializing", event.responseStatus.message, 1, true)
    end
    assert.equal(0, #moonloop:lines { msg = "overloaded" })
    assert.equal(0, moonloop:metric "moonloop_throttled_total")
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
    assert.same({}, errors(moonloop))
    cluster.restart_clients() -- whose watches are in the future, too
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
    moonloop = with_clock(-30)
    moonloop:till_log { msg = "the clock of this machine differs from the API server's", level = "warn" }
    assert.is_true(math.abs(moonloop:metric "moonloop_clock_skew_seconds" + 30) < 3)
    assert.matches("note: the clock of this machine is [%d.]+ s behind the API server's\n$", (moonloop:get "/readyz"))
    moonloop:stop()
    moonloop = with_clock(0)
    assert.equal("ok", (moonloop:get "/readyz"))
    assert.equal(0, moonloop:metric "moonloop_clock_skew_seconds")
    assert.equal(0, #moonloop:lines { msg = "the clock of this machine differs" })
  end)
end)
