--- The fields that the server adds to a new pod before validation: an account and its token, tolerations, and what
--- follows from its classes.
---
--- Rules: kubernetes/plugin/pkg/admission/{serviceaccount,defaulttolerationseconds}/admission.go.
local classes_of = require "cluster.apiserver.resources.pod.classes"
local host = require "cluster.host"
local random = require "cluster.apiserver.resources.random"
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"

local M = {}

local NONE = {}
local TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
-- An hour, and what tells these tokens from those that a pod asked for itself.
local TOKEN_SECONDS = 3607
local TOKEN_MODE = 420   -- 0644
local TOLERATED = { "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable" }
local TOLERATED_SECONDS = 300


local function find_account(ctx, name)
  local entry = ctx.server.store:get("serviceaccounts", ctx.namespace, name)
  return entry and store.object({ api_version = "v1", kind = "ServiceAccount" }, entry)
end


local function has_token(spec)
  for _, volume in ipairs(spec.volumes or NONE) do
    if volume.name:find("^kube%-api%-access%-") then
      return true
    end
  end
  return false
end


local function token_volume(name)
  return {
    name = name,
    projected = {
      defaultMode = TOKEN_MODE,
      sources = host.json.array {
        { serviceAccountToken = { expirationSeconds = TOKEN_SECONDS, path = "token" } },
        { configMap = { name = "kube-root-ca.crt", items = host.json.array { { key = "ca.crt", path = "ca.crt" } } } },
        { downwardAPI = { items = host.json.array {
          { path = "namespace", fieldRef = { apiVersion = "v1", fieldPath = "metadata.namespace" } },
        } } },
      },
    },
  }
end


-- Containers that have something else at the token's place get none. @return boolean whether one was mounted
local function mount(containers, name)
  local mounted = false
  for _, container in ipairs(containers or NONE) do
    local mounts = container.volumeMounts or host.json.array {}
    local is_occupied = false
    for _, other in ipairs(mounts) do
      is_occupied = is_occupied or other.mountPath == TOKEN_PATH
    end
    if not is_occupied then
      mounts[#mounts + 1] = { name = name, readOnly = true, mountPath = TOKEN_PATH }
      container.volumeMounts = mounts
      mounted = true
    end
  end
  return mounted
end


local function mount_token(spec)
  if has_token(spec) then
    return
  end
  local name = "kube-api-access-" .. random.suffix()
  local first = mount(spec.initContainers, name)
  if mount(spec.containers, name) or first then
    spec.volumes = spec.volumes or host.json.array {}
    spec.volumes[#spec.volumes + 1] = token_volume(name)
  end
end


-- A pod's own word on the token counts more than its account's.
local function wants_token(spec, account)
  if spec.automountServiceAccountToken ~= nil then
    return spec.automountServiceAccountToken
  end
  return account.automountServiceAccountToken ~= false
end


-- @return table|nil failure
local function set_account(pod, ctx)
  if not ctx.server.has_accounts then
    return nil
  end
  local spec = pod.spec
  local name = spec.serviceAccountName or "default"
  spec.serviceAccountName, spec.serviceAccount = name, name
  local account = find_account(ctx, name)
  if not account then
    return status.forbidden(ctx.request.res, classes_of.shown_name(pod.metadata),
      ('error looking up service account %s/%s: serviceaccount "%s" not found'):format(ctx.namespace, name, name))
  end
  if wants_token(spec, account) then
    mount_token(spec)
  end
  if not spec.imagePullSecrets then
    spec.imagePullSecrets = account.imagePullSecrets
  end
end


local function tolerates(tolerations, key)
  for _, toleration in ipairs(tolerations or NONE) do
    if (toleration.key == key or not toleration.key)
      and (toleration.effect == "NoExecute" or not toleration.effect) then
      return true
    end
  end
  return false
end


local function set_tolerations(spec)
  local missing = {}
  for _, key in ipairs(TOLERATED) do
    if not tolerates(spec.tolerations, key) then
      missing[#missing + 1] = key
    end
  end
  for _, key in ipairs(missing) do
    spec.tolerations = spec.tolerations or host.json.array {}
    spec.tolerations[#spec.tolerations + 1] = {
      key = key, operator = "Exists", effect = "NoExecute", tolerationSeconds = TOLERATED_SECONDS,
    }
  end
end


--- Completes a pod that replaces another: what an update leaves out of this it does not take away.
function M.readmit(pod, old)
  local spec, before = pod.spec, old.spec
  set_tolerations(spec)
  if spec.priority == nil then
    spec.priority = before.priority
  end
  if spec.preemptionPolicy == nil and spec.priority == before.priority then
    spec.preemptionPolicy = before.preemptionPolicy
  end
end


--- Completes a new pod. @return table|nil failure a Status when it may not be made
function M.admit(pod, ctx)
  local failure = set_account(pod, ctx) or classes_of.set_priority(pod, ctx)
  if failure then
    return failure
  end
  set_tolerations(pod.spec)
  return classes_of.set_runtime(pod, ctx)
end


return M
