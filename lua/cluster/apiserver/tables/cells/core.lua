--- Cells of the kinds of the core group.
---
--- Each function takes an object and the time (seconds since 1970) and returns the cells in the order of
--- kinds.lua. Rules: kubernetes/pkg/printers/internalversion/printers.go.
local age = require "cluster.apiserver.tables.age"
local event = require "cluster.apiserver.tables.cells.event"
local text = require "cluster.apiserver.tables.text"
local volume = require "cluster.apiserver.tables.cells.volume"

local M = {
  Node = require "cluster.apiserver.tables.cells.node",
  PersistentVolume = volume.volume,
  PersistentVolumeClaim = volume.claim,
  Pod = require "cluster.apiserver.tables.cells.pod",
  Service = require "cluster.apiserver.tables.cells.service",
}

local ADDRESSES_SHOWN = 3


local function size(map)
  local count = 0
  for _ in pairs(map or {}) do
    count = count + 1
  end
  return count
end


function M.ConfigMap(obj, now)
  return { obj.metadata.name, size(obj.data) + size(obj.binaryData), age.of(obj, now) }
end


function M.Secret(obj, now)
  return { obj.metadata.name, obj.type or "", size(obj.data), age.of(obj, now) }
end


function M.ServiceAccount(obj, now)
  return { obj.metadata.name, age.of(obj, now) }
end


function M.Namespace(obj, now)
  return { obj.metadata.name, obj.status and obj.status.phase or "", age.of(obj, now) }
end


function M.Event(obj, now)
  return event(obj, now, obj.involvedObject or {}, {
    message = obj.message or "", count = obj.count, first = obj.firstTimestamp, last = obj.lastTimestamp,
    source = obj.source,
  })
end


-- "10.0.0.1:80", "[::1]:80"
local function endpoint(address, port)
  if not port then
    return address.ip
  end
  return (address.ip:find(":", 1, true) and "[%s]:%d" or "%s:%d"):format(address.ip, port.port)
end


local function add_subset(list, subset)
  local ports = subset.ports or {}
  for i = 1, math.max(#ports, 1) do
    for _, address in ipairs(subset.addresses or {}) do
      list[#list + 1] = endpoint(address, ports[i])
    end
  end
end


function M.Endpoints(obj, now)
  local list = {}
  for _, subset in ipairs(obj.subsets or {}) do
    add_subset(list, subset)
  end
  local shown = obj.subsets and obj.subsets[1] and text.cut(list, ADDRESSES_SHOWN, "") or "<none>"
  return { obj.metadata.name, shown, age.of(obj, now) }
end


function M.PodTemplate(obj)
  local names, images = text.containers(obj.template and obj.template.spec)
  local metadata = obj.template and obj.template.metadata or {}
  return { obj.metadata.name, names, images, text.labels(metadata.labels) }
end


return M
