--- Faults between the operator and its server, which a test requests.
local virtual = require "cluster.world"

local M = {}

-- The faults by the names that tests call them.
local KINDS = {
  conflict = { kind = "refuse", status = 409, reason = "Conflict" },
  forbidden = { kind = "refuse", status = 403, reason = "Forbidden" },
  internal_error = { kind = "refuse", status = 500, reason = "InternalError" },
  unavailable = { kind = "refuse", status = 503, reason = "ServiceUnavailable" },
  too_many_requests = { kind = "refuse", status = 429, reason = "TooManyRequests" },
  timeout = { kind = "time_out" },        -- the server did it, and no answer comes
  lost_request = { kind = "lose" },       -- the server never hears of it
  lost_reply = { kind = "lose_reply" },   -- the server did it, and the connection breaks
  stale_cache = { kind = "hold" },        -- watches stand still
}

local METHODS = { create = "POST", update = "PUT", patch = "PATCH", delete = "DELETE", get = "GET", list = "GET" }


local function plural_of(server, kind)
  return "/" .. server.registry:of(kind.apiVersion, kind.kind).plural
end


function M.add(world, server, guard, settle)
  --- From now on requests of the operator fail.
  --- @param name string "conflict", "timeout", "lost_reply", "stale_cache", … (see KINDS)
  --- @param where table|nil { verb = "create", kind = Pod, times = 1 }: which requests, and how many of them; default:
  ---   the next one that fits, and for "stale_cache" all watches until it is healed
  --- @return function heals it
  function world.fault(name, where)
    guard()
    where = where or {}
    local fault = KINDS[name]
    local number = assert(virtual.fault {
      kind = fault.kind,
      status = fault.status,
      reason = fault.reason,
      method = METHODS[where.verb],
      path = where.kind and plural_of(server, where.kind),
      times = fault.kind ~= "hold" and (where.times or 1) or nil,
    })
    return function()
      assert(virtual.heal(number))
      settle()
    end
  end
end


return M
