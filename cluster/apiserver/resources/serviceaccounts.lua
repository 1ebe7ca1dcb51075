--- Service accounts.
---
--- Rules: kubernetes/pkg/registry/core/serviceaccount/strategy.go.
local age = require "cluster.apiserver.tables.age"


-- References to secrets say no more than a name.
local function keep_names(object)
  for i, secret in ipairs(object.secrets or {}) do
    object.secrets[i] = { name = secret.name }
  end
end


local function cells(obj, now)
  return { obj.metadata.name, age.of(obj, now) }
end


return {
  spec_changed = false, prepare_create = keep_names, prepare_update = keep_names,
  cells = cells,
}
