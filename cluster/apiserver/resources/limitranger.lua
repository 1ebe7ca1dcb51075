--- Applies LimitRanges to the pods and claims of their namespace: defaults for containers, and bounds.
---
--- Rules: kubernetes/plugin/pkg/admission/limitranger/admission.go.
local check = require "cluster.apiserver.resources.check"
local lists = require "cluster.apiserver.resources.resource_lists"
local quantity = require "cluster.quantity"
local status = require "cluster.apiserver.status"
local totals = require "cluster.apiserver.resources.pod.totals"

local M = {}

local NONE = {}
local ANNOTATION = "kubernetes.io/limit-ranger"
local RES = { api_version = "v1", kind = "LimitRange" }


-- The items of all LimitRanges of the namespace, in the order of their names.
local function items_of(ctx)
  local items, store = {}, ctx.server.store
  if store:collection("limitranges"):size(ctx.namespace) == 0 then
    return items
  end
  store:collection("limitranges"):each(ctx.namespace, nil, function(entry)
    local limits = store.object(RES, entry).spec.limits
    items[#items + 1] = check.list(limits)
  end)
  return items
end


-- Gives a container what it lacks. @return list of the names that were set
local function fill(resources, kind, amounts)
  local set = {}
  for _, name in ipairs(check.sorted_keys(amounts)) do
    resources[kind] = resources[kind] or {}
    if not resources[kind][name] then
      resources[kind][name] = amounts[name]
      set[#set + 1] = name
    end
  end
  return set
end


local function fill_container(container, what, defaults, changes)
  container.resources = container.resources or {}
  local limits = fill(container.resources, "limits", defaults.limits)
  local requests = fill(container.resources, "requests", defaults.requests)
  if #requests > 0 then
    changes[#changes + 1] = ("%s request for %s %s"):format(table.concat(requests, ", "), what, container.name)
  end
  if #limits > 0 then
    changes[#changes + 1] = ("%s limit for %s %s"):format(table.concat(limits, ", "), what, container.name)
  end
end


-- The defaults that one LimitRange gives to every container.
local function defaults_of(items)
  local defaults = { requests = {}, limits = {} }
  for _, item in ipairs(items) do
    if item.type == "Container" then
      for name, text in pairs(item.defaultRequest or NONE) do
        defaults.requests[name] = text
      end
      for name, text in pairs(item.default or NONE) do
        defaults.limits[name] = text
      end
    end
  end
  return defaults
end


--- Completes the containers of a new pod, and notes in an annotation what was set.
function M.complete(pod, ctx)
  for _, items in ipairs(items_of(ctx)) do
    local defaults, changes = defaults_of(items), {}
    for _, container in ipairs(check.list(pod.spec.containers)) do
      fill_container(container, "container", defaults, changes)
    end
    for _, container in ipairs(check.list(pod.spec.initContainers)) do
      fill_container(container, "init container", defaults, changes)
    end
    if #changes > 0 then
      pod.metadata.annotations = pod.metadata.annotations or {}
      pod.metadata.annotations[ANNOTATION] = "LimitRanger plugin set: " .. table.concat(changes, "; ")
    end
  end
end


-- Bounds. Each returns what is wrong, or nil. `amounts`: { requests =, limits = }.
local BOUNDS = {}

function BOUNDS.min(kind, name, bound, amounts)
  local request, limit = amounts.requests[name], amounts.limits[name]
  local words = ("minimum %s usage per %s is %s"):format(name, kind, bound)
  if not request then
    return words .. ".  No request is specified"
  elseif lists.compare(request, bound) < 0 then
    return ("%s, but request is %s"):format(words, request)
  elseif limit and lists.compare(limit, bound) < 0 then
    return ("%s, but limit is %s"):format(words, limit)
  end
end

function BOUNDS.max(kind, name, bound, amounts)
  local request, limit = amounts.requests[name], amounts.limits[name]
  local words = ("maximum %s usage per %s is %s"):format(name, kind, bound)
  if not limit then
    return words .. ".  No limit is specified"
  elseif lists.compare(limit, bound) > 0 then
    return ("%s, but limit is %s"):format(words, limit)
  elseif request and lists.compare(request, bound) > 0 then
    return ("%s, but request is %s"):format(words, request)
  end
end

local function max_request(kind, name, bound, amounts)
  local request = amounts.requests[name]
  local words = ("maximum %s usage per %s is %s"):format(name, kind, bound)
  if not request then
    return words .. ".  No request is specified"
  elseif lists.compare(request, bound) > 0 then
    return ("%s, but request is %s"):format(words, request)
  end
end

local function float(text)
  local amount = text and quantity.parse(text)
  return amount and quantity.float(amount) or 0.0
end

function BOUNDS.maxLimitRequestRatio(kind, name, bound, amounts)
  local request, limit = float(amounts.requests[name]), float(amounts.limits[name])
  local words = ("%s max limit to request ratio per %s is %s"):format(name, kind, bound)
  if request == 0 then
    return words .. ", but no request is specified or request is 0"
  elseif limit == 0 then
    return words .. ", but no limit is specified or limit is 0"
  elseif limit / request > float(bound) then
    return ("%s, but provided ratio is %f"):format(words, limit / request)
  end
end


local function apply(item, name, rule, amounts, problems)
  for _, resource in ipairs(check.sorted_keys(item[name])) do
    problems[#problems + 1] = rule(item.type, resource, item[name][resource], amounts)
  end
end


local function apply_all(item, amounts, problems)
  for _, name in ipairs { "min", "max", "maxLimitRequestRatio" } do
    apply(item, name, BOUNDS[name], amounts, problems)
  end
end


local function check_pod(item, pod, problems)
  local spec = pod.spec
  if item.type == "Container" then
    for _, list in ipairs { "containers", "initContainers" } do
      for _, container in ipairs(check.list(spec[list])) do
        local resources = container.resources or NONE
        apply_all(item, { requests = resources.requests or NONE, limits = resources.limits or NONE }, problems)
      end
    end
  elseif item.type == "Pod" then
    apply_all(item, { requests = totals.requests(spec), limits = totals.limits(spec) }, problems)
  end
end


local function check_claim(item, claim, problems)
  if item.type == "PersistentVolumeClaim" then
    local amounts = { requests = claim.spec.resources.requests or NONE, limits = NONE }
    apply(item, "min", BOUNDS.min, amounts, problems)
    apply(item, "max", max_request, amounts, problems)
  end
end


--- Checks that a pod or a claim keeps the bounds of its namespace. @return table|nil failure a Status when it does not
function M.check(object, ctx)
  local rule = object.kind == "Pod" and check_pod or check_claim
  for _, items in ipairs(items_of(ctx)) do
    local problems = {}
    for _, item in ipairs(items) do
      rule(item, object, problems)
    end
    if #problems > 0 then
      return status.forbidden(ctx.request.res, object.metadata.name, status.aggregate(problems))
    end
  end
end


return M
