--- CertificateSigningRequests: those of Kubernetes' own signers are signed by the cluster's authority when they are
--- approved; those of a kubelet for its client are approved; old ones are deleted. Other signers are whoever acts for
--- them.
---
--- Rules: kubernetes/pkg/controller/certificates/{signer/signer.go,authority/policies.go,approver/sarapprove.go,
--- cleaner/cleaner.go}.
local conditions = require "cluster.apiserver.resources.certificates.conditions"
local content = require "cluster.apiserver.resources.certificates.content"
local controller = require "cluster.controllers.controller"
local host = require "cluster.host"
local instant = require "cluster.apiserver.instant"
local usages = require "cluster.controllers.certificates_usages"

local M = {}

local HOUR <const>, DAY <const> = 3600, 24 * 3600
local YEAR <const> = 365 * DAY
-- How long a certificate is good for: what is asked for, within these bounds; it begins early, for clocks that are
-- behind, and one of a long life ends as much earlier.
local LIFE_MIN <const>, LIFE_MAX <const>, EARLY <const>, SHORT <const> = 600, YEAR, 300, 8 * HOUR
local KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
local GROUP, REQUESTS = "certificates.k8s.io", "certificatesigningrequests"

-- The conditions after which a request is of no more use.
local FINAL = { Approved = true, Denied = true, Failed = true }

-- By signer: what is wrong with a request; false: nothing ever is.
local SIGNERS = {
  ["kubernetes.io/kube-apiserver-client"] = usages.client,
  [KUBELET_CLIENT] = usages.kubelet_client,
  ["kubernetes.io/kubelet-serving"] = usages.kubelet_serving,
  ["kubernetes.io/legacy-unknown"] = false,
}


local function life_of(spec)
  return math.max(LIFE_MIN, math.min(spec.expirationSeconds or LIFE_MAX, LIFE_MAX))
end


local function add_condition(object, kind, reason, message)
  local list = object.status.conditions or host.json.array {}
  list[#list + 1] = { type = kind, status = "True", reason = reason, message = message }
  object.status.conditions = list
end


local function sign(api, object)
  local spec, has = object.spec, conditions.has
  local complains = SIGNERS[spec.signerName]
  if complains == nil or object.status.certificate or not has(object, "Approved") or has(object, "Failed") then
    return
  end
  local wishes, der = content.read_request(spec.request)
  local problem = wishes and complains and complains(wishes, spec.usages)
  if not wishes then
    error(("unable to parse csr %q: %s"):format(object.metadata.name, der), 0)
  elseif problem then
    add_condition(object, "Failed", "SignerValidationFailure", problem)
  else
    local now, life = math.floor(host.now()), life_of(spec)
    local pem, why = host.x509.sign(der, spec.usages, now - EARLY, now + life - (life < SHORT and 0 or EARLY))
    if not pem then
      error("error auto signing csr: " .. why, 0)
    end
    object.status.certificate = host.base64.encode(pem)
  end
  api.write_part(object, "status")
end


-- True if the user's roles allow this request, so that nobody has to approve it.
local function may_ask(server, spec, subresource)
  local user = { name = spec.username or "", uid = spec.uid, groups = spec.groups, extra = spec.extra }
  return (server.auth:authorize(user, {
    is_resource = true, verb = "create", group = GROUP, version = "*", resource = REQUESTS, subresource = subresource,
  }))
end


local function approver(server)
  return function(api, object)
    local spec, has = object.spec, conditions.has
    if spec.signerName ~= KUBELET_CLIENT or has(object, "Approved") or has(object, "Denied") then
      return
    end
    local wishes = content.read_request(spec.request)
    if not wishes or usages.kubelet_client(wishes, spec.usages) then
      return
    end
    local message
    if wishes.common_name == spec.username and may_ask(server, spec, "selfnodeclient") then
      message = "Auto approving self kubelet client certificate after SubjectAccessReview."
    elseif may_ask(server, spec, "nodeclient") then
      message = "Auto approving kubelet client certificate after SubjectAccessReview."
    else
      return
    end
    add_condition(object, "Approved", "AutoApproved", message)
    api.write_part(object, "approval")
  end
end


-- Until when a request is kept, in seconds since 1970.
local function kept_until(object)
  local settled
  for _, condition in ipairs(object.status.conditions or {}) do
    local at = FINAL[condition.type] and type(condition.lastUpdateTime) == "string"
      and instant.read(condition.lastUpdateTime)
    if at then
      settled = math.min(settled or math.huge, at + HOUR)
    end
  end
  return settled or instant.read(object.metadata.creationTimestamp) + DAY
end


-- A request that has been decided on is of use for an hour, one that waits for a day.
local function clean(api, object)
  local seconds_left = kept_until(object) - host.now()
  if seconds_left > 0 then
    return seconds_left
  end
  api.delete(object)
end


--- Starts the controllers.
function M.start(server)
  local kind = { GROUP, "v1", "CertificateSigningRequest" }
  controller.start(server, { name = "certificatesigningrequest-approving-controller", kind = kind,
    reconcile = approver(server) })
  controller.start(server, { name = "certificatesigningrequest-signing-controller", kind = kind, reconcile = sign })
  controller.start(server, { name = "certificatesigningrequest-cleaner-controller", kind = kind, reconcile = clean })
end


return M
