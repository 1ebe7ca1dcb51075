-- Objects of many kinds with one value replaced by a wrong one: each is refused or accepted, and none is a mistake of
-- the server's own.
local host = require "cluster.host"
local testserver = require "testserver"

local N = "namespaces/default/"
local PODS = { metadata = { labels = { a = "b" } }, spec = { containers = { { name = "a", image = "x" } } } }
local JOBS = { parallelism = 1, completionMode = "Indexed", completions = 1,
  template = { spec = { restartPolicy = "Never", containers = { { name = "a", image = "x" } } } } }
local TARGET = { type = "Utilization", averageUtilization = 1 }
local REFERENCE = { kind = "a", name = "b", apiVersion = "a/b" }

-- A good object of each.
local OBJECTS = {
  ["/api/v1/" .. N .. "replicationcontrollers"] = { spec = { replicas = 1, selector = { a = "b" }, template = PODS } },
  ["/api/v1/" .. N .. "resourcequotas"] = { spec = { hard = { cpu = "1" }, scopes = { "Terminating" }, scopeSelector = {
    matchExpressions = { { scopeName = "PriorityClass", operator = "In", values = { "a" } } } } } },
  ["/api/v1/" .. N .. "limitranges"] = { spec = { limits = { { type = "Container", max = { cpu = "1" },
    min = { cpu = "1m" }, default = { cpu = "1" }, maxLimitRequestRatio = { cpu = "2" } } } } },
  ["/apis/scheduling.k8s.io/v1/priorityclasses"] = { value = 1, globalDefault = false, preemptionPolicy = "Never" },
  ["/apis/node.k8s.io/v1/runtimeclasses"] = { handler = "a", overhead = { podFixed = { cpu = "1" } },
    scheduling = { nodeSelector = { a = "b" }, tolerations = { { key = "a", operator = "Exists" } } } },
  ["/apis/storage.k8s.io/v1/storageclasses"] = { provisioner = "a", parameters = { a = "b" },
    reclaimPolicy = "Delete", allowedTopologies = { { matchLabelExpressions = { { key = "a", values = { "b" } } } } } },
  ["/apis/storage.k8s.io/v1/csidrivers"] = { spec = { attachRequired = true, fsGroupPolicy = "None",
    tokenRequests = { { audience = "a", expirationSeconds = 700 } }, volumeLifecycleModes = { "Persistent" } } },
  ["/apis/storage.k8s.io/v1/csinodes"] = { spec = { drivers = { { name = "a", nodeID = "b", topologyKeys = { "a" },
    allocatable = { count = 1 } } } } },
  ["/apis/storage.k8s.io/v1/volumeattachments"] = { spec = { attacher = "a", nodeName = "b", source = {
    inlineVolumeSpec = { accessModes = { "ReadWriteOnce" }, csi = { driver = "a", volumeHandle = "b" } } } } },
  ["/apis/storage.k8s.io/v1/" .. N .. "csistoragecapacities"] = { storageClassName = "a", capacity = "1",
    nodeTopology = { matchLabels = { a = "b" } } },
  ["/apis/storage.k8s.io/v1/volumeattributesclasses"] = { driverName = "a", parameters = { a = "b" } },
  ["/apis/networking.k8s.io/v1/" .. N .. "ingresses"] = { spec = { ingressClassName = "a",
    defaultBackend = { service = { name = "a", port = { number = 1 } } },
    tls = { { hosts = { "a.b" }, secretName = "a" } }, rules = { { host = "a.b", http = { paths = { {
      path = "/", pathType = "Prefix", backend = { resource = { kind = "a", name = "b", apiGroup = "c" } },
    } } } } } } },
  ["/apis/networking.k8s.io/v1/" .. N .. "networkpolicies"] = { spec = { podSelector = { matchLabels = { a = "b" } },
    policyTypes = { "Ingress" }, ingress = { { ports = { { port = 1, endPort = 2, protocol = "TCP" } }, from = {
      { ipBlock = { cidr = "10.0.0.0/8", except = { "10.1.0.0/16" } } }, { podSelector = {} } } } } } },
  ["/apis/batch/v1/" .. N .. "cronjobs"] = { spec = { schedule = "* * * * *", timeZone = "UTC", suspend = true,
    startingDeadlineSeconds = 1, concurrencyPolicy = "Allow", jobTemplate = { spec = JOBS } } },
  ["/apis/apps/v1/" .. N .. "daemonsets"] = { spec = { selector = { matchLabels = { a = "b" } }, template = PODS,
    updateStrategy = { type = "RollingUpdate", rollingUpdate = { maxSurge = "10%", maxUnavailable = 0 } } } },
  ["/apis/autoscaling/v2/" .. N .. "horizontalpodautoscalers"] = { spec = { scaleTargetRef = REFERENCE,
    minReplicas = 1, maxReplicas = 2, metrics = { { type = "Resource", resource = { name = "cpu", target = TARGET } },
      { type = "Object", object = { describedObject = { kind = "a", name = "b" }, metric = { name = "a" },
        target = { type = "Value", value = "1" } } } },
    behavior = { scaleUp = { policies = { { type = "Pods", value = 1, periodSeconds = 1 } }, tolerance = "1" } } } },
  ["/apis/autoscaling/v1/" .. N .. "horizontalpodautoscalers"] = { spec = { scaleTargetRef = REFERENCE,
    minReplicas = 1, maxReplicas = 2, targetCPUUtilizationPercentage = 4 } },
  ["/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"] = { spec = { priorityLevelConfiguration = { name = "a" },
    matchingPrecedence = 5, distinguisherMethod = { type = "ByUser" }, rules = { {
      subjects = { { kind = "User", user = { name = "a" } } },
      resourceRules = { { verbs = { "get" }, apiGroups = { "" }, resources = { "a" }, namespaces = { "*" } } },
      nonResourceRules = { { verbs = { "get" }, nonResourceURLs = { "/a" } } } } } } },
  ["/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"] = { spec = { type = "Limited", limited = {
    nominalConcurrencyShares = 1, lendablePercent = 1,
    limitResponse = { type = "Queue", queuing = { queues = 1, handSize = 1, queueLengthLimit = 1 } } } } },
  ["/apis/apiregistration.k8s.io/v1/apiservices"] = { spec = { group = "a", version = "v1", groupPriorityMinimum = 1,
    versionPriority = 1, caBundle = "YQ==", service = { name = "a", namespace = "b", port = 1 } } },
  ["/apis/policy/v1/" .. N .. "poddisruptionbudgets"] = { spec = { minAvailable = 1,
    selector = { matchLabels = { a = "b" } } } },
}

local WRONG = { host.json.null, "", "%", -1, host.json.array {}, {}, { a = host.json.null } }


-- The places of all values in `value`, as lists of keys.
local function places(value, at, list)
  if #at > 0 then
    list[#list + 1] = at
  end
  for key, inner in pairs(type(value) == "table" and value or {}) do
    local place = { table.unpack(at) }
    place[#place + 1] = key
    places(inner, place, list)
  end
  return list
end


-- The JSON of an object with another value at a place, or nil when that can be no JSON.
local function spoiled(object, place, value)
  local copy = host.json.copy(object)
  local inner = copy
  for i = 1, #place - 1 do
    inner = inner[place[i]]
  end
  inner[place[#place]] = value
  local ok, text = pcall(host.json.encode, copy)
  return ok and text or nil
end


describe("Wrong objects", function()
  local server
  setup(function() server = testserver.new() end)

  for path, object in pairs(OBJECTS) do
    it("at " .. path .. " are no mistakes of the server", function()
      object.metadata = { name = path:find("apiservices", 1, true) and "v1.a" or "a" }
      server:must("POST", path .. "?dryRun=All", object)
      for _, place in ipairs(places(object, {}, {})) do
        for _, value in ipairs(WRONG) do
          local text = spoiled(object, place, value)
          local code, answer = 0, nil
          if text then
            code, answer = server:call("POST", path .. "?dryRun=All", text)
          end
          assert.is_true(code < 500, ("%s: %s"):format(text, answer and answer.message))
        end
      end
    end)
  end
end)
