--- Changing what the containers of a pod request, while the pod runs.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidatePodResize),
--- pkg/registry/core/pod/strategy.go (dropNonResizeUpdates).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local metadata = require "cluster.apiserver.metadata"
local qos = require "cluster.apiserver.resources.pod.qos"
local spec_rules = require "cluster.apiserver.resources.pod.spec"

local M = {}

local NONE = {}
local LISTS = { "containers", "initContainers" }
local AMOUNTS = { "limits", "requests" }


-- The containers of before with the amounts of those given; the ones given when they are others, for these are refused.
local function merged(new, before)
  local list = host.json.copy(before)
  for i, container in ipairs(new) do
    if container.name ~= list[i].name then
      return new
    end
    list[i].resources, list[i].resizePolicy = container.resources, container.resizePolicy
  end
  return list
end


--- Takes over from an update what a resize may change: everything else stays as it was.
function M.prepare(new, old)
  for _, name in ipairs(LISTS) do
    if #check.list(new.spec[name]) ~= #check.list(old.spec[name]) then
      return
    end
  end
  local spec = host.json.copy(old.spec)
  for _, name in ipairs(LISTS) do
    spec[name] = new.spec[name] and merged(new.spec[name], old.spec[name])
  end
  new.spec, new.status = spec, old.status
  metadata.keep(new.metadata, old.metadata)
end


-- @return boolean whether the containers are those of before, in their order
local function check_order(new, old, errors)
  local before = #errors
  for _, name in ipairs(LISTS) do
    local list, others, path = check.list(new[name]), check.list(old[name]), "spec." .. name
    if #list ~= #others then
      errors[#errors + 1] = field.forbidden(path, name .. " may not be added or removed on resize")
    else
      for i, other in ipairs(others) do
        if list[i].name ~= other.name then
          errors[#errors + 1] = field.forbidden(("%s[%d].name"):format(path, i - 1),
            name .. " may not be renamed or reordered on resize")
        end
      end
    end
  end
  return #errors == before
end


local function check_removed(new, old, path, errors)
  for _, kind in ipairs(AMOUNTS) do
    local amounts = new.resources[kind] or NONE
    for _, name in ipairs(check.sorted_keys(old.resources[kind])) do
      if not amounts[name] then
        errors[#errors + 1] = field.forbidden(path .. "." .. kind, ("resource %s cannot be removed"):format(kind))
        break
      end
    end
  end
end


-- True if two containers differ in more than cpu, memory and resizePolicy.
local function differs(new, old)
  local copy = host.json.copy(new)
  copy.resizePolicy = old.resizePolicy
  for _, kind in ipairs(AMOUNTS) do
    local amounts, before = copy.resources[kind] or {}, old.resources[kind] or NONE
    amounts.cpu, amounts.memory = before.cpu, before.memory
    copy.resources[kind] = next(amounts) and amounts or nil
  end
  return not host.json.equal(copy, old)
end


local ONLY = "only cpu and memory resources are mutable"
local ONLY_INIT = "only cpu and memory resources for init or sidecar containers are mutable"


local function check_kinds(new, old, errors)
  for i, container in ipairs(new.containers) do
    if differs(container, old.containers[i]) then
      errors[#errors + 1] = field.forbidden("spec", ONLY)
    end
  end
  for i, container in ipairs(new.initContainers or NONE) do
    if container.restartPolicy == "Always" and differs(container, old.initContainers[i]) then
      errors[#errors + 1] = field.forbidden(("spec.initContainers[%d]"):format(i - 1), ONLY_INIT)
    elseif container.restartPolicy ~= "Always" and not host.json.equal(container, old.initContainers[i]) then
      errors[#errors + 1] = field.forbidden("spec", "resources for non-sidecar init containers are immutable")
    end
  end
end


--- Checks a resize. @return table field errors
function M.validate(new, old)
  local errors, spec, before = {}, new.spec, old.spec
  spec_rules.validate_pod(spec, "spec", errors)
  if qos.class(spec) ~= old.status.qosClass then
    errors[#errors + 1] = field.invalid("spec", old.status.qosClass,
      "Pod QOS Class may not change as a result of resizing")
  end
  if not check_order(spec, before, errors) then
    return errors
  end
  for _, name in ipairs { "initContainers", "containers" } do
    for i, container in ipairs(spec[name] or NONE) do
      if name == "containers" or container.restartPolicy == "Always" then
        check_removed(container, before[name][i], ("spec.%s[%d].resources"):format(name, i - 1), errors)
      end
    end
  end
  check_kinds(spec, before, errors)
  return errors
end


return M
