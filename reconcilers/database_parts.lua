-- The objects that database.lua keeps for a Database, as manifests: Service, StatefulSet and Job.
local moonloop = require "moonloop"
local engines = require "database_engines"

local M = {}

--- The label of all that belongs to a Database.
M.LABEL = "stable.example.com/database"

--- The annotation of the Job that says which users, passwords and volume it is for.
M.USERS = "stable.example.com/users"

-- The annotation of the server's pod by which it starts again when the superuser has another password.
local PASSWORD = "stable.example.com/superuser"

--- The key of the Secret with the superuser's password; no user can be called so.
M.SUPERUSER = "superuser-password"

local SECURITY = { runAsUser = 999, runAsGroup = 999, fsGroup = 999, runAsNonRoot = true }

function M.secret_name(db)
  return db.metadata.name .. "-secrets"
end


function M.job_name(db)
  return db.metadata.name .. "-users"
end


--- The name that the StatefulSet gives the claim of its only pod.
function M.claim_name(db)
  return ("data-%s-0"):format(db.metadata.name)
end


--- The Secret of the user's own that has the password; nil: one is made.
function M.own_secret(user)
  return user.passwordSecret ~= "" and user.passwordSecret or nil
end


--- The Database that an object with the label belongs to.
function M.database_of(object)
  return { { namespace = object.metadata.namespace, name = object.metadata.labels[M.LABEL] } }
end


--- Where other pods reach the database.
function M.connection(db)
  local engine = engines[db.spec.engine]
  return ("%s://%s.%s.svc:%d/app"):format(engine.scheme, db.metadata.name, db.metadata.namespace, engine.port)
end


--- The version that the server of a StatefulSet has.
function M.version(set)
  return set.spec.template.spec.containers[1].image:match ":([^:]*)$"
end


local function labels(db)
  return { [M.LABEL] = db.metadata.name }
end


local function file(secret, key, path)
  return { secret = { name = secret, items = { { key = key, path = path } } } }
end


-- A container that runs a script of the engine. `files`: what is in /secrets.
local function pod(db, container, files)
  container.image = engines[db.spec.engine].image .. ":" .. db.spec.version
  container.volumeMounts = container.volumeMounts or {}
  table.insert(container.volumeMounts, { name = "secrets", mountPath = "/secrets", readOnly = true })
  return {
    securityContext = SECURITY,
    containers = { container },
    volumes = { { name = "secrets", projected = { sources = files } } },
  }
end


function M.service(db)
  local port = engines[db.spec.engine].port
  return {
    apiVersion = "v1",
    kind = "Service",
    metadata = { name = db.metadata.name, labels = labels(db) },
    spec = { selector = labels(db), ports = { { name = "database", port = port, targetPort = port } } },
  }
end


--- The server. `set`: as it exists, or nil. Its claim's template cannot be changed and keeps the first size.
--- `digest`: changes with the superuser's password, which the server takes over when it starts.
function M.server(db, set, digest)
  local engine = engines[db.spec.engine]
  local first = set and set.spec.volumeClaimTemplates[1].spec.resources.requests.storage
  local template = pod(db, {
    name = "server",
    command = { "sh", "-ec", engine.start },
    ports = { { name = "database", containerPort = engine.port } },
    readinessProbe = { tcpSocket = { port = engine.port }, periodSeconds = 1 },
    lifecycle = engine.stop and { preStop = { exec = { command = { "sh", "-c", engine.stop } } } },
    volumeMounts = { { name = "data", mountPath = "/data" } },
  }, { file(M.secret_name(db), M.SUPERUSER, "superuser") })
  return {
    apiVersion = "apps/v1",
    kind = "StatefulSet",
    metadata = { name = db.metadata.name, labels = labels(db) },
    spec = {
      serviceName = db.metadata.name,
      replicas = 1,
      selector = { matchLabels = labels(db) },
      template = { metadata = { labels = labels(db), annotations = { [PASSWORD] = digest } }, spec = template },
      volumeClaimTemplates = {
        {
          metadata = { name = "data" },
          spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = first or db.spec.size } } },
        },
      },
    },
  }
end


--- The Job that gives the server its users. It tries until it is done; another digest makes another Job of it.
function M.users(db, digest)
  local files = { file(M.secret_name(db), M.SUPERUSER, "superuser") }
  for _, user in ipairs(db.spec.users) do
    local own = M.own_secret(user)
    files[#files + 1] = file(own or M.secret_name(db), own and "password" or user.username, "users/" .. user.username)
  end
  local template = pod(db, {
    name = "users",
    command = { "sh", "-ec", engines[db.spec.engine].users },
    env = { { name = "SERVER", value = db.metadata.name } },
  }, files)
  template.restartPolicy = "OnFailure"
  return moonloop.recreate {
    apiVersion = "batch/v1",
    kind = "Job",
    metadata = { name = M.job_name(db), labels = labels(db), annotations = { [M.USERS] = digest } },
    spec = {
      backoffLimit = 1000000,
      template = { metadata = { annotations = { [M.USERS] = digest } }, spec = template },
    },
  }
end


return M
