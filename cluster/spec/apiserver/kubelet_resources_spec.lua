-- The resources of the node, and those of containers as variables and files have them.
local env = require "cluster.kubelet.env"
local fake_runtime = require "cluster.kubelet.fake_runtime"
local kubelet = require "cluster.kubelet"
local node_resources = require "cluster.kubelet.node_resources"
local testserver = require "testserver"

local function machine(files)
  return function(path)
    return files[path]
  end
end

local STATUS = "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\n"
local MEMORY = "MemTotal:       8388608 kB\nMemFree: 1 kB\n"


describe("The resources of the node", function()
  -- On 8 GiB, unless a control group says less.
  local MACHINES = {
    { "are those of the machine", cpus = "0-3", cpu = "4", memory = "8Gi" },
    { "are the CPUs that the process may use", cpus = "0,2-3,8", cpu = "4", memory = "8Gi" },
    { "are what its group may use", cpus = "0-7", cpu = "1500m", memory = "2Gi", files = {
      ["/proc/self/cgroup"] = "0::/a/b\n",
      ["/sys/fs/cgroup/a/b/memory.max"] = "max\n", ["/sys/fs/cgroup/a/memory.max"] = "2147483648\n",
      ["/sys/fs/cgroup/a/b/cpu.max"] = "150000 100000\n", ["/sys/fs/cgroup/a/cpu.max"] = "max 100000\n",
    } },
    { "are those of a group that sees itself as the root", cpus = "0-7", cpu = "8", memory = "1Gi", files = {
      ["/proc/self/cgroup"] = "0::/docker/x\n", ["/sys/fs/cgroup/memory.max"] = "1073741824\n",
    } },
    { "are what groups of version 1 may use", cpus = "0-7", cpu = "500m", memory = "1Gi", files = {
      ["/proc/self/cgroup"] = "4:memory:/a\n3:cpu,cpuacct:/\n1:cpu:/b\n0::/\n",
      ["/sys/fs/cgroup/memory/a/memory.limit_in_bytes"] = "1073741824\n",
      ["/sys/fs/cgroup/memory/memory.limit_in_bytes"] = "9223372036854771712\n",
      ["/sys/fs/cgroup/cpu/b/cpu.cfs_quota_us"] = "50000\n", ["/sys/fs/cgroup/cpu/b/cpu.cfs_period_us"] = "100000\n",
      ["/sys/fs/cgroup/cpu/cpu.cfs_quota_us"] = "-1\n", ["/sys/fs/cgroup/cpu/cpu.cfs_period_us"] = "100000\n",
    } },
  }
  for _, case in ipairs(MACHINES) do
    it(case[1], function()
      local files = case.files or {}
      files["/proc/meminfo"], files["/proc/self/status"] = MEMORY, STATUS:format(case.cpus)
      local found = node_resources.of(machine(files), 100 << 30)
      assert.same({ cpu = case.cpu, memory = case.memory, ["ephemeral-storage"] = "100Gi" }, found.capacity)
    end)
  end

  it("are kept back in part, as a kubelet does", function()
    local files = { ["/proc/meminfo"] = MEMORY, ["/proc/self/status"] = STATUS:format "0" }
    assert.same({ cpu = "1", memory = "8092Mi", ["ephemeral-storage"] = "90Gi" },
      node_resources.of(machine(files), 100 << 30).allocatable)
    assert.is_nil(node_resources.of(machine(files)).allocatable["ephemeral-storage"])
  end)

  it("are found on this machine", function()
    local found = node_resources.of(node_resources.read_file)
    assert.matches("^[1-9]%d*m?$", found.capacity.cpu)
    assert.matches("^[1-9]%d*%ai?$", found.capacity.memory)
  end)

  it("are in its status, with the pods that it takes", function()
    local world = testserver.new()
    kubelet.new(world.server, {
      runtime = fake_runtime.new(), max_pods = 7,
      resources = { capacity = { cpu = "2" }, allocatable = { cpu = "1900m" } },
    }):start()
    local status = world:must("GET", "/api/v1/nodes/moonloop").status
    assert.same({ cpu = "2", pods = "7" }, status.capacity)
    assert.same({ cpu = "1900m", pods = "7" }, status.allocatable)
  end)
end)


describe("A resource of a container", function()
  local NODE = { status = { allocatable = { cpu = "4", memory = "8092Mi", ["ephemeral-storage"] = "90Gi" } } }
  local POD = {
    metadata = { namespace = "ns" },
    spec = {
      nodeName = "n",
      initContainers = { { name = "first", resources = { limits = { cpu = "3" } } } },
      containers = {
        { name = "a", resources = {
          limits = { cpu = "1500m", memory = "1Gi", ["hugepages-2Mi"] = "4Mi" },
          requests = { cpu = "1300m", memory = "1000001k" },
        } },
        { name = "b" },
        { name = "zero", resources = { limits = { cpu = "0" } } },
      },
    },
  }

  local function read(kind, _, name)
    return kind == "Node" and name == "n" and NODE or nil
  end

  local TEXTS = {
    { "limits.cpu", nil, "2" }, { "limits.cpu", "1m", "1500" }, { "limits.cpu", "0", "2" },
    { "requests.cpu", "1m", "1300" }, { "requests.cpu", "1", "2" },
    { "limits.memory", nil, "1073741824" }, { "limits.memory", "1Mi", "1024" }, { "limits.memory", "1G", "2" },
    { "requests.memory", "1M", "1001" }, { "limits.hugepages-2Mi", "1Mi", "4" },
    { "requests.ephemeral-storage", nil, "0" }, { "limits.ephemeral-storage", "1Gi", "90" },
    { "limits.cpu", "1m", "4000", "b" }, { "limits.memory", "1Mi", "8092", "b" }, { "requests.cpu", "1m", "0", "b" },
    { "limits.hugepages-2Mi", nil, "0", "b" }, { "limits.cpu", nil, "4", "zero" }, { "limits.cpu", nil, "3", "first" },
  }
  for _, case in ipairs(TEXTS) do
    local resource, divisor, text, name = table.unpack(case, 1, 4)
    it(("%s of %s in units of %s is %s"):format(resource, name or "a", divisor or "1", text), function()
      local ref = { resource = resource, divisor = divisor, containerName = name }
      assert.equal(text, (env.resource_text(POD, "a", ref, read)))
    end)
  end

  it("is limited by its pod before the node limits it", function()
    local pod = { metadata = {}, spec = {
      nodeName = "n", resources = { limits = { cpu = "2" } }, containers = { { name = "a" } },
    } }
    assert.equal("2", (env.resource_text(pod, "a", { resource = "limits.cpu" }, read)))
    assert.equal("8092", (env.resource_text(pod, "a", { resource = "limits.memory", divisor = "1Mi" }, read)))
  end)

  it("is a variable, and says why it cannot be one", function()
    local function variables(ref)
      local container = { name = "b", env = { { name = "X", valueFrom = { resourceFieldRef = ref } } } }
      return env.variables(POD, container, read, {})
    end
    assert.same({ X = "4" }, variables { resource = "limits.cpu" })
    assert.same({ X = "1500" }, variables { containerName = "a", resource = "limits.cpu", divisor = "1m" })
    assert.same({ nil, "container gone not found", n = 2 },
      table.pack(variables { containerName = "gone", resource = "limits.cpu" }))
    assert.same({ nil, "unsupported container resource : limits.x", n = 2 },
      table.pack(variables { resource = "limits.x" }))
  end)
end)
