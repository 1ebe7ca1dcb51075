--- Kubernetes' library of authorization: authorizer.group('apps').resource('deployments').check('get').allowed().
---
--- The authorizer comes with the function that decides: decide(user, attributes) returns true if he may, and why.
--- Rules: apiserver/pkg/cel/library/authz.go.
local types = require "cluster.cel.types"
local values = require "cluster.cel.values"

local M = {}

local PREFIX <const> = "kubernetes.authorization."
local CHECK_COST <const> = 350000

M.short = {}
local classes = {}
for _, name in ipairs { "Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision" } do
  local class = values.class(PREFIX .. name)
  class.type = types.object(PREFIX .. name)
  class.equal = rawequal
  classes[name], M.short[name:lower()] = class, class.type
end

--- The types of `authorizer` and `authorizer.requestResource`.
M.authorizer, M.resource_check = classes.Authorizer.type, classes.ResourceCheck.type


--- An authorizer for a user. @param decide function(user, attributes) → allowed, reason
function M.new(user, decide)
  return setmetatable({ user = user, decide = decide }, classes.Authorizer)
end


--- A check of a resource. @param fields table group, resource, subresource, namespace, name
function M.resource(authorizer, fields)
  return setmetatable({ authorizer = authorizer, fields = fields }, classes.ResourceCheck)
end


local function is_blank(text)
  return not text:find "%S"
end


local function changed(name)
  return function(check, text)
    local fields = {}
    for key, value in pairs(check.fields) do
      fields[key] = value
    end
    fields[name] = text
    return M.resource(check.authorizer, fields)
  end
end


local function decision(authorizer, attributes)
  local allowed, reason = authorizer.decide(authorizer.user, attributes)
  return setmetatable({ allowed = allowed, reason = reason or "" }, classes.Decision)
end


local function service_account(authorizer, namespace, name)
  if not name:find "^[%l%d]" or name:find "[^%l%d.-]" then
    return nil, "Invalid service account name"
  elseif not namespace:find "^[%l%d]" or namespace:find "[^%l%d-]" then
    return nil, "Invalid service account namespace"
  end
  local groups = { "system:serviceaccounts", "system:serviceaccounts:" .. namespace, "system:authenticated" }
  return M.new({ name = ("system:serviceaccount:%s:%s"):format(namespace, name), groups = groups }, authorizer.decide)
end


local function selector_cost(_, text)
  return math.ceil(#text * 0.1)
end


local function check_cost()
  return CHECK_COST
end


--- Adds them.
function M.add(functions)
  functions:add("path", "authorizer_path", "authorizer.(string) -> pathcheck", function(authorizer, path)
    if is_blank(path) then
      return nil, "path must not be empty"
    end
    return setmetatable({ authorizer = authorizer, path = path }, classes.PathCheck)
  end)
  functions:add("group", "authorizer_group", "authorizer.(string) -> groupcheck", function(authorizer, group)
    return setmetatable({ authorizer = authorizer, group = group }, classes.GroupCheck)
  end)
  functions:add("serviceAccount", "authorizer_serviceaccount", "authorizer.(string, string) -> authorizer",
    service_account)
  functions:add("resource", "groupcheck_resource", "groupcheck.(string) -> resourcecheck", function(check, resource)
    if is_blank(resource) then
      return nil, "resource must not be empty"
    end
    return M.resource(check.authorizer, { group = check.group, resource = resource })
  end)
  for _, name in ipairs { "subresource", "namespace", "name" } do
    functions:add(name, "resourcecheck_" .. name, "resourcecheck.(string) -> resourcecheck", changed(name))
  end
  for _, name in ipairs { "fieldSelector", "labelSelector" } do
    functions:add(name, "authorizer_" .. name:lower(), "resourcecheck.(string) -> resourcecheck", changed(name))
    functions:cost(selector_cost)
  end
  functions:add("check", "pathcheck_check", "pathcheck.(string) -> decision", function(check, verb)
    return decision(check.authorizer, { is_resource = false, path = check.path, verb = verb })
  end)
  functions:cost(check_cost)
  functions:add("check", "resourcecheck_check", "resourcecheck.(string) -> decision", function(check, verb)
    local fields = check.fields
    return decision(check.authorizer, {
      is_resource = true, verb = verb, group = fields.group, version = "*", resource = fields.resource,
      subresource = fields.subresource ~= "" and fields.subresource or nil,
      namespace = fields.namespace or "", name = fields.name or "",
    })
  end)
  functions:cost(check_cost)
  functions:add("errored", "decision_errored", "decision.() -> bool", function()
    return false
  end)
  functions:add("error", "decision_error", "decision.() -> string", function()
    return ""
  end)
  functions:add("allowed", "decision_allowed", "decision.() -> bool", function(found)
    return found.allowed
  end)
  functions:add("reason", "decision_reason", "decision.() -> string", function(found)
    return found.reason
  end)
end


return M
