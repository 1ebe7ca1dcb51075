--- Service accounts.
---
--- Rules: kubernetes/pkg/registry/core/serviceaccount/strategy.go.
local describe = require "cluster.apiserver.resources.describe"


-- References to secrets say no more than a name.
local function keep_names(object)
  for i, secret in ipairs(object.secrets or {}) do
    object.secrets[i] = { name = secret.name }
  end
end


return describe.kind {
  plural = "serviceaccounts", kind = "ServiceAccount", short = { "sa" },
  subresources = { token = true },
  strategy = { spec_changed = false, prepare_create = keep_names, prepare_update = keep_names },
}
