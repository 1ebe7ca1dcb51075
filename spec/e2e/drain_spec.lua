-- The end of the host, and what it tells while it runs.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local proxy = require "spec.e2e.support.proxy"
local wait = require "spec.e2e.support.wait"

local faulty = proxy.available and it or pending

-- Seconds: less than the 25 that a host may wait for its work.
local AT_ONCE = 5

describe("A host that is asked to stop", function()
  local ns, faults

  before_each(function()
    ns = cluster.namespace "drain"
    faults = proxy.available and proxy.open "drain" or nil
  end)

  after_each(function()
    if faults then
      faults:clear()
    end
    host.stop_all()
    cluster.forget(ns)
  end)

  local function start(args)
    local moonloop = host.start {
      name = "drain", scripts = "reconcilers/cnat.lua", namespaces = ns,
      kubeconfig = faults and faults.kubeconfig, args = args,
    }
    return moonloop:till_ready()
  end

  -- A host whose creation of a pod is on its way, and takes so long.
  local function start_busy(ms, args)
    faults:add { { name = "slow", method = "POST", path = "/pods(\\?|$)", action = "delay", ms = ms } }
    local moonloop = start(args)
    cluster.at(ns, "at-1", cluster.PAST)
    wait.till("the creation to be on its way", 5, function()
      return faults:hits "slow" >= 1
    end)
    return moonloop
  end

  it("with nothing to do ends at once", function()
    local moonloop = start()
    assert.is_true(moonloop:stop() < AT_ONCE)
    assert.equal(1, #moonloop:lines { msg = "stopping", why = "SIGTERM" })
  end)

  it("takes SIGINT for the same", function()
    local moonloop = start()
    moonloop:signal "INT"
    assert.equal(0, moonloop:till_exit(2))
  end)

  faulty("before it is connected ends at once", function()
    faults:add { { path = "/version", action = "stall" } }
    local moonloop = host.start { name = "drain", scripts = "reconcilers/cnat.lua", kubeconfig = faults.kubeconfig }
    moonloop:till_log { msg = "serving" }
    assert.is_true(moonloop:stop() < AT_ONCE)
  end)

  it("with work under way leaves nothing half done", function()
    local moonloop = start()
    for index = 1, 100 do
      cluster.at(ns, "at-" .. index, cluster.PAST)
    end
    moonloop:stop()
    -- An At that has a pod has its status too: the reconcile that made the pod has ended.
    for _, pod in ipairs(api.list("Pod", ns)) do
      local at = api.get("At", ns, pod.metadata.labels.app)
      assert.is_truthy(at.status and at.status.phase, at.metadata.name)
    end
    start()
    cluster.till_done(ns, 100)
  end)

  faulty("finishes the reconcile that is under way", function()
    local moonloop = start_busy(1500)
    moonloop:stop()
    assert.is_truthy(api.get("Pod", ns, "at-1-pod"))
    assert.is_truthy(api.get("At", ns, "at-1").status)
  end)

  faulty("begins no new work meanwhile", function()
    local moonloop = start_busy(1500)
    moonloop:signal "TERM"
    moonloop:till_log { msg = "stopping" }
    cluster.at(ns, "at-2", cluster.PAST)
    assert.equal(0, moonloop:till_exit(5))
    assert.is_nil(api.get("Pod", ns, "at-2-pod"))
  end)

  faulty("waits no longer than it is told to", function()
    local moonloop = start_busy(20000, { "--drain-seconds", "1" })
    assert.is_true(moonloop:stop() < 1 + AT_ONCE)
    assert.equal(1, #moonloop:lines { level = "warn", msg = "did not end in time" })
  end)

  faulty("ends at once when it is asked twice", function()
    local moonloop = start_busy(20000)
    moonloop:signal "TERM"
    moonloop:till_log { msg = "stopping" }
    local begun = wait.now()
    moonloop:signal "TERM"
    assert.equal(1, moonloop:till_exit(2))
    assert.is_true(wait.now() - begun < AT_ONCE)
    assert.matches("asked to stop twice", moonloop:stderr())
  end)

  faulty("is not ready any more, and alive, while it drains", function()
    local moonloop = start_busy(1500)
    moonloop:signal "TERM"
    moonloop:till_log { msg = "stopping" }
    local body, code = moonloop:get "/readyz?verbose"
    assert.equal(500, code)
    assert.matches("stopping", body)
    body, code = moonloop:get "/healthz"
    assert.equal(200, code, body)
    assert.equal(0, moonloop:till_exit(5))
  end)

  -- Of 25 s the first 20 are for writes, and after 22 the work is left where it is. The pod's creation is answered in
  -- between: the pod is made, its status is not written. The next host takes it from there.
  faulty("writes nothing in the last fifth of its time", function()
    local moonloop = start_busy(21000)
    moonloop:stop()
    assert.equal(0, #moonloop:lines { msg = "did not end in time" })
    assert.is_truthy(api.get("Pod", ns, "at-1-pod"))
    assert.is_nil(api.get("At", ns, "at-1").status)
    faults:clear()
    start()
    cluster.till_done(ns, 1)
  end)
end)


describe("The endpoints", function()
  local ns, moonloop

  setup(function()
    ns = cluster.namespace "endpoints"
    moonloop = host.start { name = "endpoints", scripts = "reconcilers/cnat.lua", namespaces = ns }
    moonloop:till_ready()
    cluster.at(ns, "at-1", cluster.PAST)
    cluster.till_phase(ns, "at-1", "DONE")
  end)

  teardown(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  it("answer probes", function()
    for _, path in ipairs { "/healthz", "/readyz" } do
      local body, code = moonloop:get(path)
      assert.equal(200, code, path)
      assert.equal("ok", body)
    end
    local _, code = moonloop:get "/nothing"
    assert.equal(404, code)
  end)

  local NAMES = {
    "controller_runtime_reconcile_total", "controller_runtime_reconcile_errors_total",
    "controller_runtime_reconcile_time_seconds", "controller_runtime_active_workers",
    "controller_runtime_max_concurrent_reconciles", "workqueue_depth", "workqueue_adds_total",
    "workqueue_retries_total", "workqueue_queue_duration_seconds", "workqueue_work_duration_seconds",
    "workqueue_unfinished_work_seconds", "workqueue_longest_running_processor_seconds",
    "rest_client_requests_total", "process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds",
    "moonloop_script_loaded_total", "moonloop_script_refused_total",
  }

  it("show the metrics that controller-runtime has, under its names", function()
    local text = moonloop:get "/metrics"
    for _, name in ipairs(NAMES) do
      assert.is_truthy(text:find("# TYPE " .. name .. " ", 1, true), name)
    end
  end)

  it("show metrics in Prometheus' text format", function()
    local text = moonloop:get "/metrics"
    local types = {}
    for line in text:gmatch("[^\n]+") do
      local name, kind = line:match("^# TYPE (%S+) (%a+)$")
      if name then
        assert.is_nil(types[name], name .. " twice")
        types[name] = kind
      elseif line:sub(1, 1) ~= "#" then
        local series, value = line:match("^([%a_:][%w_:]*)%f[%W][^ ]* (%S+)$")
        series, value = series or line:match("^([%a_:][%w_:]*){.*} (%S+)$"), value or line:match(" (%S+)$")
        assert.is_truthy(series, line)
        assert.is_truthy(tonumber(value) or value:match("^[+-]Inf$") or value == "NaN", line)
        local family = series:gsub("_bucket$", ""):gsub("_sum$", ""):gsub("_count$", "")
        assert.is_truthy(types[series] or types[family], line)
      end
    end
    assert.equal("\n", text:sub(-1))
  end)

  it("count what was done", function()
    local cnat = { controller = "cnat" }
    assert.is_true(moonloop:metric("controller_runtime_reconcile_total", cnat) >= 2)
    assert.equal(0, moonloop:metric("controller_runtime_reconcile_errors_total", cnat))
    assert.equal(0, moonloop:metric("controller_runtime_active_workers", cnat))
    assert.is_true(moonloop:metric("rest_client_requests_total", { method = "POST", code = "201" }) >= 1)
    local memory = moonloop:metric "process_resident_memory_bytes"
    assert.is_true(memory > 1e6 and memory < 1e9)
  end)
end)
