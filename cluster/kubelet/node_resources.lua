--- The resources of the node: those of this machine, or less if its control group has limits, and the pods' part.
---
--- Rules: kubernetes/pkg/kubelet/nodestatus/setters.go (MachineInfo), eviction/defaults_linux.go (DefaultEvictionHard,
--- which a kubelet keeps back), cm/node_container_manager_linux.go (getNodeAllocatableAbsoluteImpl).
local quantity = require "cluster.quantity"

local M = {}

local RESERVED_MEMORY <const> = 100 << 20
local RESERVED_STORAGE <const> = 0.1 -- of the file system
local GROUPS <const> = "/sys/fs/cgroup"
local UNLIMITED <const> = 1 << 60 -- version 1 says "no limit" with a number above this


--- The text of a file of the machine, or nil.
function M.read_file(path)
  local file = io.open(path)
  local text = file and file:read "a"
  if file then
    file:close()
  end
  return text
end


-- How many CPUs a list as "0-3,8" has.
local function count_cpus(list)
  local count = 0
  for first, last in list:gmatch "(%d+)%-?(%d*)" do
    count = count + (tonumber(last) or tonumber(first)) - tonumber(first) + 1
  end
  return count
end


-- Calls fn with the folder of each control group that the process is in, up to the root: of version 2 for the
-- controller "", else of version 1. A container may see the root alone, whatever its path is called.
local function each_group(read, controller, fn)
  for controllers, path in (read "/proc/self/cgroup" or ""):gmatch "%d+:([^\n:]*):([^\n]*)" do
    if ("," .. controllers .. ","):find("," .. controller .. ",", 1, true) then
      local base = controller == "" and GROUPS or GROUPS .. "/" .. controller
      repeat
        path = path:gsub("/+$", "")
        fn(base .. path)
        local above = path:match "^(.*)/[^/]*$"
        path = above or ""
      until not above
    end
  end
end


-- Bytes of memory, of the machine or of its tightest group.
local function memory_of(read)
  local least = (tonumber((read "/proc/meminfo" or ""):match "MemTotal:%s*(%d+) kB") or 0) * 1024
  local function take(text)
    local limit = math.tointeger(tonumber(text))
    least = limit and limit < UNLIMITED and math.min(least, limit) or least
  end
  each_group(read, "", function(folder) take(read(folder .. "/memory.max")) end)
  each_group(read, "memory", function(folder) take(read(folder .. "/memory.limit_in_bytes")) end)
  return least
end


-- Thousandths of a CPU.
local function cpus_of(read)
  local least = 1000 * count_cpus((read "/proc/self/status" or ""):match "Cpus_allowed_list:%s*([%d,-]+)" or "")
  local function take(quota, period)
    quota, period = tonumber(quota), tonumber(period)
    least = quota and quota > 0 and period and math.min(least, math.ceil(1000 * quota / period)) or least
  end
  each_group(read, "", function(folder) take((read(folder .. "/cpu.max") or ""):match "^(%d+) (%d+)") end)
  each_group(read, "cpu", function(folder)
    take(read(folder .. "/cpu.cfs_quota_us"), read(folder .. "/cpu.cfs_period_us"))
  end)
  return least
end


local function cpu_text(thousandths)
  return quantity.canonical(("%dm"):format(thousandths))
end


local function bytes_text(bytes)
  return quantity.write(quantity.of(bytes, "binary"))
end


--- Finds out what the node has.
--- @param read function (path) -> text | nil: M.read_file
--- @param storage integer|nil bytes of the file system that pods write to
--- @return table { capacity =, allocatable = }: two of the lists in a Node's status, without pods
function M.of(read, storage)
  local cpu, memory = cpu_text(cpus_of(read)), memory_of(read)
  local capacity = { cpu = cpu, memory = bytes_text(memory) }
  local allocatable = { cpu = cpu, memory = bytes_text(math.max(memory - RESERVED_MEMORY, 0)) }
  if storage then
    capacity["ephemeral-storage"] = bytes_text(storage)
    allocatable["ephemeral-storage"] = bytes_text(storage - math.floor(storage * RESERVED_STORAGE))
  end
  return { capacity = capacity, allocatable = allocatable }
end


return M
