--- The objects of a world that wait for something, as `moonloop top` would list them: to be tried again after a
--- failure, to be called again, for the cache. And world.settle, which runs the tries that are due within a second.
local time = require "moonloop.time"
local virtual = require "cluster.world"

local M = {}

local BACKOFF_MAX = 1 -- seconds that world.settle waits for tries
local PRECISION = 0.000001 -- seconds: an instant is told in microseconds, and rounded down
local SHOWN = 5 -- of the objects in a message


-- { controller =, kind =, name =, namespace =, state =, why =, at =, failures =, error = } of a row of the host's.
local function entry_of(row)
  local namespace, name = row.name:match "^(.-)/(.*)$"
  return {
    controller = row.controller, kind = row.kind, name = name or row.name, namespace = namespace, state = row.state,
    why = row.now, at = row.due and time.parse(row.due), failures = row.failures, error = row.error,
  }
end


--- The objects that wait, those that fail first. At most 200.
function M.list()
  local answer, why = virtual.waiting()
  if not answer then
    error(why, 0)
  end
  local list = {}
  for i, row in ipairs(answer.keys) do
    list[i] = entry_of(row)
  end
  return list
end


-- When the first of them is tried again that failed; nil: none of them is, by itself.
local function next_try(list)
  local first
  for _, entry in ipairs(list) do
    if entry.state == "fails" and entry.at and (not first or entry.at < first) then
      first = entry.at
    end
  end
  return first
end


local function line_of(entry, now)
  local parts = { entry.kind, " ", entry.namespace and entry.namespace .. "/" or "", entry.name, ": ", entry.why }
  if entry.at then
    parts[#parts + 1] = (", in %.3g s"):format(math.max(entry.at - now, 0))
  end
  if entry.error then
    parts[#parts + 1] = ": " .. entry.error
  end
  return table.concat(parts)
end


--- Lines about what waits, for a message; empty when nothing does.
function M.text(now)
  local list, lines = M.list(), {}
  for i = 1, math.min(#list, SHOWN) do
    lines[i] = "  " .. line_of(list[i], now)
  end
  if #list > SHOWN then
    lines[#lines + 1] = ("  and %d more"):format(#list - SHOWN)
  end
  return lines[1] and "\nstill waiting:\n" .. table.concat(lines, "\n") or ""
end


function M.add(world, settle, guard)
  --- Lets the operator run until nothing is left to do at this instant, and nothing to try again within a second.
  --- @return table what waits then
  function world.settle()
    guard()
    settle()
    local last, list = world.now() + BACKOFF_MAX, M.list()
    local at = next_try(list)
    while at and at <= last do
      local ok, why = virtual.advance(math.max(at - world.now(), 0) + PRECISION)
      if not ok then
        error(why, 0)
      end
      list = M.list()
      at = next_try(list)
    end
    return list
  end
end


return M
