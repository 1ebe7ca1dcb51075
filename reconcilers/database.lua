-- Runs databases: for each Database a server in a StatefulSet, a Service, a Secret with the passwords, and a Job that
-- gives the server its users. database_parts.lua has their manifests.
-- The phases of a Database: Provisioning (the server does not answer, or never had its users) <-> Ready.
local moonloop = require "moonloop"
local cjson = require "cjson"
local crypto = require "moonloop.crypto"
local quantity = require "moonloop.quantity"
local engines = require "database_engines"
local parts = require "database_parts"

local Database = moonloop.kind("stable.example.com/v1", "Database")
local Secret = moonloop.kind("v1", "Secret")
local Service = moonloop.kind("v1", "Service")
local StatefulSet = moonloop.kind("apps/v1", "StatefulSet")
local Job = moonloop.kind("batch/v1", "Job")
local Claim = moonloop.kind("v1", "PersistentVolumeClaim", { labels = parts.LABEL })

local by_secret = moonloop.index(Database, function(db)
  local keys = {}
  for _, user in ipairs(db.spec.users) do
    keys[#keys + 1] = parts.own_secret(user)
  end
  return keys
end)


local function databases_with(secret, ctx)
  local namespace, name, list = secret.metadata.namespace, secret.metadata.name, {}
  for index, db in ipairs(ctx.list(Database, { namespace = namespace, index = by_secret, key = name })) do
    list[index] = { namespace = namespace, name = db.metadata.name }
  end
  return list
end


local function make_password()
  return crypto.password(32)
end


--- The superuser's password, all passwords, and the name of a Secret that should have one and has not, or nil.
local function passwords(db, ctx)
  local make, given, missing = { [parts.SUPERUSER] = make_password }, {}, nil
  for _, user in ipairs(db.spec.users) do
    local own = parts.own_secret(user)
    if own then
      given[user.username] = ((ctx.get(Secret, own) or {}).data or {}).password
      missing = not given[user.username] and own or missing
    else
      make[user.username] = make_password
    end
  end
  local name = parts.secret_name(db)
  if not ctx.get(Secret, name) then
    ctx.event("CreatedSecret", "the passwords are in the Secret " .. name)
  end
  local made = assert(ctx.once(name, make))
  return made[parts.SUPERUSER], { made = made, given = given }, missing
end


local function is_serving(set)
  return set.status.observedGeneration == set.metadata.generation
    and set.status.currentRevision == set.status.updateRevision
    and set.status.readyReplicas == set.spec.replicas
end


--- The status as things are. `set`, `job` and `volume` (the claim's uid) are nil when they do not exist yet.
local function observed(db, set, job, volume, digest, missing)
  local serves = set ~= nil and is_serving(set)
  local synced = job ~= nil and job.metadata.annotations[parts.USERS] == digest and job.status.succeeded == 1
  local ready = serves and (synced or volume ~= nil and db.status.volume == volume)
  local message = not serves and "the server does not answer yet"
    or missing and ("the Secret %s has no key password"):format(missing)
    or not synced and "the server does not have all its users yet" or ""
  return {
    status = {
      phase = ready and "Ready" or "Provisioning",
      ready = ready,
      volume = synced and volume or nil,
      message = message,
      connectionString = ready and parts.connection(db) or nil,
    },
    conditions = {
      Ready = { status = ready, reason = ready and "Provisioned" or "Provisioning", message = message },
      UsersSynced = { status = synced, reason = synced and "Synced" or "Syncing", message = message },
    },
  }
end


local function announce(db, status, ctx)
  if status.phase ~= db.status.phase then
    ctx.event(status.ready and "Provisioned" or "Provisioning", status.ready and "the server answers" or status.message)
  end
  if status.message == "" and db.status.message ~= "" then
    ctx.event("Synced", "the server has its users")
  end
end


--- The field that asks for something impossible and why it is, or nil. Makes the volume grow if it is too small.
local function refused(db, set, claim, ctx)
  local version = set and parts.version(set)
  if version and not engines.can_follow(version, db.spec.version) then
    return "spec.version", ("a server of version %s cannot open the files of version %s; make a new Database and "
      .. "copy the data"):format(db.spec.version, version)
  end
  local size = claim and claim.spec.resources.requests.storage
  local order = size and quantity.compare(db.spec.size, size) or 0
  if order < 0 then
    return "spec.size", ("the volume has %s, and volumes cannot shrink"):format(size)
  elseif order > 0 then
    local grown, err = ctx.patch(claim, { spec = { resources = { requests = { storage = db.spec.size } } } })
    if not grown then
      return "spec.size", err.message
    end
  end
end


return moonloop.controller {
  name = "database",
  reconciles = Database,
  owns = { Secret, Service, StatefulSet, Job },
  watches = { moonloop.watch(Secret, databases_with), moonloop.watch(Claim, parts.database_of) },

  reconcile = function(db, ctx)
    local set, job = ctx.get(StatefulSet, db.metadata.name), ctx.get(Job, parts.job_name(db))
    local claim = ctx.get(Claim, parts.claim_name(db))
    local superuser, users, missing = passwords(db, ctx)
    local volume = claim and claim.metadata.uid
    users.volume = volume -- a server with a new volume has no users
    local digest = crypto.hmac_sha256(superuser, cjson.encode(users))
    local result = observed(db, set, job, volume, digest, missing)
    announce(db, result.status, ctx)
    local field, why = refused(db, set, claim, ctx)
    if field then
      return ctx.invalid(field, why, result)
    end
    result.children = { parts.service(db), parts.server(db, set, crypto.sha256(superuser)) }
    result.children[3] = claim and parts.users(db, digest)
    return result
  end,

  -- The claim is not the Database's own. Its server goes first, or it would make another.
  finalize = function(db, ctx)
    local set, claim = ctx.get(StatefulSet, db.metadata.name), ctx.get(Claim, parts.claim_name(db))
    assert(not set or ctx.delete(set))
    assert(not claim or ctx.delete(claim))
  end,
}
