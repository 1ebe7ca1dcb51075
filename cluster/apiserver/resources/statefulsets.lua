--- StatefulSets.
---
--- Rules: kubernetes/pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation/validation.go,
--- pkg/registry/apps/statefulset/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local claim = require "cluster.apiserver.resources.claim"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"
local template = require "cluster.apiserver.resources.pod.template"
local text = require "cluster.apiserver.tables.text"
local warnings = require "cluster.apiserver.resources.pod.warnings"
local workload = require "cluster.apiserver.resources.workload"

local NUMBERS = {
  "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
  "collisionCount",
}
local PARTS = { "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas" }

-- Fields of a spec that may change, in the order of the message.
local CHANGEABLE = {
  "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy",
  "minReadySeconds",
}
local ONLY = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
  .. "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"


local function default_strategy(strategy)
  if not strategy.type then
    strategy.type = "RollingUpdate"
    strategy.rollingUpdate = strategy.rollingUpdate or {}
  end
  if strategy.type == "RollingUpdate" and strategy.rollingUpdate then
    strategy.rollingUpdate.partition = strategy.rollingUpdate.partition or 0
  end
end


local function default_claims(claims)
  for _, value in ipairs(claims or {}) do
    value.apiVersion, value.kind = "v1", "PersistentVolumeClaim"
    value.spec.volumeMode = value.spec.volumeMode or "Filesystem"
    value.status.phase = value.status.phase or "Pending"
  end
end


local function defaults(object)
  local spec = object.spec
  spec.podManagementPolicy = spec.podManagementPolicy or "OrderedReady"
  default_strategy(spec.updateStrategy)
  local retention = spec.persistentVolumeClaimRetentionPolicy or {}
  retention.whenDeleted = retention.whenDeleted or "Retain"
  retention.whenScaled = retention.whenScaled or "Retain"
  spec.persistentVolumeClaimRetentionPolicy = retention
  spec.replicas = spec.replicas or 1
  spec.revisionHistoryLimit = spec.revisionHistoryLimit or 10
  default_claims(spec.volumeClaimTemplates)
  workload.default_template(object)
end


local function check_strategy(strategy, errors)
  local path = "spec.updateStrategy"
  if strategy.type == "RollingUpdate" then
    if strategy.rollingUpdate then
      check.not_negative(strategy.rollingUpdate.partition, path .. ".rollingUpdate.partition", errors)
    end
    return
  end
  local rolling = strategy.rollingUpdate
  local inner = rolling and check.go_struct { { "Partition", rolling.partition or 0 }, { "MaxUnavailable" } }
  if strategy.type ~= "OnDelete" then
    local strategy_text = check.go_struct { { "Type", strategy.type }, { "RollingUpdate", inner, inner ~= nil } }
    errors[#errors + 1] = check.invalid_text(path, strategy_text, "must be 'RollingUpdate' or 'OnDelete'")
  elseif rolling then
    errors[#errors + 1] = check.invalid_text(path .. ".rollingUpdate", inner,
      "only allowed for updateStrategy 'RollingUpdate'")
  end
end


-- The template as its pods will be: the controller gives them names and the volumes of their claims.
local function completed(spec)
  local made = host.json.copy(spec.template)
  made.spec.subdomain, made.spec.hostname = nil, nil
  local volumes, claimed = host.json.array {}, {}
  for _, value in ipairs(spec.volumeClaimTemplates or {}) do
    local name = value.metadata.name or ""
    if not claimed[name] then
      volumes[#volumes + 1] = { name = name, persistentVolumeClaim = { claimName = name } }
    end
    claimed[name] = true
  end
  for _, volume in ipairs(made.spec.volumes or {}) do
    if not claimed[volume.name] then
      volumes[#volumes + 1] = volume
    end
  end
  made.spec.volumes = #volumes > 0 and volumes or nil
  return made
end


-- How many pods of a rolling update may be missing is not configurable, by default, on a real server either.
local function drop_disabled(object)
  local rolling = object.spec.updateStrategy.rollingUpdate
  if rolling then
    rolling.maxUnavailable = nil
  end
end


local function prepare_create(object)
  drop_disabled(object)
  workload.clear_status(object)
end


local function prepare_update(new, old)
  drop_disabled(new)
  workload.keep_status(new, old)
end


local function check_policies(spec, errors)
  local policy = spec.podManagementPolicy
  if policy ~= "OrderedReady" and policy ~= "Parallel" then
    errors[#errors + 1] = field.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
  end
  check_strategy(spec.updateStrategy, errors)
  local retention, path = spec.persistentVolumeClaimRetentionPolicy, "spec.persistentVolumeClaimRetentionPolicy"
  check.choice(retention.whenDeleted, { "Retain", "Delete" }, path .. ".whenDeleted", errors)
  check.choice(retention.whenScaled, { "Retain", "Delete" }, path .. ".whenScaled", errors)
end


-- Checks fields that cannot change later; updates need no check of them.
local function check_fixed(spec, errors)
  for i, volume in ipairs(spec.volumeClaimTemplates or {}) do
    claim.validate(volume.spec, ("spec.volumeClaimTemplates[%d].spec"):format(i - 1), errors)
  end
end


local function check_spec(spec, is_new, errors)
  check_policies(spec, errors)
  if is_new then
    check_fixed(spec, errors)
  end
  workload.not_negative(spec, "spec", { "replicas", "minReadySeconds" }, errors)
  if spec.ordinals then
    check.not_negative(spec.ordinals.start, "spec.ordinals.start", errors)
  end
  if is_new and spec.serviceName ~= "" then
    check.each(errors, "spec.serviceName", spec.serviceName, names.label(spec.serviceName))
  end
  if workload.check_selector(spec.selector, "statefulset", errors) then
    workload.check_labels(spec, errors)
    template.validate(completed(spec), "spec.template", errors)
  else
    errors[#errors + 1] = field.invalid("spec.selector", spec.selector, "")
  end
  workload.check_endless(spec.template.spec, "StatefulSet", errors)
end


local function validate(object)
  local errors = {}
  check_spec(object.spec, true, errors)
  return errors
end


local function validate_update(new, old)
  local errors = {}
  check_spec(new.spec, false, errors)
  local same = host.json.copy(new.spec)
  for _, name in ipairs(CHANGEABLE) do
    same[name] = old.spec[name]
  end
  if not host.json.equal(same, old.spec) then
    errors[#errors + 1] = field.forbidden("spec", ONLY)
  end
  return errors
end


local function validate_status(new, old)
  local errors = {}
  workload.not_negative(new.status, "status", NUMBERS, errors)
  workload.check_counts(new.status, PARTS, "status.readyReplicas", errors)
  workload.check_collisions(new, old, errors)
  return errors
end


local function cells(obj, now)
  local spec, status = obj.spec, obj.status or {}
  local containers, images = text.containers(spec.template.spec)
  return {
    obj.metadata.name, ("%d/%d"):format(status.readyReplicas or 0, spec.replicas or 0), age.of(obj, now), containers,
    images,
  }
end


return {
  name = names.name_is_label,
  defaults = defaults,
  prepare_create = prepare_create,
  prepare_update = prepare_update,
  prepare_status = workload.keep_spec,
  warnings = warnings.template,
  validate = validate,
  validate_update = validate_update,
  validate_status = validate_status,
  cells = cells,
}
