-- A pod at work on the fake runtime: order, restarts, sidecars, end.
local fake_runtime = require "cluster.kubelet.fake_runtime"
local host = require "cluster.host"
local hostlua = require "hostlua"
local pod_worker = require "cluster.kubelet.pod_worker"

-- A kubelet that keeps what it is told.
local function new_kubelet(decide)
  local kubelet = { runtime = fake_runtime.new(decide), events = {}, address = "192.0.2.1" }
  function kubelet.read() end
  function kubelet.pod_address(_, _, known) return known or "10.244.0.2" end
  function kubelet.services() return {} end
  function kubelet.token() end
  function kubelet:write_status(_, status)
    self.status = status
  end
  function kubelet:event(_, type, reason, message)
    table.insert(self.events, reason)
    self.last_event = ("%s %s: %s"):format(type, reason, message)
  end
  function kubelet:remove()
    self.is_removed = true
  end
  return kubelet
end


local function new_pod(spec)
  spec.restartPolicy = spec.restartPolicy or "Always"
  spec.containers = spec.containers or { { name = "main" } }
  return { metadata = { name = "p", namespace = "ns", uid = "u" }, spec = spec }
end


-- Starts a pod; what its containers do: name → what fake.new's function returns.
local function start(spec, outcomes)
  local kubelet = new_kubelet(function(_, container)
    return outcomes[container.name]
  end)
  local pod = new_pod(spec)
  local at_work = pod_worker.new(kubelet, pod)
  at_work:queue_write()
  at_work:sync()
  hostlua.advance(0)
  return kubelet, at_work, pod
end


-- "name: state", in order, init containers first.
local function states(kubelet)
  local list = {}
  for _, field in ipairs { "initContainerStatuses", "containerStatuses" } do
    for _, entry in ipairs(kubelet.status[field] or {}) do
      local state = entry.state
      local text = state.running and "running" or state.waiting and state.waiting.reason
        or ("%s %d"):format(state.terminated.reason, state.terminated.exitCode)
      list[#list + 1] = ("%s: %s"):format(entry.name, text)
    end
  end
  return list
end


local function condition(kubelet, type)
  for _, entry in ipairs(kubelet.status.conditions) do
    if entry.type == type then
      return entry
    end
  end
end


describe("A pod at work", function()
  before_each(function()
    hostlua.freeze(1783072800)
  end)

  local ENDS = {
    { policy = "Never", code = 0, phase = "Succeeded", state = "main: Completed 0" },
    { policy = "Never", code = 3, phase = "Failed", state = "main: Error 3" },
    { policy = "OnFailure", code = 0, phase = "Succeeded", state = "main: Completed 0" },
    { policy = "OnFailure", code = 1, phase = "Running", state = "main: CrashLoopBackOff" },
    { policy = "Always", code = 0, phase = "Running", state = "main: CrashLoopBackOff" },
  }
  for _, case in ipairs(ENDS) do
    it(("is %s after exit code %d under %s"):format(case.phase, case.code, case.policy), function()
      local kubelet = start({ restartPolicy = case.policy }, { main = { after = 1, code = case.code } })
      assert.equal("Running", kubelet.status.phase)
      hostlua.advance(1)
      hostlua.advance(1)
      assert.equal(case.phase, kubelet.status.phase)
      assert.same({ case.state }, states(kubelet))
    end)
  end

  -- Containers with a restartPolicy of their own, in pods with another one: what they are after an exit code.
  local function rule(operator, ...)
    return { action = "Restart", exitCodes = { operator = operator, values = { ... } } }
  end
  local OWN = {
    { pod = "Always", own = "Never", code = 1, phase = "Failed" },
    { pod = "Always", own = "Never", code = 0, phase = "Succeeded" },
    { pod = "Never", own = "OnFailure", code = 1, phase = "Running" },
    { pod = "Never", own = "OnFailure", code = 0, phase = "Succeeded" },
    { pod = "OnFailure", own = "Always", code = 0, phase = "Running" },
    { pod = "Never", own = "Never", rules = { rule("In", 41, 42) }, code = 42, phase = "Running" },
    { pod = "Never", own = "Never", rules = { rule("In", 41, 42) }, code = 1, phase = "Failed" },
    { pod = "Never", own = "Never", rules = { rule("In", 1), rule("NotIn", 0, 3) }, code = 4, phase = "Running" },
    { pod = "Never", own = "Never", rules = { rule("NotIn", 0, 3) }, code = 3, phase = "Failed" },
  }
  for i, case in ipairs(OWN) do
    it(("is %s by the policy and the rules of its container: %d"):format(case.phase, i), function()
      local main = { name = "main", restartPolicy = case.own, restartPolicyRules = case.rules }
      local kubelet = start({ restartPolicy = case.pod, containers = { main } },
        { main = { after = 1, code = case.code } })
      hostlua.advance(1)
      hostlua.advance(1)
      assert.equal(case.phase, kubelet.status.phase)
      assert.equal(case.phase == "Running" and 1 or 0, kubelet.status.containerStatuses[1].restartCount)
    end)
  end

  it("tries an init container again that says so, and fails with one that does not", function()
    local init = { { name = "a", restartPolicy = "OnFailure" } }
    local kubelet = start({ restartPolicy = "Never", initContainers = init }, { a = { after = 1, code = 2 } })
    hostlua.advance(1)
    assert.equal("Pending", kubelet.status.phase)
    hostlua.advance(0)
    assert.same({ "a: running", "main: PodInitializing" }, states(kubelet))
    init[1].restartPolicy = "Never"
    kubelet = start({ restartPolicy = "Always", initContainers = init }, { a = { after = 1, code = 2 } })
    hostlua.advance(1)
    assert.equal("Failed", kubelet.status.phase)
  end)

  it("runs on while one of its containers starts again, though the others have ended", function()
    local list = { { name = "main", restartPolicy = "Always" }, { name = "other" } }
    local kubelet = start({ restartPolicy = "Never", containers = list },
      { main = { after = 1, code = 1 }, other = { after = 1, code = 0 } })
    hostlua.advance(1)
    hostlua.advance(1)
    assert.same({ "main: CrashLoopBackOff", "other: Completed 0" }, states(kubelet))
    assert.equal("Running", kubelet.status.phase)
  end)

  it("waits longer before each further restart, at most five minutes", function()
    local kubelet = start({}, { main = { after = 0, code = 1 } })
    local waits = {}
    for _ = 1, 8 do
      local begun = host.monotonic()
      local restarts = kubelet.status.containerStatuses[1].restartCount
      while kubelet.status.containerStatuses[1].restartCount == restarts do
        hostlua.advance(1)
      end
      waits[#waits + 1] = math.floor(host.monotonic() - begun + 0.5)
    end
    assert.same({ 10, 20, 40, 80, 160, 300, 300, 300 }, waits)
  end)

  it("hands over a container by its name, as long as it runs", function()
    local _, at_work = start({ restartPolicy = "Never", initContainers = { { name = "a" } } },
      { a = { after = 1, code = 0 }, main = { after = 1, code = 0 } })
    assert.equal("a", at_work:handle("a").run.container.name)
    assert.is_nil(at_work:handle "main")
    hostlua.advance(1)
    assert.is_nil(at_work:handle "a")
    assert.equal("main", at_work:handle("main").run.container.name)
    assert.is_nil(at_work:handle("main").exec, "nothing can be run in what no process is")
    hostlua.advance(1)
    assert.is_nil(at_work:handle "main")
    assert.is_nil(at_work:handle "unknown")
  end)

  it("starts its init containers one after another, then the others", function()
    local kubelet = start({ initContainers = { { name = "a" }, { name = "b" } } },
      { a = { after = 5, code = 0 }, b = { after = 5, code = 0 } })
    assert.same({ "a: running", "b: PodInitializing", "main: PodInitializing" }, states(kubelet))
    assert.equal("containers with incomplete status: [a b]", condition(kubelet, "Initialized").message)
    hostlua.advance(5)
    assert.same({ "a: Completed 0", "b: running", "main: PodInitializing" }, states(kubelet))
    assert.equal("Pending", kubelet.status.phase)
    hostlua.advance(5)
    assert.same({ "a: Completed 0", "b: Completed 0", "main: running" }, states(kubelet))
    assert.equal("True", condition(kubelet, "Ready").status)
  end)

  it("fails with an init container when it is not to be restarted", function()
    local kubelet = start({ restartPolicy = "Never", initContainers = { { name = "a" } } },
      { a = { after = 1, code = 2 } })
    hostlua.advance(1)
    assert.equal("Failed", kubelet.status.phase)
    assert.same({ "a: Error 2", "main: PodInitializing" }, states(kubelet))
  end)

  it("does not wait for the end of a sidecar, and ends it after the others", function()
    local kubelet = start({
      restartPolicy = "Never",
      initContainers = { { name = "side", restartPolicy = "Always" }, { name = "step" } },
    }, { step = { after = 1, code = 0 }, main = { after = 5, code = 0 } })
    assert.same({ "side: running", "step: running", "main: PodInitializing" }, states(kubelet))
    hostlua.advance(1)
    assert.same({ "side: running", "step: Completed 0", "main: running" }, states(kubelet))
    assert.equal("Running", kubelet.status.phase)
    hostlua.advance(5)
    hostlua.advance(0)
    assert.same({ "side: Error 143", "step: Completed 0", "main: Completed 0" }, states(kubelet))
    assert.equal("Succeeded", kubelet.status.phase)
  end)

  -- A deleted pod, with containers that end, and hooks that are over, when the test says so.
  local function delete(spec, seconds)
    local kubelet, said, exits, hooks = new_kubelet(), {}, {}, {}
    kubelet.runtime = { update_volumes = function() return {} end, forget = function() end }
    function kubelet.runtime.start(_, run)
      exits[run.container.name] = run.on_exit
      return {
        stop = function(_, grace) said[#said + 1] = ("%s %.0f"):format(run.container.name, grace) end,
        pre_stop = function(_, grace, fn)
          if not run.container.lifecycle then
            return fn()
          end
          said[#said + 1] = ("hook of %s %.0f"):format(run.container.name, grace)
          hooks[run.container.name] = fn
        end,
        probe = function() end,
      }
    end
    local pod = new_pod(spec)
    local at_work = pod_worker.new(kubelet, pod)
    at_work:sync()
    pod.metadata.deletionTimestamp, pod.metadata.deletionGracePeriodSeconds = host.timestamp(), seconds
    at_work:update(pod)
    return said, function(name) exits[name] { code = 0 } end, kubelet, hooks
  end

  local function with_sidecars()
    return {
      initContainers = { { name = "a", restartPolicy = "Always" }, { name = "b", restartPolicy = "Always" } },
      containers = { { name = "main" }, { name = "other" } },
    }
  end

  it("ends the sidecars of a deleted pod after the containers, the last one first", function()
    local said, finish, kubelet = delete(with_sidecars(), 30)
    assert.same({ "main 30", "other 30" }, said)
    finish "other"
    hostlua.advance(10)
    finish "main"
    assert.same({ "main 30", "other 30", "b 20" }, said)
    hostlua.advance(19)
    finish "b"
    assert.same({ "main 30", "other 30", "b 20", "a 2" }, said)
    assert.is_nil(kubelet.is_removed)
    finish "a"
    assert.is_true(kubelet.is_removed)
  end)

  it("runs the hooks of sidecars at once, and ends them after their hooks when they have their turn", function()
    local spec = with_sidecars()
    spec.initContainers[1].lifecycle, spec.initContainers[2].lifecycle = {}, {}
    local said, finish, _, hooks = delete(spec, 30)
    local begin = { "hook of a 30", "hook of b 30", "main 30", "other 30" }
    assert.same(begin, said)
    hostlua.advance(5)
    hooks.a()
    finish "main"
    finish "other"
    assert.same(begin, said)
    hostlua.advance(5)
    hooks.b()
    assert.equal("b 20", said[5])
    finish "b"
    assert.same({ "a 20" }, { table.unpack(said, 6) })
  end)

  it("ends a sidecar whose hook takes all the time", function()
    local spec = with_sidecars()
    spec.initContainers[2].lifecycle = {}
    local said, finish, _, hooks = delete(spec, 5)
    finish "main"
    finish "other"
    hostlua.advance(5)
    assert.same({ "b 2", "a 2" }, { table.unpack(said, 4) })
    hooks.b()
    assert.equal(5, #said)
  end)

  it("ends all sidecars when the time is over, and at once when there is none", function()
    local said = delete(with_sidecars(), 5)
    hostlua.advance(5)
    assert.same({ "main 5", "other 5", "b 2", "a 2" }, said)
    said = delete(with_sidecars(), 0)
    assert.same({ "main 0", "other 0", "b 0", "a 0" }, said)
  end)

  it("starts a sidecar again whatever the policy, and stays initialized meanwhile", function()
    local kubelet, at_work = start({
      restartPolicy = "Never", initContainers = { { name = "side", restartPolicy = "Always" } },
    }, { side = { after = 60, code = 1 } })
    hostlua.advance(60)
    hostlua.advance(60)
    assert.same({ "side: CrashLoopBackOff", "main: running" }, states(kubelet))
    assert.equal("Running", kubelet.status.phase)
    assert.equal("True", condition(kubelet, "Initialized").status)
    assert.equal("containers with unready status: [side]", condition(kubelet, "Ready").message)
    at_work:close()
  end)

  it("tries again what cannot be started, and says why", function()
    local kubelet, at_work = start({
      containers = { { name = "main", envFrom = { { configMapRef = { name = "gone" } } } } },
    }, {})
    assert.same({ "main: CreateContainerConfigError" }, states(kubelet))
    assert.equal('configmap "gone" not found', kubelet.status.containerStatuses[1].state.waiting.message)
    function kubelet.read()
      return { data = {} }
    end
    at_work.kubelet.read = kubelet.read
    hostlua.advance(10)
    assert.same({ "main: running" }, states(kubelet))
  end)

  -- A pod whose runtime refuses the image "r.io/x:1".
  local function start_without_image(reason)
    local kubelet = new_kubelet()
    local told, tries = {}, 0
    kubelet.runtime = { forget = function() end, start = function()
      tries = tries + 1
      return nil, reason, "why"
    end }
    function kubelet.event(_, _, type, event, message)
      told[#told + 1] = ("%s %s: %s"):format(type, event, message)
    end
    local at_work = pod_worker.new(kubelet, new_pod { containers = { { name = "main", image = "r.io/x:1" } } })
    at_work:sync()
    hostlua.advance(0)
    return kubelet, at_work, function()
      local now = told
      told = {}
      return now
    end, function() return tries end
  end

  it("backs off from an image that cannot be pulled, longer and longer", function()
    local kubelet, at_work, told, tries = start_without_image "ErrImagePull"
    local failed = {
      'Normal Pulling: Pulling image "r.io/x:1"', 'Warning Failed: Failed to pull image "r.io/x:1": why',
      "Warning Failed: Error: ErrImagePull",
    }
    assert.same({ "main: ErrImagePull" }, states(kubelet))
    assert.same(failed, told())
    hostlua.advance(1)
    assert.same({ "main: ImagePullBackOff" }, states(kubelet))
    assert.equal('Back-off pulling image "r.io/x:1": ErrImagePull: why',
      kubelet.status.containerStatuses[1].state.waiting.message)
    assert.same({ 'Normal BackOff: Back-off pulling image "r.io/x:1"', "Warning Failed: Error: ImagePullBackOff" },
      told())
    hostlua.advance(9)
    assert.same(failed, told())
    for _, pause in ipairs { 20, 40, 80, 160, 300, 300 } do
      local before = tries()
      hostlua.advance(1)
      hostlua.advance(pause - 2)
      assert.equal(before, tries())
      hostlua.advance(1)
      assert.equal(before + 1, tries())
    end
    at_work:close()
  end)

  it("says which image is not there, or is no image", function()
    for reason, event in pairs { ErrImageNeverPull = "ErrImageNeverPull", InvalidImageName = "InspectFailed" } do
      local kubelet, at_work, told, tries = start_without_image(reason)
      assert.same({ "main: " .. reason }, states(kubelet))
      assert.same({ ("Warning %s: why"):format(event), "Warning Failed: Error: " .. reason }, told())
      hostlua.advance(10)
      assert.equal(2, tries())
      at_work:close()
    end
  end)

  it("is removed when it is deleted and its containers have ended", function()
    local kubelet, at_work, pod = start({}, {})
    pod.metadata.deletionTimestamp = host.timestamp()
    at_work:update(pod)
    assert.is_nil(kubelet.is_removed)
    hostlua.advance(0)
    assert.is_true(kubelet.is_removed)
    assert.same({ "main: Error 143" }, states(kubelet))
    assert.equal("Failed", kubelet.status.phase)
  end)

  it("has succeeded when it is deleted and its containers end well", function()
    local kubelet, at_work, pod = start({}, {})
    local handle = at_work:handle "main"
    function handle.stop() end
    pod.metadata.deletionTimestamp = host.timestamp()
    at_work:update(pod)
    hostlua.advance(0)
    assert.equal("Running", kubelet.status.phase)
    kubelet.runtime:finish(pod, 0)
    assert.equal("Succeeded", kubelet.status.phase)
  end)

  it("is ready while it ends, and probed for that alone", function()
    local probe, asked = { periodSeconds = 1, failureThreshold = 1 }, 0
    local container = { name = "main", readinessProbe = probe, livenessProbe = probe }
    local kubelet, at_work, pod = start({ containers = { container } }, {})
    hostlua.advance(1)
    local _, handle = next(kubelet.runtime.running)
    function handle.stop() end
    function handle.probe(_, _, fn)
      asked = asked + 1
      fn(false, "no answer")
    end
    pod.metadata.deletionTimestamp = host.timestamp()
    at_work:update(pod)
    hostlua.advance(0)
    assert.equal("True", condition(kubelet, "Ready").status)
    hostlua.advance(1)
    assert.same({ 1, "False" }, { asked, condition(kubelet, "Ready").status })
  end)

  it("fails beyond its activeDeadlineSeconds", function()
    local kubelet = start({ activeDeadlineSeconds = 30 }, {})
    hostlua.advance(29)
    assert.equal("Running", kubelet.status.phase)
    hostlua.advance(1)
    assert.equal("Failed", kubelet.status.phase)
    assert.equal("DeadlineExceeded", kubelet.status.reason)
    assert.equal("Pod was active on the node longer than the specified deadline", kubelet.status.message)
    assert.equal("Normal DeadlineExceeded: Pod was active on the node longer than the specified deadline",
      kubelet.last_event)
    assert.equal("PodFailed", condition(kubelet, "Ready").reason)
  end)

  -- The deadline is changed ten seconds after the start.
  local PATCHED = {
    { from = nil, to = 30, fails_after = 20 },
    { from = 60, to = 30, fails_after = 20 },
    { from = 60, to = 5, fails_after = 0 },
  }
  for _, case in ipairs(PATCHED) do
    it(("counts from its start when its deadline becomes %d after ten seconds"):format(case.to), function()
      local kubelet, at_work, pod = start({ activeDeadlineSeconds = case.from }, {})
      hostlua.advance(10)
      pod.spec.activeDeadlineSeconds = case.to
      at_work:update(pod)
      if case.fails_after > 0 then
        hostlua.advance(case.fails_after - 1)
        assert.equal("Running", kubelet.status.phase)
        hostlua.advance(1)
      end
      hostlua.advance(0)
      assert.equal("DeadlineExceeded", kubelet.status.reason)
      hostlua.advance(60)
      assert.same({ "main: Error 143" }, states(kubelet))
    end)
  end

  it("has its whole time, also when it starts late in a second", function()
    hostlua.freeze(1783072800.9)
    local kubelet = start({ activeDeadlineSeconds = 1 }, {})
    hostlua.advance(0.5)
    assert.equal("Running", kubelet.status.phase)
    hostlua.advance(0.5)
    assert.equal("DeadlineExceeded", kubelet.status.reason)
  end)

  it("counts from the start that its status knows, and starts nothing when its time is over", function()
    local kubelet = new_kubelet(function() end)
    local pod = new_pod { activeDeadlineSeconds = 30 }
    pod.status = { startTime = host.timestamp() }
    hostlua.advance(30)
    local at_work = pod_worker.new(kubelet, pod)
    at_work:queue_write()
    at_work:sync()
    hostlua.advance(0)
    assert.equal("DeadlineExceeded", kubelet.status.reason)
    assert.equal(pod.status.startTime, kubelet.status.startTime)
    assert.same({ "main: ContainerStatusUnknown 137" }, states(kubelet))
  end)

  it("ends containers that wait when it ends, and leaves those whose turn had not come", function()
    local kubelet = start({ activeDeadlineSeconds = 5 }, { main = { after = 0, code = 1 } })
    hostlua.advance(5)
    hostlua.advance(0)
    assert.same({ "main: ContainerStatusUnknown 137" }, states(kubelet))
    assert.equal(1, kubelet.status.containerStatuses[1].lastState.terminated.exitCode)
    kubelet = start({
      activeDeadlineSeconds = 5, initContainers = { { name = "a" }, { name = "b" }, { name = "c" } },
    }, { a = { after = 0, code = 0 }, b = { after = 0, code = 1 } })
    hostlua.advance(5)
    hostlua.advance(0)
    assert.same({
      "a: Completed 0", "b: ContainerStatusUnknown 137", "c: PodInitializing", "main: PodInitializing",
    }, states(kubelet))
    assert.equal("Failed", kubelet.status.phase)
  end)

  it("has not failed before its last container has ended", function()
    local kubelet, at_work, pod = start({ activeDeadlineSeconds = 30 }, {})
    local stop = at_work:handle("main").stop
    local handle = at_work:handle "main"
    function handle.stop() end
    hostlua.advance(30)
    assert.equal("Running", kubelet.status.phase)
    assert.equal("False", condition(kubelet, "Ready").status)
    pod.status = kubelet.status
    handle.stop = nil
    stop(handle)
    hostlua.advance(0)
    assert.equal("Failed", kubelet.status.phase)
    assert.equal("DeadlineExceeded", kubelet.status.reason)
  end)

  it("stays as it ended when its deadline comes", function()
    local kubelet = start({ activeDeadlineSeconds = 30, restartPolicy = "Never" }, { main = { after = 1, code = 0 } })
    hostlua.advance(60)
    assert.equal("Succeeded", kubelet.status.phase)
    assert.is_nil(kubelet.status.reason)
  end)

  it("starts a container again when its image changes, whatever its policy, and does not fail meanwhile", function()
    local kubelet, at_work, pod = start({
      restartPolicy = "Never", containers = { { name = "main", image = "a" }, { name = "other", image = "a" } },
    }, {})
    local phases, write = {}, kubelet.write_status
    function kubelet.write_status(self, stored, status)
      phases[status.phase] = true
      write(self, stored, status)
    end
    at_work:update {
      metadata = pod.metadata, status = kubelet.status,
      spec = {
        restartPolicy = "Never", containers = { { name = "main", image = "b" }, { name = "other", image = "a" } },
      },
    }
    assert.equal("Normal Killing: Container main definition changed, will be restarted", kubelet.last_event)
    hostlua.advance(0)
    hostlua.advance(0)
    assert.same({ "main: running", "other: running" }, states(kubelet))
    local main, other = table.unpack(kubelet.status.containerStatuses)
    assert.same({ "b", 1, 143 }, { main.image, main.restartCount, main.lastState.terminated.exitCode })
    assert.same({ "a", 0 }, { other.image, other.restartCount })
    assert.same({ Running = true }, phases)
    hostlua.advance(60)
    assert.equal(1, kubelet.status.containerStatuses[1].restartCount)
  end)

  it("waits in a back-off for its image, and takes the one that it has then", function()
    local kubelet, at_work, pod = start({ containers = { { name = "main", image = "a" } } },
      { main = { after = 0, code = 1 } })
    hostlua.advance(1)
    assert.same({ "main: CrashLoopBackOff" }, states(kubelet))
    pod.spec = { restartPolicy = "Always", containers = { { name = "main", image = "b" } } }
    at_work:update(pod)
    assert.same({ "main: CrashLoopBackOff" }, states(kubelet))
    hostlua.advance(10)
    assert.equal("b", kubelet.status.containerStatuses[1].image)
  end)

  it("says which generation of the pod its status is about", function()
    local kubelet, at_work, pod = start({}, {})
    pod.metadata.generation = 1
    at_work:update(pod)
    hostlua.advance(0)
    assert.equal(1, kubelet.status.observedGeneration)
    pod.status = kubelet.status
    pod.metadata.generation, kubelet.status = 2, nil
    at_work:update(pod)
    hostlua.advance(0)
    assert.equal(2, kubelet.status.observedGeneration)
    local types = {}
    for i, entry in ipairs(kubelet.status.conditions) do
      types[i] = ("%s %d"):format(entry.type, entry.observedGeneration)
    end
    assert.same({ "PodReadyToStartContainers 2", "Initialized 2", "Ready 2", "ContainersReady 2", "PodScheduled 2" },
      types)
    pod.status, kubelet.status = kubelet.status, nil
    at_work:update(pod)
    hostlua.advance(0)
    assert.is_nil(kubelet.status, "nothing is written without a change")
  end)

  it("says in one line why a container is unhealthy", function()
    local kubelet, said = new_kubelet(), nil
    local handle = {
      probe = function(_, _, fn) host.defer(function() fn(false, "cat: /ready: No such file\n\n") end) end,
      stop = function() end,
    }
    kubelet.runtime = { start = function() return handle end, forget = function() end }
    function kubelet.event(_, _, _, reason, message)
      said = reason == "Unhealthy" and message or said
    end
    local probe = { exec = { command = { "cat", "/ready" } } }
    local at_work = pod_worker.new(kubelet, new_pod { containers = { { name = "main", readinessProbe = probe } } })
    at_work:sync()
    hostlua.advance(0)
    assert.equal("Readiness probe failed: cat: /ready: No such file", said)
    at_work:close()
  end)

  for _, kind in ipairs { "startupProbe", "livenessProbe" } do
    it(("has the seconds of its %s, if it says some, to end when that fails"):format(kind), function()
      local given = {}
      local function fail(probe)
        probe.failureThreshold = 1
        local kubelet = new_kubelet()
        kubelet.runtime = { forget = function() end }
        function kubelet.runtime.start()
          return {
            probe = function(_, _, fn) host.defer(function() fn(false, "no answer") end) end,
            stop = function(_, seconds) table.insert(given, seconds) end,
          }
        end
        pod_worker.new(kubelet, new_pod {
          terminationGracePeriodSeconds = 60, containers = { { name = "main", [kind] = probe } },
        }):sync()
        hostlua.advance(0)
      end
      fail { terminationGracePeriodSeconds = 5 }
      fail {}
      assert.same({ 5, 60 }, given)
    end)
  end
end)
