--- The emptyDirs of a pod: folders for everybody, on disk or in memory.
---
--- Rules: kubernetes/pkg/volume/emptydir/empty_dir.go, kubernetes/pkg/kubelet/cm/helpers_linux.go
--- (ResourceConfigForPod).
local quantity = require "cluster.quantity"
local totals = require "cluster.apiserver.resources.pod.totals"

local M = {}

local MODE, SET_GROUP = 511, 1024 -- 0777, 02000
local MEMORY = "Memory"


local function mode_of(pod)
  return (pod.spec.securityContext or {}).fsGroup and MODE | SET_GROUP or MODE
end


-- Bytes of an amount, or nil when it is none, 0 or less.
local function bytes_of(amount)
  local read = amount and quantity.parse(amount)
  local bytes = read and quantity.sign(read) > 0 and quantity.integer(quantity.whole(read))
  return bytes or nil
end


-- The memory that all containers of a pod may have together; nil where one of them has no limit.
local function limit_of(spec)
  local function memory(resources)
    return bytes_of(((resources or {}).limits or {}).memory)
  end
  if not memory(spec.resources) then
    for _, list in ipairs { spec.initContainers or {}, spec.containers } do
      for _, container in ipairs(list) do
        if not memory(container.resources) then
          return nil
        end
      end
    end
  end
  return bytes_of(totals.limits(spec).memory)
end


--- The bytes that an emptyDir in memory may have: the least of its sizeLimit, the pod's limit of memory, and what the
--- node has for pods. @param allocatable string? of the node  @return integer 0: nothing says how many
function M.bytes(volume, pod, allocatable)
  local least
  local function limit(bytes)
    least = bytes and math.min(least or bytes, bytes) or least
  end
  limit(bytes_of(allocatable))
  limit(limit_of(pod.spec))
  limit(bytes_of(volume.emptyDir.sizeLimit))
  return least or 0
end


--- Makes the folder of an emptyDir. One that is there stays as it is: containers may change its mode.
--- @param base table a folder of ours: cluster.process.Folder  @param path string below it
--- @return true, or nil and why not
function M.make(base, path, pod)
  return base:has(path) or base:make_folder(path, mode_of(pod))
end


--- Makes the folders of a pod's emptyDirs that are to be in memory.
--- @param place table the pod's own: see process_runtime.lua
--- @param allocatable function () -> string?, the memory that the node has for pods
--- @return table|nil list as process.memory takes it, or nil and why a folder could not be made
function M.in_memory(place, pod, allocatable)
  local list = {}
  for _, volume in ipairs(pod.spec.volumes or {}) do
    if volume.emptyDir and volume.emptyDir.medium == MEMORY then
      local path = "/volumes/" .. volume.name
      local ok, why = M.make(place.base, place.path .. path, pod)
      if not ok then
        return nil, why
      end
      list[#list + 1] = {
        path = place.folder .. path, mode = mode_of(pod), bytes = M.bytes(volume, pod, allocatable()),
      }
    end
  end
  return list
end


return M
