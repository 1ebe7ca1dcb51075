--- The FlowSchemas and PriorityLevelConfigurations that a server makes when it starts. Objects with mandatory names
--- have to be as they are here.
---
--- Rules: apiserver/pkg/apis/flowcontrol/bootstrap/default.go.
local host = require "cluster.host"

local array = host.json.array

local M = {}

local NOBODY_IS_LEFT_OUT = { "system:unauthenticated", "system:authenticated" }


local function queue(queues, hand)
  return { type = "Queue", queuing = { queues = queues, handSize = hand, queueLengthLimit = 50 } }
end


local function limited(shares, lendable, response)
  return { type = "Limited", limited = {
    nominalConcurrencyShares = shares, lendablePercent = lendable, limitResponse = response,
  } }
end


--- Specs of PriorityLevelConfigurations, by name.
M.levels = {
  exempt = { type = "Exempt", exempt = { nominalConcurrencyShares = 0, lendablePercent = 0 } },
  ["catch-all"] = limited(5, 0, { type = "Reject" }),
  system = limited(30, 33, queue(64, 6)),
  ["node-high"] = limited(40, 25, queue(64, 6)),
  ["leader-election"] = limited(10, 0, queue(16, 4)),
  ["workload-high"] = limited(40, 50, queue(128, 6)),
  ["workload-low"] = limited(100, 90, queue(128, 6)),
  ["global-default"] = limited(20, 50, queue(128, 6)),
}


local function groups(names)
  local list = array {}
  for i, name in ipairs(names) do
    list[i] = { kind = "Group", group = { name = name } }
  end
  return list
end


local function users(names)
  local list = array {}
  for i, name in ipairs(names) do
    list[i] = { kind = "User", user = { name = name } }
  end
  return list
end


-- All service accounts of the system, behind those in `list`.
local function with_accounts(list)
  list[#list + 1] = { kind = "ServiceAccount", serviceAccount = { name = "*", namespace = "kube-system" } }
  return list
end


local function resource_rule(verbs, group, resources, with_cluster)
  return {
    verbs = array(verbs), apiGroups = array { group }, resources = array(resources), namespaces = array { "*" },
    clusterScope = with_cluster or nil,
  }
end


local function everything(subjects)
  return {
    subjects = subjects,
    resourceRules = array { resource_rule({ "*" }, "*", { "*" }, true) },
    nonResourceRules = array { { verbs = array { "*" }, nonResourceURLs = array { "*" } } },
  }
end


local function schema(level, precedence, method, rule)
  return {
    priorityLevelConfiguration = { name = level }, matchingPrecedence = precedence,
    distinguisherMethod = method and { type = method } or nil, rules = array { rule },
  }
end


--- Specs of FlowSchemas, by name.
M.schemas = {
  exempt = schema("exempt", 1, nil, everything(groups { "system:masters" })),
  ["catch-all"] = schema("catch-all", 10000, "ByUser", everything(groups(NOBODY_IS_LEFT_OUT))),
  probes = schema("exempt", 2, nil, {
    subjects = groups(NOBODY_IS_LEFT_OUT),
    nonResourceRules = array { {
      verbs = array { "get" }, nonResourceURLs = array { "/healthz", "/readyz", "/livez" },
    } },
  }),
  ["system-leader-election"] = schema("leader-election", 100, "ByUser", {
    subjects = with_accounts(users { "system:kube-controller-manager", "system:kube-scheduler" }),
    resourceRules = array { resource_rule({ "get", "create", "update" }, "coordination.k8s.io", { "leases" }) },
  }),
  ["system-node-high"] = schema("node-high", 400, "ByUser", {
    subjects = groups { "system:nodes" },
    resourceRules = array {
      resource_rule({ "*" }, "", { "nodes", "nodes/status" }, true),
      resource_rule({ "*" }, "coordination.k8s.io", { "leases" }),
    },
  }),
  ["system-nodes"] = schema("system", 500, "ByUser", everything(groups { "system:nodes" })),
  ["kube-controller-manager"] = schema("workload-high", 800, "ByNamespace",
    everything(users { "system:kube-controller-manager" })),
  ["kube-scheduler"] = schema("workload-high", 800, "ByNamespace", everything(users { "system:kube-scheduler" })),
  ["kube-system-service-accounts"] = schema("workload-high", 900, "ByNamespace", everything(with_accounts(array {}))),
  ["service-accounts"] = schema("workload-low", 9000, "ByUser", everything(groups { "system:serviceaccounts" })),
  ["global-default"] = schema("global-default", 9900, "ByUser", everything(groups(NOBODY_IS_LEFT_OUT))),
}

--- Names of objects of both kinds that nobody may change.
M.mandatory = { exempt = true, ["catch-all"] = true }


return M
