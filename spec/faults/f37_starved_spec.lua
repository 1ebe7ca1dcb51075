-- F37: a process that is short of everything but work: 64 descriptors, while clients hold on to its probes; a log that
-- nobody reads; a log on a full disk. The work goes on, and what cannot be told is counted.
local bench = require "spec.faults.support.bench"
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local socket = require "socket"
local wait = require "spec.e2e.support.wait"

local ATS = "/apis/cnat.programming-kubernetes.info/v1alpha1/namespaces/default/ats"

-- A port that was free a moment ago: the log that would say which one it is cannot be read.
local function free_port()
  local server = assert(socket.bind("127.0.0.1", 0))
  local _, port = server:getsockname()
  server:close()
  return math.tointeger(tonumber(port))
end


describe("A host that is short of", function()
  local cluster

  before_each(function()
    cluster = dev.start { "--apply", "crds", "--pods", "fake" }
  end)

  after_each(function()
    dev.stop_all()
  end)

  -- Runs cnat against that cluster; `before` are the shell's lines that take something away.
  local function start(before, args)
    local port = free_port()
    local words = {
      "run", "--scripts", "reconcilers/cnat.lua", "--kubeconfig", cluster.kubeconfig,
      "--metrics-bind-address", "127.0.0.1:" .. port, "--health-probe-bind-address", "127.0.0.1:" .. port,
      table.unpack(args or {}),
    }
    local starved = host.spawn(words, { name = "starved", before = before })
    starved.port = port
    wait.till("the host to serve its probes", 20, function()
      return (select(2, starved:get "/readyz")) == 200, starved:stderr()
    end)
    return starved
  end

  local function till_done(from, to)
    for index = from, to do
      cluster:must("POST", ATS, {
        apiVersion = "cnat.programming-kubernetes.info/v1alpha1", kind = "At",
        metadata = { name = "at-" .. index }, spec = { schedule = "2020-01-01T00:00:00Z", command = "true" },
      })
    end
    wait.till(("%d Ats to be done"):format(to), 60, function()
      local done = 0
      for _, at in ipairs(cluster:must("GET", ATS).items) do
        done = done + (at.status and at.status.phase == "DONE" and 1 or 0)
      end
      return done == to, done
    end)
  end

  it("descriptors goes on while clients hold on to its probes", function()
    local starved = start "ulimit -n 64"
    local held = {}
    for _ = 1, 150 do
      local client = socket.tcp()
      client:settimeout(0.2)
      client:connect("127.0.0.1", starved.port)
      held[#held + 1] = client
    end
    till_done(1, 20)
    local body, code = starved:get "/healthz"
    assert.equal(200, code, body)
    assert.is_true(starved:metric "process_open_fds" < 64)
    assert.equal(64, starved:metric "process_max_fds")
    local before = starved:metric "process_cpu_seconds_total"
    wait.pass(2)
    assert.is_true(starved:metric "process_cpu_seconds_total" - before < 0.5) -- nothing spins
    for _, client in ipairs(held) do
      client:close()
    end
    till_done(21, 30)
    assert.is_true(starved:stop() < wait.patient(5))
    bench.tried("F37", 150)
  end)

  it("a reader of its log goes on without one", function()
    local fifo = shell.path "blocked"
    shell.must("mkfifo " .. fifo)
    -- The pipe is open, and full.
    local starved = start(("exec 1<>%s; head -c 65536 /dev/zero >&1"):format(fifo), { "--log-level", "debug" })
    till_done(1, 20)
    assert.is_true(starved:metric "moonloop_log_lines_dropped_total" > 0)
    assert.equal(200, (select(2, starved:get "/healthz")))
    assert.is_true(starved:stop() < wait.patient(5))
    bench.tried("F37", 1)
  end)

  it("room for its log goes on without one", function()
    local starved = start("exec >/dev/full", { "--log-level", "debug" })
    till_done(1, 20)
    assert.is_true(starved:metric "moonloop_log_lines_dropped_total" > 0)
    assert.is_true(starved:stop() < wait.patient(5))
    bench.tried("F37", 1)
  end)
end)
