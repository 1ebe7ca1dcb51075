--- The defaults of pods and of pod templates. Fields of features that are switched off in this release are dropped.
---
--- Rules: kubernetes/pkg/apis/core/v1/defaults.go, pkg/api/pod/util.go (dropDisabledFields). Constants that OpenAPI
--- publishes are set by typed.lua already.
local image = require "cluster.apiserver.resources.pod.image"
local quantity = require "cluster.quantity"

local M = {}

local MODE = 420   -- 0644
local TOKEN_SECONDS = 3600
local NONE = {}

local PROBES = { "livenessProbe", "readinessProbe", "startupProbe" }


-- Requests and limits are kept in thousandths.
local function round_amounts(resources)
  for _, name in ipairs { "limits", "requests" } do
    local amounts = resources[name]
    for key, value in pairs(amounts or NONE) do
      amounts[key] = quantity.milli(value)
    end
  end
end


local function http_get(action)
  if action then
    action.path = action.path or "/"
    action.scheme = action.scheme or "HTTP"
  end
end


local function probe(value)
  if not value then
    return
  end
  value.timeoutSeconds = value.timeoutSeconds or 1
  value.periodSeconds = value.periodSeconds or 10
  value.successThreshold = value.successThreshold or 1
  value.failureThreshold = value.failureThreshold or 3
  http_get(value.httpGet)
  if value.grpc then
    value.grpc.service = type(value.grpc.service) == "string" and value.grpc.service or ""
  end
end


local function field_ref(selector)
  if selector then
    selector.apiVersion = selector.apiVersion or "v1"
  end
end


local function drop_stop_signal(value)
  local lifecycle = value.lifecycle
  if lifecycle and lifecycle.stopSignal then
    lifecycle.stopSignal = nil
    value.lifecycle = next(lifecycle) and lifecycle
  end
end


local function container(value)
  drop_stop_signal(value)
  for _, variable in ipairs(value.env or NONE) do
    field_ref(variable.valueFrom and variable.valueFrom.fieldRef)
  end
  if value.resources then
    round_amounts(value.resources)
  end
  for _, name in ipairs(PROBES) do
    probe(value[name])
  end
  if value.lifecycle then
    http_get((value.lifecycle.postStart or NONE).httpGet)
    http_get((value.lifecycle.preStop or NONE).httpGet)
  end
  value.imagePullPolicy = value.imagePullPolicy or image.pull_policy(value.image)
  value.terminationMessagePath = value.terminationMessagePath or "/dev/termination-log"
  value.terminationMessagePolicy = value.terminationMessagePolicy or "File"
end


local function downward_items(source)
  for _, item in ipairs(source.items or NONE) do
    field_ref(item.fieldRef)
  end
end


local function projected(source)
  source.defaultMode = source.defaultMode or MODE
  for _, part in ipairs(type(source.sources) == "table" and source.sources or NONE) do
    if part.downwardAPI then
      downward_items(part.downwardAPI)
    end
    if part.serviceAccountToken then
      part.serviceAccountToken.expirationSeconds = part.serviceAccountToken.expirationSeconds or TOKEN_SECONDS
    end
  end
end


local VOLUMES = {
  hostPath = function(source)
    source.type = source.type or ""
  end,
  downwardAPI = function(source)
    source.defaultMode = source.defaultMode or MODE
    downward_items(source)
  end,
  projected = projected,
  image = function(source)
    source.pullPolicy = source.pullPolicy or image.pull_policy(source.reference)
  end,
  ephemeral = function(source)
    local spec = source.volumeClaimTemplate and source.volumeClaimTemplate.spec
    if spec then
      spec.volumeMode = spec.volumeMode or "Filesystem"
    end
  end,
}
for _, name in ipairs { "secret", "configMap" } do
  VOLUMES[name] = function(source)
    source.defaultMode = source.defaultMode or MODE
  end
end


local function volume(value)
  local found = false
  for name, source in pairs(value) do
    if type(source) == "table" then
      found = true
      if VOLUMES[name] then
        VOLUMES[name](source)
      end
    end
  end
  if not found then
    value.emptyDir = {}
  end
end


--- A pod's spec, alone or within a template.
function M.spec(spec)
  spec.schedulingGroup = nil
  spec.dnsPolicy = spec.dnsPolicy or "ClusterFirst"
  spec.restartPolicy = spec.restartPolicy or "Always"
  spec.securityContext = spec.securityContext or {}
  spec.terminationGracePeriodSeconds = spec.terminationGracePeriodSeconds or 30
  spec.schedulerName = spec.schedulerName or "default-scheduler"
  -- Two names for one thing; the older one follows.
  spec.serviceAccountName = spec.serviceAccountName or spec.serviceAccount
  spec.serviceAccount = spec.serviceAccountName
  for _, value in ipairs(spec.volumes or NONE) do
    volume(value)
  end
  for _, name in ipairs { "initContainers", "containers", "ephemeralContainers" } do
    local list = spec[name]
    for i = 1, list and #list or 0 do
      container(list[i])
    end
  end
  if spec.overhead then
    for key, value in pairs(spec.overhead) do
      spec.overhead[key] = quantity.milli(value)
    end
  end
end


-- On the machine's own network a container's ports are the machine's.
local function host_ports(spec)
  for _, name in ipairs { "containers", "initContainers" } do
    for _, value in ipairs(spec[name] or NONE) do
      for _, port in ipairs(value.ports or NONE) do
        port.hostPort = port.hostPort or port.containerPort ~= 0 and port.containerPort or nil
      end
    end
  end
end


-- A resource that has a limit and no request gets a request of that amount.
local function requests_of_limits(containers)
  for _, value in ipairs(containers or NONE) do
    local resources = value.resources
    if resources and resources.limits then
      resources.requests = resources.requests or {}
      for key, amount in pairs(resources.limits) do
        resources.requests[key] = resources.requests[key] or amount
      end
    end
  end
end


--- A pod.
function M.pod(object)
  local spec = object.spec
  M.spec(spec)
  spec.terminationGracePeriodSeconds = spec.terminationGracePeriodSeconds < 0 and 1
    or spec.terminationGracePeriodSeconds
  requests_of_limits(spec.containers)
  requests_of_limits(spec.initContainers)
  if spec.enableServiceLinks == nil then
    spec.enableServiceLinks = true
  end
  if spec.hostNetwork then
    host_ports(spec)
  end
end


return M
