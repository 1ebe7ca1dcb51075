--- The three operators of reconcilers/ as scenarios (scenarios.lua): objects that are made, edited in each way that
--- makes the operator write something else, refused, deleted, and made anew. For f48_operators_test.lua.
local moonloop = require "moonloop"

local M = {}

local NOW = "2026-07-03T10:00:00Z"
local SOON = "20s" -- servers are probed each second, which makes an hour long

local Database = moonloop.kind("stable.example.com/v1", "Database")
local RedisCluster = moonloop.kind("cache.example.com/v1", "RedisCluster")
local Tenant = moonloop.kind("platform.example.com/v1", "Tenant")
local Claim = moonloop.kind("v1", "PersistentVolumeClaim")
local Job = moonloop.kind("batch/v1", "Job")
local Namespace = moonloop.kind("v1", "Namespace")
local NetworkPolicy = moonloop.kind("networking.k8s.io/v1", "NetworkPolicy")
local Pod = moonloop.kind("v1", "Pod")
local ResourceQuota = moonloop.kind("v1", "ResourceQuota")
local RoleBinding = moonloop.kind("rbac.authorization.k8s.io/v1", "RoleBinding")
local Secret = moonloop.kind("v1", "Secret")
local Service = moonloop.kind("v1", "Service")
local StatefulSet = moonloop.kind("apps/v1", "StatefulSet")

local function object(kind, name, spec)
  return { apiVersion = kind.apiVersion, kind = kind.kind, metadata = { name = name }, spec = spec }
end


local function database(version, size, ...)
  local users = {}
  for index, name in ipairs { ... } do
    users[index] = { username = name, passwordSecret = name == "own" and "mine" or nil }
  end
  return object(Database, "db", { engine = "PostgreSQL", version = version, size = size, users = users })
end


-- Applies one after the other, with time for what follows from each.
local function edits(world, ...)
  for _, each in ipairs { ... } do
    world.apply(each)
    world.advance "5s"
  end
end


--- A Database that goes with all its data, and one of its name that stays: users come and go, one with a Secret of his
--- own that comes late; a higher version and a larger volume, and a smaller one, which is refused.
M.database = {
  name = "database", recovery = SOON, quiet = SOON,
  kinds = { Database, Secret, Service, StatefulSet, Job, Claim },
  options = {
    scripts = "reconcilers/database.lua", crds = "crds", now = NOW,
    pods = function(_, container) return container.name == "users" and { after = 1, code = 0 } or nil end,
  },
  play = function(world)
    edits(world, database("15", "3Gi", "admin"))
    world.delete(Database, "db")
    edits(world, database("14", "1Gi", "admin", "appuser"), database("14.5", "2Gi", "admin", "own"),
      { apiVersion = "v1", kind = "Secret", metadata = { name = "mine" }, stringData = { password = "theirs" } },
      database("14.5", "1Gi", "admin", "own"))
  end,
}

--- One server, none; two, three, one.
M.rediscluster = {
  name = "rediscluster", recovery = SOON, quiet = SOON,
  kinds = { RedisCluster, Service, StatefulSet, Pod },
  options = { scripts = "reconcilers/rediscluster.lua", crds = "crds", now = NOW },
  play = function(world)
    edits(world, object(RedisCluster, "c", { size = 1 }))
    world.delete(RedisCluster, "c")
    edits(world, object(RedisCluster, "c", { size = 2 }), object(RedisCluster, "c", { size = 3 }),
      object(RedisCluster, "c", { size = 1 }))
  end,
}


local function tier(pods)
  return {
    apiVersion = "v1", kind = "ConfigMap", metadata = { name = "bronze", namespace = "tenant-tiers" },
    data = { quota = ("pods: %d\n"):format(pods), network = "- from: [{ podSelector: {} }]\n" },
  }
end


--- A Tenant that goes, and one of its name that stays: roles come and go, the tier is edited and is one that is not
--- there, a night passes with its report.
M.tenant = {
  name = "tenant", recovery = SOON, quiet = SOON,
  kinds = { Tenant, Namespace, ResourceQuota, NetworkPolicy, RoleBinding },
  options = { scripts = "reconcilers/tenant.lua", crds = "crds", now = NOW },
  except = { cache_is_store = true }, -- of the ConfigMaps only those of one namespace are cached
  play = function(world)
    world.http(function() return { status = 200, body = "" } end)
    edits(world, object(Namespace, "tenant-tiers"), tier(20), object(Tenant, "red", { tier = "bronze" }))
    world.delete(Tenant, "red")
    edits(world,
      object(Tenant, "red", { tier = "bronze", admins = { "alice" }, viewers = { "bob", "carol" } }),
      object(Tenant, "red", { tier = "bronze", editors = { "dan" }, viewers = { "carol" } }), tier(30),
      object(Tenant, "red", { tier = "gone", viewers = { "carol" } }),
      object(Tenant, "red", { tier = "bronze", viewers = { "carol" } }))
    world.advance "17h"
  end,
}

return M
