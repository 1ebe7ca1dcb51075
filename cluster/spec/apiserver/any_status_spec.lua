--- Every kind with a status is sent statuses of its type made at random, for an object that is there. No answer is a
--- mistake of the server's own.
local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"
local kinds = require "cluster.apiserver.resources"
local testobjects = require "testobjects"
local testserver = require "testserver"

local MERGE = { ["content-type"] = "application/merge-patch+json" }
local STATUSES = tonumber(os.getenv "ANY_BODY_OBJECTS") or 8
local SEED = tonumber(os.getenv "ANY_BODY_SEED") or 0

local LABELS = { a = "b" }
local CONTAINERS = host.json.array { { name = "a", image = "x" } }
local TEMPLATE = { metadata = { labels = LABELS }, spec = { containers = CONTAINERS } }
local WORKLOAD = { selector = { matchLabels = LABELS }, template = TEMPLATE }
local ONCE = { containers = CONTAINERS, restartPolicy = "Never" }

-- The smallest object of a kind that is stored; none: one without a spec.
local SPECS = {
  pods = { containers = CONTAINERS, resourceClaims = host.json.array { { name = "a", resourceClaimName = "a" } } },
  replicationcontrollers = { selector = LABELS, template = TEMPLATE },
  deployments = WORKLOAD, replicasets = WORKLOAD, daemonsets = WORKLOAD,
  statefulsets = { selector = { matchLabels = LABELS }, template = TEMPLATE, serviceName = "a" },
  services = { ports = host.json.array { { port = 80 } } },
  jobs = { template = { spec = ONCE } },
  cronjobs = { schedule = "@daily", jobTemplate = { spec = { template = { spec = ONCE } } } },
  persistentvolumeclaims = {
    accessModes = host.json.array { "ReadWriteOnce" }, resources = { requests = { storage = "1" } },
  },
  persistentvolumes = {
    accessModes = host.json.array { "ReadWriteOnce" }, capacity = { storage = "1" }, hostPath = { path = "/a" },
  },
  ingresses = { defaultBackend = { service = { name = "a", port = { number = 1 } } } },
  horizontalpodautoscalers = {
    maxReplicas = 2, scaleTargetRef = { apiVersion = "apps/v1", kind = "Deployment", name = "a" },
  },
  poddisruptionbudgets = { selector = { matchLabels = LABELS } },
  servicecidrs = { cidrs = host.json.array { "192.0.2.0/24" } },
  resourceclaims = { devices = { requests = host.json.array { { name = "a", exactly = { deviceClassName = "a" } } } } },
  volumeattachments = { attacher = "a", nodeName = "a", source = { persistentVolumeName = "a" } },
  validatingadmissionpolicies = {
    matchConstraints = { resourceRules = host.json.array { {
      apiGroups = host.json.array { "" }, apiVersions = host.json.array { "v1" },
      operations = host.json.array { "CREATE" }, resources = host.json.array { "pods" },
    } } },
    validations = host.json.array { { expression = "true" } },
  },
  flowschemas = { priorityLevelConfiguration = { name = "a" } },
  prioritylevelconfigurations = { type = "Limited", limited = { limitResponse = { type = "Reject" } } },
}

-- Kinds whose objects take more than a few words: their own specs try them.
local LEFT_OUT = { apiservices = true, customresourcedefinitions = true, certificatesigningrequests = true }


local function with_status()
  local found = {}
  for _, res in ipairs(kinds.all()) do
    for _, part in ipairs(res.parts) do
      found[#found + 1] = part.name == "status" and not LEFT_OUT[res.plural] and res or nil
    end
  end
  return found
end


local function path_of(res)
  return (res.group == "" and "/api/" or "/apis/" .. res.group .. "/") .. res.version
    .. (res.namespaced and "/namespaces/default/" or "/") .. res.plural
end


describe("a server that is sent any status", function()
  for _, res in ipairs(with_status()) do
    it("answers what it says of " .. res.plural .. " in " .. res.api_version, function()
      local world, path = testserver.new { accounts = false }, path_of(res)
      local random, name = testobjects.new(res, SEED), builtin.name_of(res.group, res.version, res.kind)
      world:must("POST", path, { metadata = { name = "a" }, spec = SPECS[res.plural] })
      for _ = 1, STATUSES do
        local text = host.json.encode { status = random:object(name, "a").status }
        local ok, reply = pcall(world.send, world, "PATCH", path .. "/a/status", text, MERGE)
        assert.truthy(ok and reply.code < 500, ("%s: %s"):format(text, ok and reply.body or reply))
      end
    end)
  end

  it("takes a list that is null for an empty one", function()
    local world = testserver.new { accounts = false }
    local path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    world:must("POST", path, { metadata = { name = "a" }, spec = SPECS.resourceclaims })
    local device = { driver = "d.example.com", pool = "p", device = "x" }
    local result = { request = "a", driver = device.driver, pool = device.pool, device = device.device }
    local status = {
      allocation = { devices = { results = host.json.array { result } } },
      devices = host.json.array { { driver = "d.example.com", pool = "p", device = "x", conditions = host.json.null } },
    }
    local reply = world:send("PATCH", path .. "/a/status", host.json.encode { status = status }, MERGE)
    assert.equal(200, reply.code, reply.body)
  end)
end)
