-- A Tenant's namespace with a Database and a RedisCluster in it is deleted: while the operators run, and while they are
-- down. It ends, and nothing of theirs is left in the cluster.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local operators = require "spec.e2e.support.operators"
local wait = require "spec.e2e.support.wait"

local served = (operators.runs "initdb postgres psql redis-server redis-cli" or cluster.controlplane) and it or pending

local THEIRS = {
  "Database", "RedisCluster", "Secret", "Service", "StatefulSet", "Job", "PersistentVolumeClaim", "Pod",
}

describe("A namespace full of what the operators made", function()
  local tier, tenant, space

  local function start()
    return host.start {
      name = "full", args = { "--allow-http", "https://accounts.example.com" },
      scripts = { "reconcilers/database.lua", "reconcilers/rediscluster.lua", "reconcilers/tenant.lua" },
    }
  end

  -- A Database and a RedisCluster in the namespace, which is there.
  local function fill()
    api.create("Database", space, { metadata = { name = "db" }, spec = {
      engine = "PostgreSQL", version = "14", size = "1Gi", users = { { username = "admin" } },
    } })
    api.create("RedisCluster", space, { metadata = { name = "redis" }, spec = { size = 1 } })
    operators.till_ready("Database", space, "db", 60)
    operators.till_ready("RedisCluster", space, "redis", 60)
    assert.same({ "moonloop.dev/database" }, api.get("Database", space, "db").metadata.finalizers)
  end

  -- Waits until the namespace of that uid has gone.
  local function till_gone(uid)
    wait.till("the namespace to end", 60, function()
      operators.release_claims(space)
      local is = api.get("Namespace", nil, space)
      return not is or is.metadata.uid ~= uid, is and is.status.phase
    end)
  end

  local function left()
    local found = {}
    for _, kind in ipairs(THEIRS) do
      for _, object in ipairs(api.list(kind, space)) do
        found[#found + 1] = kind .. " " .. object.metadata.name
      end
    end
    for _, volume in ipairs(api.request("GET", "/api/v1/persistentvolumes").items) do
      found[#found + 1] = (volume.spec.claimRef or {}).namespace == space and "volume " .. volume.metadata.name or nil
    end
    return table.concat(found, ", ")
  end

  setup(function()
    tier, tenant = cluster.unique "full", cluster.unique "full"
    space = "tenant-" .. tenant
    operators.make_tier(tier)
    api.create("Tenant", nil, { metadata = { name = tenant }, spec = { tier = tier, admins = { "alice" } } })
    start()
    operators.till_ready("Tenant", nil, tenant)
  end)

  teardown(function()
    host.stop_all()
    api.delete("Tenant", nil, tenant)
    api.delete("ConfigMap", "tenant-tiers", tier)
  end)

  served("ends while they run, and the Tenant gets another one, with what belongs in it and no more", function()
    fill()
    local uid = api.get("Namespace", nil, space).metadata.uid
    api.delete("Namespace", nil, space)
    till_gone(uid)
    wait.till("the new namespace to be complete", 30, function()
      local complete = api.get("Namespace", nil, space) and api.get("ResourceQuota", space, "tenant")
        and api.get("NetworkPolicy", space, "tenant") and api.get("RoleBinding", space, "admin")
      return complete and operators.is_ready("Tenant", nil, tenant), "not yet"
    end)
    wait.till("nothing to be left", 10, function()
      local is = left()
      return is == "", is
    end)
  end)

  served("ends with its Tenant that is deleted while they are down, as soon as they are back", function()
    fill()
    host.stop_all()
    local uid = api.get("Namespace", nil, space).metadata.uid
    api.delete("Tenant", nil, tenant)
    wait.till("the Database to be deleted", 30, function()
      return api.get("Database", space, "db").metadata.deletionTimestamp
    end)
    assert.same({ "moonloop.dev/database" }, api.get("Database", space, "db").metadata.finalizers)
    start()
    till_gone(uid)
    assert.is_nil(api.get("Tenant", nil, tenant))
    assert.is_nil(api.get("Namespace", nil, space))
    wait.till("nothing to be left", 10, function()
      local is = left()
      return is == "", is
    end)
  end)
end)
