--- Features of CRDs that the embedded server does not have: it refuses them, and never ignores them silently.
local status = require "cluster.apiserver.status"


--- A status when the CRD asks for what the embedded server does not do, or nil.
return function(crd)
  local conversion = crd.spec.conversion
  if conversion and conversion.strategy == "Webhook" then
    return status.not_implemented("conversion by webhook (spec.conversion.strategy: Webhook)")
  end
end
