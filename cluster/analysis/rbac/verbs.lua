--- Which verbs a use or a call of a script needs: the one table that `moonloop rbac` grants by. If you add a function
--- to ctx, or a field to a controller, that sends requests, add its line here.
---
--- A write needs `get` as well: when its reply is lost, the host reads the object to find out what became of it. So
--- does a watched kind: when the watch lags, and before a child that was deleted is made again.
local M = {}

--- By how a kind is declared.
M.of_use = {
  reconciles = { "get", "list", "watch" },
  owns = { "get", "list", "watch" },
  watches = { "get", "list", "watch" },
  uses = {},
}

--- By what the script calls with the kind.
M.of_call = {
  get = { "get" },
  list = { "list" },
  ensure = { "get", "create" },
  create = { "get", "create" },
  apply = { "get", "create", "patch" }, -- an apply that creates needs both
  patch = { "get", "patch" },
  delete = { "get", "delete" },
}

--- By a field of the controller, or of what reconcile returns. `on`: how the kinds are declared that it concerns.
M.of_field = {
  { field = "finalize", on = "reconciles", verbs = { "get", "patch" }, why = "its finalizer" },
  { field = "children", on = "owns", verbs = { "get", "list", "create", "patch", "delete" }, why = "returns children" },
}

--- By what the script calls with a kind that it owns, besides: an object that has lost its owner gets it back.
M.of_owned_call = {
  ensure = { "patch" },
}

--- By what the host does on behalf of every script.
M.status = { "patch" }
M.finalizers = { "update" }
M.inventory = { "get", "patch" }
M.once = { "get", "create", "patch" }

local ORDER = {
  get = 1, list = 2, watch = 3, create = 4, update = 5, patch = 6, delete = 7, bind = 8,
}

--- The verbs in a set, in kubectl's order.
function M.sorted(set)
  local list = {}
  for verb in pairs(set) do
    list[#list + 1] = verb
  end
  table.sort(list, function(a, b)
    return ORDER[a] < ORDER[b]
  end)
  return list
end


return M
