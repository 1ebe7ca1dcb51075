--- Puts the roles of kinds/roles.lua into a server that has none, and updates the aggregated roles.
---
--- kinds/roles.lua has the cluster roles for users and for everybody, and the groups that have them, without the roles
--- of the control plane's own components; and the roles and bindings of single namespaces. A rule is { verbs =,
--- groups =, resources =, names = } or { verbs =, urls = }, each a text of words; "core" is the group "". `into` and
--- `from` are labels without their prefix: the role that includes this one, and the roles that this one includes.
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
      list[i] = {
        verbs = words(rule.verbs), apiGroups = words(rule.groups), resources = words(rule.resources),
        resourceNames = rule.names and words(rule.names) or nil,
      }
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


-- The subjects of a binding: users, and service accounts, each written NAMESPACE/NAME.
local function subjects_of(binding)
  local subjects = host.json.array {}
  for _, user in ipairs(words(binding.users)) do
    subjects[#subjects + 1] = { kind = "User", apiGroup = GROUP, name = user }
  end
  for namespace, name in binding.accounts:gmatch "(%S+)/(%S+)" do
    subjects[#subjects + 1] = { kind = "ServiceAccount", name = name, namespace = namespace }
  end
  return subjects
end


-- Adds what a namespace has.
local function add_namespace(list, namespace, about)
  local path = PATH .. "namespaces/" .. namespace
  for _, name in ipairs(gofmt.sorted_keys(about.roles)) do
    list[#list + 1] = { path .. "/roles", { metadata = metadata(name), rules = rules_of(about.roles[name]) } }
  end
  for _, name in ipairs(gofmt.sorted_keys(about.bindings)) do
    local binding = about.bindings[name]
    list[#list + 1] = { path .. "/rolebindings", {
      metadata = metadata(name), subjects = subjects_of(binding),
      roleRef = { apiGroup = GROUP, kind = "Role", name = binding.role },
    } }
  end
end


-- All roles and bindings, each { path, object }.
local function objects()
  local list = {}
  for _, name in ipairs(gofmt.sorted_keys(policy.roles)) do
    list[#list + 1] = { PATH .. "clusterroles", role_object(name, policy.roles[name]) }
  end
  for _, name in ipairs(gofmt.sorted_keys(policy.bindings)) do
    list[#list + 1] = { PATH .. "clusterrolebindings", binding_object(name, policy.bindings[name]) }
  end
  for _, namespace in ipairs(gofmt.sorted_keys(policy.namespaces)) do
    add_namespace(list, namespace, policy.namespaces[namespace])
  end
  return list
end


local function create(server, path, object)
  server:call("POST", path, object, AGENT)
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


-- Sums up what there is, now and whenever a role changes.
local function follow(server)
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


--- Makes the roles and bindings that are not there yet, and sums up what there is, now and whenever a role changes.
function M.start(server)
  for _, one in ipairs(objects()) do
    create(server, table.unpack(one))
  end
  follow(server)
end


--- The same in turns, an object in each: requests are answered meanwhile.
function M.start_in_turns(server)
  local list, at = objects(), 0
  local function step()
    at = at + 1
    if not list[at] then
      return follow(server)
    end
    create(server, table.unpack(list[at]))
    host.after(0, step)
  end
  host.after(0, step)
end


return M
