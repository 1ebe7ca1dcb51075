--- Ports of the machine that lead to pods: for each port of a container that same port on 127.0.0.1, where it is free,
--- and its hostPort, which a pod asks for. Several pods may have one: the one that came first is served.
local network = require "cluster.network"

local M = {}
M.__index = M

local ADDRESS = "127.0.0.1"


--- @param complain function(pod, message): a hostPort cannot be had
function M.new(complain)
  local ports = {} -- number → { listener =, targets = list of { uid =, address =, port = } }
  return setmetatable({ complain = complain, ports = ports }, M)
end


local function open(place, number)
  return network.listen {
    address = ADDRESS,
    port = number,
    machine = true,
    target = function()
      local first = place.targets[1]
      return first.address, first.port
    end,
  }
end


-- @return true, or nil and why the port cannot be had
local function add(self, number, target)
  local place = self.ports[number] or { targets = {} }
  for _, known in ipairs(place.targets) do
    if known.uid == target.uid and known.port == target.port then
      return true
    end
  end
  table.insert(place.targets, target)
  if not place.listener then
    local why
    place.listener, why = open(place, number)
    if not place.listener then
      return nil, why
    end
  end
  self.ports[number] = place
  return true
end


local function add_port(self, pod, address, port)
  local target = { uid = pod.metadata.uid, address = address, port = port.containerPort }
  if (port.hostPort or 0) > 0 then
    local done, why = add(self, port.hostPort, target)
    if not done then
      self.complain(pod, ("hostPort %d: %s"):format(port.hostPort, why))
    end
  end
  add(self, port.containerPort, target) -- where it is free
end


--- Serves the ports of a pod that is about to start.
function M:add(pod, address)
  for _, containers in ipairs { pod.spec.containers, pod.spec.initContainers } do
    for _, container in ipairs(containers) do
      for _, port in ipairs(container.ports or {}) do
        if (port.protocol or "TCP") == "TCP" then
          add_port(self, pod, address, port)
        end
      end
    end
  end
end


--- Serves those of a pod no more.
function M:remove(uid)
  for number, place in pairs(self.ports) do
    for i = #place.targets, 1, -1 do
      if place.targets[i].uid == uid then
        table.remove(place.targets, i)
      end
    end
    if #place.targets == 0 then
      place.listener:close()
      self.ports[number] = nil
    end
  end
end


return M
