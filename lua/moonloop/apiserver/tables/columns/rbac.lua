--- Written by tools/printer-columns.lua; the notation is described in tables/columns.lua.
return {

  ClusterRoleBinding = [[
Name string =name @name
Role string
  RoleRef can only reference a ClusterRole in the global namespace. If the RoleRef cannot be resolved, the
  Authorizer must return an error.
Age string @age
Users string wide
  Users in the clusterRoleBinding
Groups string wide
  Groups in the clusterRoleBinding
ServiceAccounts string wide
  ServiceAccounts in the clusterRoleBinding
]],

  RoleBinding = [[
Name string =name @name
Role string
  RoleRef can reference a Role in the current namespace or a ClusterRole in the global namespace. If the RoleRef
  cannot be resolved, the Authorizer must return an error.
Age string @age
Users string wide
  Users in the roleBinding
Groups string wide
  Groups in the roleBinding
ServiceAccounts string wide
  ServiceAccounts in the roleBinding
]],

}
