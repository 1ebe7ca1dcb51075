--- Subsets of Endpoints in the one form that they are compared and stored in: the addresses that have the same ports.
---
--- Rules: kubernetes/pkg/api/v1/endpoints/util.go (RepackSubsets), pkg/controller/endpoint/endpoints_controller.go
--- (truncateEndpoints). Ports and subsets are sorted by what they are; Kubernetes sorts them by a hash.
local host = require "cluster.host"

local M = {}

local NONE = {}
local ANY_PORT = {} -- stands for the ports of a subset that has none


local function id_of(address)
  return address.ip .. " " .. ((address.targetRef or NONE).uid or "")
end


local function key_of(port)
  return port == ANY_PORT and "" or ("%s %d %s %s"):format(port.name or "", port.port, port.protocol or "TCP",
    port.appProtocol or "")
end


-- Port by port, which addresses have it. @return table list of { port =, key =, ready = by id }, in their order
-- @return table by id: address
local function unpack_subsets(subsets)
  local list, by_key, addresses = {}, {}, {}
  local function note(place, address, is_ready)
    local id = id_of(address)
    addresses[id] = addresses[id] or address
    place.ready[id] = is_ready and place.ready[id] ~= false -- ready only if it is so everywhere
  end
  for _, subset in ipairs(subsets) do
    for _, port in ipairs(#(subset.ports or NONE) > 0 and subset.ports or { ANY_PORT }) do
      local key = key_of(port)
      local place = by_key[key]
      if not place then
        place = { port = port, key = key, ready = {} }
        by_key[key], list[#list + 1] = place, place
      end
      for _, address in ipairs(subset.addresses or NONE) do
        note(place, address, true)
      end
      for _, address in ipairs(subset.notReadyAddresses or NONE) do
        note(place, address, false)
      end
    end
  end
  table.sort(list, function(a, b)
    return a.key < b.key
  end)
  return list, addresses
end


-- The addresses of a port in their order, and a text that is the same for ports with the same ones.
local function ids_of(place)
  local ids, marks = {}, {}
  for id in pairs(place.ready) do
    ids[#ids + 1] = id
  end
  table.sort(ids)
  for i, id in ipairs(ids) do
    marks[i] = (place.ready[id] and "+" or "-") .. id
  end
  return ids, table.concat(marks, "\n")
end


local function new_subset(place, ids, addresses)
  local ready, unready = host.json.array {}, host.json.array {}
  for _, id in ipairs(ids) do
    table.insert(place.ready[id] and ready or unready, addresses[id])
  end
  return { addresses = ready[1] and ready, notReadyAddresses = unready[1] and unready }
end


--- @param subsets table list  @return table list of new subsets; their addresses are those of the old ones
function M.repack(subsets)
  local packed, by_addresses = host.json.array {}, {}
  local places, addresses = unpack_subsets(subsets)
  for _, place in ipairs(places) do
    local ids, text = ids_of(place)
    local subset = by_addresses[text]
    if not subset then
      subset = new_subset(place, ids, addresses)
      by_addresses[text], packed[#packed + 1] = subset, subset
    end
    if place.port ~= ANY_PORT then
      subset.ports = subset.ports or host.json.array {}
      table.insert(subset.ports, place.port)
    end
    host.give_way()
  end
  return packed
end


local function count(subsets, name)
  local sum = 0
  for _, subset in ipairs(subsets) do
    sum = sum + #(subset[name] or NONE)
  end
  return sum
end


-- Keeps `max` addresses of that name, of each subset its share.
local function keep_share(subsets, name, max)
  local all, left = count(subsets, name), max
  for _, subset in ipairs(subsets) do
    local list = subset[name] or NONE
    local kept = math.min(math.ceil(#list / all * max), left, #list)
    subset[name] = kept > 0 and host.json.array { table.unpack(list, 1, kept) } or nil
    left = left - kept
  end
end


--- Leaves out addresses beyond `max`, those that are not ready first. @return boolean true if there were any
function M.truncate(subsets, max)
  local ready = count(subsets, "addresses")
  if ready + count(subsets, "notReadyAddresses") <= max then
    return false
  elseif ready > max then
    keep_share(subsets, "addresses", max)
  end
  keep_share(subsets, "notReadyAddresses", math.max(max - ready, 0))
  return true
end


return M
