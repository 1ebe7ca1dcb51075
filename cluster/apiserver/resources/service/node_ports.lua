--- The ports that services have on nodes.
---
--- Rules: kubernetes/pkg/registry/core/service/storage/alloc.go, pkg/registry/core/service/portallocator.
local allocated = require "cluster.apiserver.resources.service.allocated"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"

local M = {}

local FIRST, LAST = 30000, 32767
local TRIES = 64


--- Returns true if a service of that spec has ports on nodes.
function M.needed(spec)
  return spec.type == "NodePort" or spec.type == "LoadBalancer"
end


local function free_port(used)
  for _ = 1, TRIES do
    local port = FIRST + host.random(LAST - FIRST + 1)
    if not used[port] then
      return port
    end
  end
  for port = FIRST, LAST do
    if not used[port] then
      return port
    end
  end
end


local function complaint(port, used)
  if not used.dry and (port < FIRST or port > LAST) then
    return ("provided port is not in the valid range. The range of valid ports is %d-%d"):format(FIRST, LAST)
  elseif used[port] then
    return "provided port is already allocated"
  end
end


-- The port on nodes that somebody asked for, for that port of the service.
local function requested(ports, number)
  for _, port in ipairs(ports) do
    if port.port == number and port.nodePort then
      return port.nodePort
    end
  end
end


local function claim(used, port, index)
  local why = complaint(port, used)
  if why then
    return { field.invalid(("spec.ports[%d].nodePort"):format(index - 1), port, why) }
  end
  used[port] = true
end


-- One port of a service; ports of one number, for two protocols, are one on the nodes too.
-- @return table|nil field errors
local function allocate_one(ports, index, by_number, used)
  local port = ports[index]
  local known = by_number[port.port]
  if known then
    if port.nodePort and port.nodePort ~= known then
      return claim(used, port.nodePort, index)
    end
    port.nodePort = known
    return nil
  end
  local wanted = requested(ports, port.port)
  if wanted then
    local errors = claim(used, wanted, index)
    if errors then
      return errors
    end
  else
    wanted = free_port(used)
    used[wanted] = true
  end
  port.nodePort, by_number[port.port] = wanted, wanted
end


--- Gives the service's ports numbers on nodes, or checks those it chose; a dry run does not look at the range.
--- @param options table { old = spec before an update, dry = boolean }
--- @return table|nil field errors
function M.allocate(spec, server, uid, options)
  if not M.needed(spec) then
    return nil
  end
  local used, by_number, old = allocated.ports(server, uid), {}, options.old
  used.dry = options.dry
  for index, port in ipairs(spec.ports or {}) do
    if port.nodePort or spec.allocateLoadBalancerNodePorts ~= false then
      local errors = allocate_one(spec.ports, index, by_number, used)
      if errors then
        return errors
      end
    end
  end
  if spec.type == "LoadBalancer" and spec.externalTrafficPolicy == "Local" and not spec.healthCheckNodePort then
    spec.healthCheckNodePort = old and old.healthCheckNodePort or free_port(used)
  end
end


--- An update that leaves out ports on nodes keeps those that are there, by the names of ports.
function M.keep(spec, old)
  if not M.needed(spec) or not M.needed(old) then
    return
  end
  local by_name, used = {}, {}
  for _, port in ipairs(old.ports or {}) do
    by_name[port.name or ""] = port.nodePort
  end
  for _, port in ipairs(spec.ports or {}) do
    used[port.nodePort or 0] = true
  end
  for _, port in ipairs(spec.ports or {}) do
    local before = by_name[port.name or ""]
    if not port.nodePort and before and not used[before] then
      port.nodePort = before
    end
  end
end


--- Ports on nodes go with a type that has none, unless they were changed in the same update.
function M.drop(spec, old)
  if M.needed(spec) or not M.needed(old) then
    return
  end
  local before = {}
  for _, port in ipairs(old.ports or {}) do
    before[port.nodePort or 0] = true
  end
  for _, port in ipairs(spec.ports or {}) do
    if not before[port.nodePort or 0] then
      return
    end
  end
  for _, port in ipairs(spec.ports or {}) do
    port.nodePort = nil
  end
end


return M
