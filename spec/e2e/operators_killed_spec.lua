-- database.lua, rediscluster.lua and tenant.lua in a host that is killed after each of its writes: what is there after
-- each step of their lives is what an undisturbed run leaves. Here: made, edited, deleted. Not here, but in row F48 of
-- the fault bench: edits that are refused, passwords of other Secrets, tiers that change, reports to the accounts.
-- Events are not compared: one that a killed process had not sent is lost.
local api = require "spec.e2e.support.api"
local cjson = require "cjson"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kills = require "spec.e2e.support.kills"
local operators = require "spec.e2e.support.operators"
local wait = require "spec.e2e.support.wait"

local runs = operators.runs "initdb postgres psql redis-server redis-cli"
local killed = kills.available and (runs or cluster.controlplane) and it or pending

local SCRIPTS = { "reconcilers/database.lua", "reconcilers/rediscluster.lua", "reconcilers/tenant.lua" }
local HERE = {
  "Database", "RedisCluster", "Secret", "Service", "StatefulSet", "Job", "PersistentVolumeClaim", "Pod",
}
local OURS = { Database = true, RedisCluster = true, Tenant = true }
local IN_TENANT = { "ResourceQuota", "NetworkPolicy", "RoleBinding" }

-- Writes of one Database, one after the other. The three operators write at the same time, so that one kill may fall on
-- a write of each.
local KILLS_MIN = 12

local DIGEST = ("%x"):rep(64)

-- Fields that the server or chance fills in, with other values each time.
local OTHER = {
  uid = true, resourceVersion = true, managedFields = true, creationTimestamp = true, lastTransitionTime = true,
  clusterIP = true, clusterIPs = true,
}


-- Adds what is of a value to `lines`, as "place = value"; without what is another in each run.
local function add_lines(lines, place, value, run)
  if type(value) ~= "table" then
    local line = ("%s = %s"):format(place, value):gsub("%x+%-%x+%-%x+%-%x+%-%x+", "(uid)"):gsub(DIGEST, "(digest)")
    for word, neutral in pairs { [run.ns] = "NS", [run.tenant] = "TENANT" } do
      line = line:gsub(word:gsub("%-", "%%-"), neutral)
    end
    lines[line] = true
  elseif not (value.type == "Reconciled" and value.status == "True") then -- the trace of a failure that is over
    for key, field in pairs(value) do
      if not OTHER[key] then
        add_lines(lines, place .. "." .. key, field, run)
      end
    end
  end
end


local function names_of(values)
  local names = {}
  for name in pairs(values or {}) do
    names[name] = "(a value)"
  end
  return names
end


-- The same of an object; the status only where it is an operator's.
local function add_object(lines, kind, object, run)
  local meta = object.metadata
  local place = kind .. " " .. meta.name
  if kind == "Pod" then
    local owner = (meta.ownerReferences or {})[1] or {}
    if owner.kind == "StatefulSet" and not meta.deletionTimestamp then
      add_lines(lines, place, object.spec.containers[1].image, run)
    end
  elseif kind == "PersistentVolumeClaim" then
    add_lines(lines, place, object.spec.resources.requests.storage, run)
  else
    object.status = OURS[kind] and object.status or nil
    object.data = kind == "Secret" and names_of(object.data) or object.data
    add_lines(lines, place, object, run)
  end
end


-- All there is of a run, as a set of lines.
local function state_of(run)
  local lines = {}
  for _, kind in ipairs(HERE) do
    for _, object in ipairs(api.list(kind, run.ns)) do
      add_object(lines, kind, object, run)
    end
  end
  for _, kind in ipairs { "Tenant", "Namespace" } do
    local object = api.get(kind, nil, kind == "Tenant" and run.tenant or run.space)
    if object then
      add_object(lines, kind, object, run)
    end
  end
  for _, kind in ipairs(IN_TENANT) do
    for _, object in ipairs(api.list(kind, run.space)) do
      add_object(lines, kind, object, run)
    end
  end
  return lines
end


-- The lines that only one of two states has.
local function difference(wanted, got)
  local found = {}
  for sign, pair in pairs { ["-"] = { wanted, got }, ["+"] = { got, wanted } } do
    for line in pairs(pair[1]) do
      found[#found + 1] = not pair[2][line] and sign .. line or nil
    end
  end
  return table.concat(found, "\n")
end


local function is_ready(run)
  local db, why = operators.is_ready("Database", run.ns, "db")
  local synced = cluster.condition(db, "UsersSynced")
  local here = db and synced.status == "True" and synced.observedGeneration == db.metadata.generation
    and operators.is_ready("RedisCluster", run.ns, "redis")
  return here and operators.is_ready("Tenant", nil, run.tenant), why
end


local function is_gone(run)
  operators.release_claims(run.ns)
  local left = next(state_of(run))
  return not left, left
end


-- The steps: what somebody does, and what holds when the operators have done their part.
local STEPS = {
  {
    "is made", is_ready,
    function(run)
      api.create("Database", run.ns, { metadata = { name = "db" }, spec = {
        engine = "PostgreSQL", version = "14", size = "1Gi",
        users = { { username = "admin" }, { username = "appuser" } },
      } })
      api.create("RedisCluster", run.ns, { metadata = { name = "redis" }, spec = { size = 2 } })
      api.create("Tenant", nil, { metadata = { name = run.tenant }, spec = {
        tier = run.tier, admins = { "alice" }, viewers = { "bob", "carol" },
      } })
    end,
  },
  {
    "is edited", is_ready,
    function(run)
      local users = { { username = "admin" }, { username = "late" } }
      api.patch("Database", run.ns, "db", { spec = { version = "14.5", users = users } })
      api.patch("RedisCluster", run.ns, "redis", { spec = { size = 1 } })
      api.patch("Tenant", nil, run.tenant, { spec = { editors = { "dan" }, viewers = cjson.null } })
    end,
  },
  {
    "is deleted", is_gone,
    function(run)
      api.delete("Database", run.ns, "db")
      api.delete("RedisCluster", run.ns, "redis")
      api.delete("Tenant", nil, run.tenant)
    end,
  },
}


describe("The operators", function()
  local tier, namespaces

  setup(function()
    tier, namespaces = cluster.unique "killed", {}
    operators.make_tier(tier)
  end)

  teardown(function()
    host.stop_all()
    for _, ns in ipairs(namespaces) do
      cluster.forget(ns)
    end
    api.delete("ConfigMap", "tenant-tiers", tier)
  end)

  -- Plays all steps, with `till` for wait.till; calls each(state, step) after each.
  local function play(till, each)
    local tenant = cluster.unique "killed"
    local run = { ns = cluster.namespace "killed", tenant = tenant, space = "tenant-" .. tenant, tier = tier }
    namespaces[#namespaces + 1] = run.ns
    for _, step in ipairs(STEPS) do
      local what, holds, act = table.unpack(step)
      act(run)
      till("what " .. what, 60, function() return holds(run) end)
      each(run, what)
    end
  end

  killed("end as undisturbed when they are killed after each write", function()
    local opts = { name = "killed", scripts = SCRIPTS, args = { "--allow-http", "https://accounts.example.com" } }
    local moonloop, wanted = host.start(opts), {}
    moonloop:till_ready()
    play(wait.till, function(run, what) wanted[what] = state_of(run) end)
    moonloop:stop()
    local kill = kills.start(opts)
    play(function(...) return kill:till(...) end, function(run, what)
      wait.till("the state of what " .. what, 10, function()
        local differs = difference(wanted[what], state_of(run))
        return differs == "", differs
      end)
    end)
    kill:stop()
    assert.is_true(kill.count >= KILLS_MIN, kill.count)
  end)
end)
