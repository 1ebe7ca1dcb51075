--- Puts the roles of kinds/roles.lua into a server that has none, and updates the aggregated roles.
---
--- kinds/roles.lua has the cluster roles for users and for everybody, and the groups that have them, without the roles
--- of the control plane's own components. A rule is { verbs =, groups =, resources = } or { verbs =, urls = },
--- each a text of words; "core" is the group "". `into` and `from` are labels without their prefix: the role that
--- includes this one, and the roles that this one includes.
---
--- Rules: kubernetes/pkg/registry/rbac/rest/storage_rbac.go (the objects made at the start),
--- kubernetes/pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go.
local host = require "cluster.host"
local gofmt = require "cluster.apiserver.gofmt"
local label_selector = require "cluster.apiserver.selector.label_selector"
local policy = require "cluster.kinds.roles"

local M = {}

local GROUP = "rbac.authorization.k8s.io"
local PATH = "/apis/rbac.authorization.k8s.io/v1/"
local ID = "clusterroles.rbac.authorization.k8s.io"
local AGENT = { user_agent = "kube-apiserver" }
local AGGREGATOR = {
  user_agent = "kube-controller-manager", content_type = "application/apply-patch+yaml",
}


local function words(text)
  local list = host.json.array {}
  for word in text:gmatch("%S+") do
    list[#list + 1] = word == "core" and "" or word
  end
  return list
end


local function rules_of(role)
  local list = host.json.array {}
  for i, rule in ipairs(role) do
    if rule.urls then
      list[i] = { verbs = words(rule.verbs), nonResourceURLs = words(rule.urls) }
    else
      list[i] = { verbs = words(rule.verbs), apiGroups = words(rule.groups), resources = words(rule.resources) }
    end
  end
  return list
end


local function metadata(name, into)
  local labels = { ["kubernetes.io/bootstrapping"] = "rbac-defaults" }
  if into then
    labels[GROUP .. "/" .. into] = "true"
  end
  return {
    name = name, labels = labels, annotations = { ["rbac.authorization.kubernetes.io/autoupdate"] = "true" },
  }
end


local function role_object(name, role)
  return {
    metadata = metadata(name, role.into), rules = rules_of(role),
    aggregationRule = role.from and {
      clusterRoleSelectors = host.json.array { { matchLabels = { [GROUP .. "/" .. role.from] = "true" } } },
    } or nil,
  }
end


local function binding_object(name, groups)
  local subjects = host.json.array {}
  for i, group in ipairs(groups) do
    subjects[i] = { kind = "Group", apiGroup = GROUP, name = group }
  end
  return {
    metadata = metadata(name), subjects = subjects,
    roleRef = { apiGroup = GROUP, kind = "ClusterRole", name = name },
  }
end


-- All cluster roles, by name.
local function read_roles(server)
  local list = {}
  server.store:collection(ID):each(nil, nil, function(entry)
    list[#list + 1] = host.json.decode(entry.text)
  end)
  return list
end


local function add_new(sum, rules)
  for _, rule in ipairs(type(rules) == "table" and rules or {}) do
    local known = false
    for _, other in ipairs(sum) do
      known = known or host.json.equal(rule, other)
    end
    if not known then
      sum[#sum + 1] = rule
    end
  end
end


-- The rules of all roles that a role's selectors select.
local function sum_of(role, roles)
  local sum = host.json.array {}
  for _, selector in ipairs(role.aggregationRule.clusterRoleSelectors or {}) do
    for _, other in ipairs(roles) do
      if other ~= role and label_selector.match(selector, other.metadata.labels) then
        add_new(sum, other.rules)
      end
    end
  end
  return sum
end


--- Writes the rules of the roles that sum up others. One that sums up another of its kind is right after the next call.
--- @return boolean changed whether there was anything to write
function M.aggregate(server)
  local roles, changed = read_roles(server), false
  for _, role in ipairs(roles) do
    local sum = role.aggregationRule and sum_of(role, roles)
    if sum and not host.json.equal(sum, type(role.rules) == "table" and role.rules or host.json.array {}) then
      changed = true
      server:call("PATCH", PATH .. "clusterroles/" .. role.metadata.name
        .. "?force=true&fieldManager=clusterrole-aggregation-controller", {
        apiVersion = GROUP .. "/v1", kind = "ClusterRole", metadata = { name = role.metadata.name }, rules = sum,
      }, AGGREGATOR)
    end
  end
  return changed
end


--- Makes the roles and bindings that are not there yet, and sums up what there is, now and whenever a role changes.
function M.start(server)
  for _, name in ipairs(gofmt.sorted_keys(policy.roles)) do
    server:call("POST", PATH .. "clusterroles", role_object(name, policy.roles[name]), AGENT)
  end
  for _, name in ipairs(gofmt.sorted_keys(policy.bindings)) do
    server:call("POST", PATH .. "clusterrolebindings", binding_object(name, policy.bindings[name]), AGENT)
  end
  -- view goes into edit, and edit into admin.
  for _ = 1, 3 do
    M.aggregate(server)
  end
  local waiting = false
  server:events(function(event)
    if event.id == ID and not waiting then
      waiting = true
      host.defer(function()
        waiting = false
        M.aggregate(server)
      end)
    end
  end)
end


return M
