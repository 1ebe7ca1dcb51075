-- Gives teams a place: for each Tenant a namespace with a quota, rules for its network, and roles for its people. The
-- Tenant's tier, a ConfigMap in the namespace tenant-tiers, says how much it may use. Each night the accounts are told
-- how much that was.
local moonloop = require "moonloop"
local cjson = require "cjson"
local quantity = require "moonloop.quantity"
local time = require "moonloop.time"
local yaml = require "moonloop.yaml"

local TIERS = "tenant-tiers"
local ACCOUNTS = "https://accounts.example.com"
local NIGHTLY = "0 2 * * *"
local ROLES = { admin = "admins", edit = "editors", view = "viewers" } -- cluster roles, and fields of the spec

local Tenant = moonloop.kind("platform.example.com/v1", "Tenant")
local Namespace = moonloop.kind("v1", "Namespace")
local ResourceQuota = moonloop.kind("v1", "ResourceQuota")
local NetworkPolicy = moonloop.kind("networking.k8s.io/v1", "NetworkPolicy")
local RoleBinding = moonloop.kind("rbac.authorization.k8s.io/v1", "RoleBinding")
local Tier = moonloop.kind("v1", "ConfigMap", { fields = "metadata.namespace=" .. TIERS })

local by_tier = moonloop.index(Tenant, function(tenant)
  return { tenant.spec.tier }
end)


local function tenants_of(tier, ctx)
  local name, list = tier.metadata.name, {}
  for index, tenant in ipairs(ctx.list(Tenant, { namespace = "*", index = by_tier, key = name })) do
    list[index] = { name = tenant.metadata.name }
  end
  return list
end


local function namespace_of(tenant)
  return "tenant-" .. tenant.metadata.name
end


--- The limits of the tenant's tier, { quota =, network = }; or nil and what is wrong with it.
local function limits_of(tenant, ctx)
  local name = tenant.spec.tier
  local tier = ctx.get(Tier, name, TIERS)
  if not tier then
    return nil, ("there is no ConfigMap %s/%s"):format(TIERS, name)
  end
  local limits = {}
  for _, key in ipairs { "quota", "network" } do
    local value, why = yaml.decode((tier.data or {})[key] or "")
    if type(value) ~= "table" then
      return nil, ("ConfigMap %s/%s, %s: %s"):format(TIERS, name, key, why or "expected a map or a list")
    end
    limits[key] = value
  end
  return limits
end


-- An object in the tenant's namespace.
local function object_of(tenant, kind, name, fields)
  fields.apiVersion, fields.kind = kind.apiVersion, kind.kind
  fields.metadata = { name = name, namespace = namespace_of(tenant) }
  return fields
end


local function role_binding(tenant, role, users)
  local subjects = {}
  for index, user in ipairs(users) do
    subjects[index] = { apiGroup = "rbac.authorization.k8s.io", kind = "User", name = user }
  end
  return object_of(tenant, RoleBinding, role, {
    roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "ClusterRole", name = role },
    subjects = subjects,
  })
end


local function children_of(tenant, limits)
  local children = {
    { apiVersion = "v1", kind = "Namespace", metadata = { name = namespace_of(tenant) } },
    object_of(tenant, ResourceQuota, "tenant", { spec = { hard = limits.quota } }),
    object_of(tenant, NetworkPolicy, "tenant", {
      spec = { podSelector = {}, policyTypes = { "Ingress" }, ingress = limits.network },
    }),
  }
  for role, field in pairs(ROLES) do
    if #tenant.spec[field] > 0 then
      children[#children + 1] = role_binding(tenant, role, tenant.spec[field])
    end
  end
  return children
end


--- Tells the accounts, once a night, what is used. Returns when the next report is due, and when one has just been
--- made that instant, or nil and why it was not taken.
local function report(tenant, used, ctx)
  local due = time.cron(NIGHTLY, time.parse(tenant.status.reportedAt or tenant.metadata.creationTimestamp))
  if ctx.now() < due then
    return due
  end
  local key = tenant.metadata.uid .. "/" .. time.format(due)
  local answer, err = ctx.http {
    method = "POST",
    url = ACCOUNTS .. "/usage",
    headers = { ["Content-Type"] = "application/json", ["Idempotency-Key"] = key },
    body = cjson.encode { tenant = tenant.metadata.name, tier = tenant.spec.tier, used = used },
  }
  if not answer or answer.status >= 300 then
    return ctx.now() + 300, nil, answer and "the accounts answered " .. answer.status or err.message
  end
  return time.cron(NIGHTLY, ctx.now()), time.format(ctx.now())
end


return moonloop.controller {
  name = "tenant",
  reconciles = Tenant,
  owns = { Namespace, ResourceQuota, NetworkPolicy, RoleBinding },
  watches = { moonloop.watch(Tier, tenants_of) },
  http = { ACCOUNTS },
  metrics = {
    tenant_pods = { type = "gauge", help = "Pods of the tenant", labels = { "tenant" } },
    tenant_reports_total = { type = "counter", help = "Reports to the accounts", labels = { "result" } },
  },

  reconcile = function(tenant, ctx)
    local limits, wrong = limits_of(tenant, ctx)
    if not limits then
      local ready = { status = false, reason = "NoTier", message = wrong }
      return ctx.invalid("spec.tier", wrong, { conditions = { Ready = ready } })
    end
    local quota = ctx.get(ResourceQuota, "tenant", namespace_of(tenant))
    local used = quota and quota.status.used or {}
    ctx.metric("tenant_pods", quantity.number(used.pods or "0"), { tenant = tenant.metadata.name })
    local due, reported, why = report(tenant, used, ctx)
    return {
      children = children_of(tenant, limits),
      status = { namespace = namespace_of(tenant), reportedAt = reported },
      conditions = {
        Ready = { status = quota ~= nil, reason = quota and "Made" or "Making" },
        Reported = { status = why == nil, reason = why and "Refused" or "Reported", message = why or "" },
      },
      requeue_at = due,
    }
  end,
}
