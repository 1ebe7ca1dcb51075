--- Cells of the kinds of rbac.authorization.k8s.io. Rules: kubernetes/pkg/printers/internalversion/printers.go,
--- kubernetes/pkg/apis/rbac/helpers.go (SubjectsStrings).
local age = require "cluster.apiserver.tables.age"

local M = {}


local function binding(obj, now)
  local by_kind = { User = {}, Group = {}, ServiceAccount = {} }
  for _, subject in ipairs(obj.subjects or {}) do
    local list = by_kind[subject.kind]
    local name = subject.kind == "ServiceAccount" and (subject.namespace or "") .. "/" .. subject.name or subject.name
    list[#list + 1] = name
  end
  return {
    obj.metadata.name, ("%s/%s"):format(obj.roleRef.kind, obj.roleRef.name), age.of(obj, now),
    table.concat(by_kind.User, ", "), table.concat(by_kind.Group, ", "), table.concat(by_kind.ServiceAccount, ", "),
  }
end


M.RoleBinding = binding
M.ClusterRoleBinding = binding


return M
