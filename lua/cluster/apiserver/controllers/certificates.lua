--- CertificateSigningRequests: nothing here signs certificates, and an Event says so of a request that Kubernetes' own
--- signers would sign. Other signers are whoever acts for them.
local runner = require "cluster.apiserver.controllers.runner"

local M = {}

local OWN = "kubernetes.io/"
local NOTHING_SIGNS = "nothing here acts for signer %s: the approved request is stored, and gets no certificate"


local function is_approved(object)
  for _, condition in ipairs(object.status and object.status.conditions or {}) do
    if condition.type == "Approved" and condition.status == "True" then
      return true
    end
  end
  return false
end


local function reconcile(api, object)
  local signer = object.spec.signerName
  if signer:sub(1, #OWN) == OWN and is_approved(object) and not object.status.certificate then
    api.event(object, "Warning", "NotSigned", NOTHING_SIGNS:format(signer))
  end
end


--- Starts the controller. A change after the approval is no reason for one more Event.
function M.start(server)
  local res = server.registry:by_kind("certificates.k8s.io", "v1", "CertificateSigningRequest")
  runner.start(server, {
    name = "csr-signing-controller", kind = { res.group, res.version, res.kind },
    ignores = function(_, previous)
      return previous ~= nil and is_approved(server.store.object(res, previous))
    end,
    reconcile = reconcile,
  })
end


return M
