--- CertificateSigningRequests: how they are checked, approved and denied; controllers/certificates.lua signs them.
---
--- Rules: kubernetes/pkg/apis/certificates/validation/validation.go,
--- pkg/registry/certificates/certificates/strategy.go, pkg/certauthorization, plugin/pkg/admission/certificates.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local conditions = require "cluster.apiserver.resources.certificates.conditions"
local content = require "cluster.apiserver.resources.certificates.content"
local field = require "cluster.apiserver.field"
local get = require "cluster.apiserver.verbs.get"
local host = require "cluster.host"
local patch = require "cluster.apiserver.verbs.patch"
local status = require "cluster.apiserver.status"
local update = require "cluster.apiserver.verbs.update"

local GROUP, SIGNERS = "certificates.k8s.io", "signers"
local LEGACY, CLIENT = "kubernetes.io/legacy-unknown", "kubernetes.io/kube-apiserver-client"
local MASTERS = "system:masters"
local SECONDS_MIN = 600
local USAGES = {
  "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
  "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
  "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
  "server auth", "signing", "timestamping",
}
local IS_USAGE = check.set(USAGES)
local NONE = {}


-- Sets the requesting user as the server knows it; the object's own values are dropped.
local function prepare_create(object, ctx)
  local spec, user = object.spec, ctx.request.user
  spec.username, spec.uid = user.name, user.uid
  spec.groups = user.groups and #user.groups > 0 and host.json.array(host.json.copy(user.groups)) or nil
  spec.extra = user.extra and next(user.extra) and host.json.copy(user.extra) or nil
  object.status = {}
end


local function prepare_update(new, old)
  new.spec, new.status = old.spec, old.status
end


local function prepare_status(new, old)
  new.spec = old.spec
  conditions.keep_verdicts(new, old)
  conditions.complete(new, old)
end


local function prepare_approval(new, old)
  conditions.complete(new, old)
  local new_conditions = new.status.conditions
  new.spec, new.status = old.spec, host.json.copy(old.status)
  new.status.conditions = new_conditions
end


local function check_usages(usages, old, errors)
  local known, seen, unknown_before, twice_before = {}, {}, false, false
  for _, usage in ipairs(old and old.spec.usages or NONE) do
    unknown_before = unknown_before or not IS_USAGE[usage]
    twice_before = twice_before or known[usage] == true
    known[usage] = true
  end
  if #usages == 0 then
    errors[#errors + 1] = field.required("spec.usages", "")
  end
  for i, usage in ipairs(usages) do
    if not unknown_before then
      check.choice(usage, USAGES, ("spec.usages[%d]"):format(i - 1), errors)
    end
  end
  for i, usage in ipairs(usages) do
    if seen[usage] and not twice_before then
      errors[#errors + 1] = field.duplicate(("spec.usages[%d]"):format(i - 1), usage)
    end
    seen[usage] = true
  end
end


local function check_signer(name, old, errors)
  if name == LEGACY and not (old and old.spec.signerName == LEGACY) then
    errors[#errors + 1] = field.invalid("spec.signerName", name,
      "the legacy signerName is not allowed via this API version")
  else
    content.check_signer(name, "spec.signerName", errors)
  end
end


local function check_certificate(new, old, errors)
  local now, before = new.status.certificate, old and old.status.certificate
  if old and (now == before or content.certificate_complaint(before)) then
    return
  end
  local why = content.certificate_complaint(now)
  if why then
    errors[#errors + 1] = field.invalid("status.certificate", "<certificate data>", why)
  end
end


local function check_all(object, old)
  local errors, spec = {}, object.spec
  local wishes, why = content.read_request(spec.request)
  if not wishes then
    errors[#errors + 1] = field.invalid("spec.request", spec.request or host.json.null, why)
  end
  check_usages(spec.usages or NONE, old, errors)
  check_signer(spec.signerName, old, errors)
  if spec.expirationSeconds and spec.expirationSeconds < SECONDS_MIN then
    errors[#errors + 1] = field.invalid("spec.expirationSeconds", spec.expirationSeconds,
      "may not specify a duration less than 600 seconds (10 minutes)")
  end
  conditions.check(object, old, errors)
  check_certificate(object, old, errors)
  return errors
end


-- A check of updates. `may`: what it may set, { verdict =, certificate = }.
local function validator(may)
  return function(new, old)
    local errors = check_all(new, old)
    conditions.check_update(new, old, may.verdict == true, errors)
    local now, before = new.status.certificate, old.status.certificate
    if now ~= before and not may.certificate then
      errors[#errors + 1] = field.forbidden("status.certificate", "updates may not set certificate content")
    elseif now ~= before and before then
      errors[#errors + 1] = field.forbidden("status.certificate", "updates may not modify existing certificate content")
    end
    return errors
  end
end


-- True if the user has permission for this verb on the signer, or on all signers of its domain.
local function may(ctx, verb, signer)
  for _, name in ipairs { signer, (signer:gsub("/.*", "")) .. "/*" } do
    local attributes = {
      is_resource = true, verb = verb, group = GROUP, version = "*", resource = SIGNERS, name = name,
    }
    if ctx.server.auth:authorize(ctx.request.user, attributes) then
      return true
    end
  end
  return false
end


local function admit_create(object, ctx)
  local spec = object.spec
  local wishes = spec.signerName == CLIENT and content.read_request(spec.request)
  if wishes and check.set(wishes.organizations)[MASTERS] then
    return status.forbidden(ctx.request.res, object.metadata.name,
      ("use of %s signer with %s group is not allowed"):format(CLIENT, MASTERS))
  end
end


-- Rights on signers: who approves, and who signs.
local function admit(object, old, ctx)
  local part, verb = ctx.request.subresource, nil
  if not old then
    return admit_create(object, ctx)
  elseif part == "approval" then
    verb = "approve"
  elseif part == "status" and not host.json.equal(object.status, old.status) then
    verb = "sign"
  end
  local signer = old.spec.signerName
  if verb and not may(ctx, verb, signer) then
    return status.forbidden(ctx.request.res, object.metadata.name,
      ("user not permitted to %s requests with signerName %s"):format(verb, field.quote(signer)))
  end
end


local validate_approval = validator { verdict = true }

local function through(verb)
  return function(request)
    request.prepare, request.validate = prepare_approval, validate_approval
    return verb(request)
  end
end


local function shown_state(obj)
  local text = conditions.has(obj, "Denied") and "Denied" or conditions.has(obj, "Approved") and "Approved" or "Pending"
  text = conditions.has(obj, "Failed") and text .. ",Failed" or text
  return obj.status and obj.status.certificate and text .. ",Issued" or text
end


local function cells(obj, now)
  local spec = obj.spec
  return {
    obj.metadata.name, age.of(obj, now), spec.signerName, spec.username or "",
    spec.expirationSeconds and age.duration(spec.expirationSeconds) or "<none>", shown_state(obj),
  }
end


return {
  spec_changed = false,
  name = function() end,
  prepare_create = prepare_create, prepare_update = prepare_update, prepare_status = prepare_status,
  validate = check_all, validate_update = validator {}, validate_status = validator { certificate = true },
  admit = admit,
  field_names = { ["spec.signerName"] = true },
  fields = function(object)
    return { ["spec.signerName"] = object.spec.signerName }
  end,
  subresources = { approval = { get = get, update = through(update), patch = through(patch) } },
  cells = cells,
}
