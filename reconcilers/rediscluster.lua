-- Runs Redis: for each RedisCluster a StatefulSet with that many servers, and a headless Service that gives them names.
-- The first server takes the writes, the others follow it. Their data is in memory only: they are a cache.
local moonloop = require "moonloop"

local APP = "cache.example.com/rediscluster"

local RedisCluster = moonloop.kind("cache.example.com/v1", "RedisCluster")
local Service = moonloop.kind("v1", "Service")
local StatefulSet = moonloop.kind("apps/v1", "StatefulSet")
local Pod = moonloop.kind("v1", "Pod", { labels = "control-plane=redis-operator," .. APP })

local START = [[
  case $HOSTNAME in
    *-0) set -- ;;
    *) set -- --replicaof "$FIRST" 6379 ;;
  esac
  exec redis-server --protected-mode no --save "" --dir /data "$@"
]]

local function labels_for(cluster)
  return { ["control-plane"] = "redis-operator", [APP] = cluster.metadata.name }
end


-- Servers look each other up before they are ready.
local function service_for(cluster)
  return {
    apiVersion = "v1",
    kind = "Service",
    metadata = { name = cluster.metadata.name, labels = labels_for(cluster) },
    spec = {
      clusterIP = "None",
      publishNotReadyAddresses = true,
      selector = labels_for(cluster),
      ports = { { name = "redis", port = 6379 } },
    },
  }
end


-- The servers are started and stopped one after the other, the last one first.
local function servers_for(cluster)
  local name, labels = cluster.metadata.name, labels_for(cluster)
  return {
    apiVersion = "apps/v1",
    kind = "StatefulSet",
    metadata = { name = name, labels = labels },
    spec = {
      serviceName = name,
      replicas = cluster.spec.size,
      selector = { matchLabels = labels },
      template = {
        metadata = { labels = labels },
        spec = {
          securityContext = { runAsUser = 999, runAsGroup = 999, runAsNonRoot = true },
          containers = {
            {
              name = "redis",
              image = "redis:7",
              command = { "sh", "-c", START },
              env = { { name = "FIRST", value = ("%s-0.%s"):format(name, name) } },
              ports = { { name = "redis", containerPort = 6379 } },
              readinessProbe = { exec = { command = { "redis-cli", "ping" } }, periodSeconds = 1 },
              volumeMounts = { { name = "data", mountPath = "/data" } },
            },
          },
          volumes = { { name = "data", emptyDir = {} } },
        },
      },
    },
  }
end


local function is_ready(pod)
  for _, condition in ipairs(pod.status.conditions or {}) do
    if condition.type == "Ready" then
      return condition.status == "True"
    end
  end
end


local function ready_nodes(cluster, ctx)
  local names = moonloop.array {}
  for _, pod in ipairs(ctx.list(Pod, { labels = labels_for(cluster) })) do
    names[#names + 1] = is_ready(pod) and pod.metadata.name or nil
  end
  return names
end


-- Of some conversions the API server only wants a part of the object, which may have no spec.
local function rename(spec, from, to)
  if spec[from] ~= nil then
    spec[to], spec[from] = spec[from], nil
  end
end


return moonloop.controller {
  name = "rediscluster",
  reconciles = RedisCluster,
  owns = { Service, StatefulSet },
  watches = {
    moonloop.watch(Pod, function(pod)
      return { { namespace = pod.metadata.namespace, name = pod.metadata.labels[APP] } }
    end),
  },

  reconcile = function(cluster, ctx)
    local size, nodes = cluster.spec.size, ready_nodes(cluster, ctx)
    local set = ctx.get(StatefulSet, cluster.metadata.name)
    local replicas = set and set.status.replicas or 0
    local ready = set ~= nil and replicas == size and #nodes == size
    local message = ("%d of %d servers are ready"):format(#nodes, size)
    if set and set.spec.replicas ~= size then
      ctx.event("Scaling", ("from %d to %d servers"):format(set.spec.replicas, size))
    elseif ready and not (cluster.status.replicas == size and cluster.status.readyReplicas == size) then
      ctx.event("Scaled", message)
    end
    return {
      children = { service_for(cluster), servers_for(cluster) },
      status = {
        nodes = nodes,
        replicas = replicas,
        readyReplicas = #nodes,
        selector = ("%s=%s"):format(APP, cluster.metadata.name),
      },
      conditions = { Ready = { status = ready, reason = ready and "AllReady" or "Scaling", message = message } },
    }
  end,

  -- spec.size was spec.replicas in v1alpha1.
  convert = {
    v1alpha1 = {
      to = function(cluster) rename(cluster.spec, "replicas", "size") end,
      from = function(cluster) rename(cluster.spec, "size", "replicas") end,
    },
  },
}
