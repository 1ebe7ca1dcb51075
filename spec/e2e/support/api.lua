-- The state of the world, asked of the API server itself: as `kubectl get -o json` does, but in
-- a millisecond, so that specs can poll. Goes through the `kubectl proxy` that run.sh started.
local cjson = require "cjson.safe"
local http = require "spec.e2e.support.http"

local M = {}

-- decode_array_with_array_mt is not in every cjson: an empty list may read as an object here.
cjson.decode_max_depth(20000)

local CNAT = "cnat.programming-kubernetes.info/v1alpha1"
local OWN = "e2e.moonloop.dev/v1"

local DASK = "kubernetes.dask.org/v1"

local KINDS = {
  At = { CNAT, "ats" },
  Widget = { OWN, "widgets" },
  Gadget = { OWN, "gadgets" },
  Plain = { OWN, "plains" },
  DaskJob = { DASK, "daskjobs" },
  DaskCluster = { DASK, "daskclusters" },
  DaskWorkerGroup = { DASK, "daskworkergroups" },
  Database = { "stable.example.com/v1", "databases" },
  RedisCluster = { "cache.example.com/v1", "redisclusters" },
  Tenant = { "platform.example.com/v1", "tenants", cluster = true },
  Deployment = { "apps/v1", "deployments" },
  StatefulSet = { "apps/v1", "statefulsets" },
  Job = { "batch/v1", "jobs" },
  Service = { "v1", "services" },
  Pod = { "v1", "pods" },
  ConfigMap = { "v1", "configmaps" },
  Secret = { "v1", "secrets" },
  ServiceAccount = { "v1", "serviceaccounts" },
  PersistentVolumeClaim = { "v1", "persistentvolumeclaims" },
  ResourceQuota = { "v1", "resourcequotas" },
  NetworkPolicy = { "networking.k8s.io/v1", "networkpolicies" },
  RoleBinding = { "rbac.authorization.k8s.io/v1", "rolebindings" },
  Namespace = { "v1", "namespaces", cluster = true },
  ClusterRole = { "rbac.authorization.k8s.io/v1", "clusterroles", cluster = true },
  Event = { "events.k8s.io/v1", "events" },
  Lease = { "coordination.k8s.io/v1", "leases" },
  CustomResourceDefinition = { "apiextensions.k8s.io/v1", "customresourcedefinitions", cluster = true },
}

local function url(kind, ns, name, rest)
  local known = assert(KINDS[kind], kind)
  local parts = { known[1]:find("/", 1, true) and "/apis/" or "/api/", known[1] }
  if not known.cluster then
    parts[#parts + 1] = "/namespaces/" .. assert(ns, "a namespace")
  end
  parts[#parts + 1] = "/" .. known[2]
  parts[#parts + 1] = name and "/" .. name
  return table.concat(parts) .. (rest or "")
end


-- JSON's null is nothing, for who only reads.
local function without_null(value)
  if type(value) == "table" then
    for key, inner in pairs(value) do
      value[key] = without_null(inner)
    end
    return value
  end
  return value ~= cjson.null and value or nil
end


--- A raw request. Returns the decoded answer and the status code.
function M.request(method, path, body, content_type)
  local text, code = http.request {
    method = method,
    url = "http://localhost" .. path,
    socket = assert(os.getenv "E2E_API", "E2E_API is not set: run spec/e2e/run.sh"),
    body = type(body) == "table" and cjson.encode(body) or body,
    type = content_type,
  }
  if not text then
    error(("%s %s: %s"):format(method, path, code), 2)
  end
  return without_null(cjson.decode(text)), code
end


local function must(method, path, body, content_type)
  local answer, code = M.request(method, path, body, content_type)
  if code >= 300 then
    error(("%s %s: %d %s"):format(method, path, code, answer and answer.message), 3)
  end
  return answer
end


--- The object, or nil when it is not there.
function M.get(kind, ns, name)
  local answer, code = M.request("GET", url(kind, ns, name))
  if code == 404 then
    return nil
  end
  assert(code == 200, answer and answer.message)
  return answer
end


--- The objects of a kind in a namespace.
---@param query string? "?labelSelector=app%3Dx"
function M.list(kind, ns, query)
  return must("GET", url(kind, ns, nil, query)).items
end


--- Creates an object; apiVersion, kind and namespace are filled in.
function M.create(kind, ns, object)
  object.apiVersion, object.kind = KINDS[kind][1], kind
  object.metadata.namespace = not KINDS[kind].cluster and ns or nil
  return must("POST", url(kind, ns), object)
end


--- Merge patch.
function M.patch(kind, ns, name, changes)
  return must("PATCH", url(kind, ns, name), changes, "application/merge-patch+json")
end


--- Deletes an object; fine when it is gone.
function M.delete(kind, ns, name)
  local answer, code = M.request("DELETE", url(kind, ns, name))
  assert(code < 300 or code == 404, answer and answer.message)
end


return M
