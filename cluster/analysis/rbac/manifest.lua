--- Roles, their bindings and a ServiceAccount as YAML, with a comment at each rule that says what needs it.
local host = require "cluster.host"
local verbs = require "cluster.analysis.rbac.verbs"

local M = {}

local COLUMNS = 100


-- On one line.
local function scalar(text)
  return text:find "\n" and host.json.encode(text) or (host.yaml.encode(text):gsub("\n$", ""))
end


local function flow(list)
  local items = {}
  for index, item in ipairs(list) do
    items[index] = scalar(item)
  end
  return ("[%s]"):format(table.concat(items, ", "))
end


local function sorted_keys(set)
  local list = {}
  for key in pairs(set) do
    list[#list + 1] = key
  end
  table.sort(list)
  return list
end


-- Lines of a comment, with this many spaces before them.
local function comment(text, indent)
  local lines, line = {}, "#"
  for word in text:gmatch "%S+" do
    if indent + #line + 1 + #word > COLUMNS then
      lines[#lines + 1], line = line, "#"
    end
    line = line .. " " .. word
  end
  lines[#lines + 1] = line
  return (" "):rep(indent) .. table.concat(lines, "\n" .. (" "):rep(indent)) .. "\n"
end


local function head(api_version, kind, name, namespace)
  return ("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n%s"):format(api_version, kind, scalar(name),
    namespace and ("  namespace: %s\n"):format(scalar(namespace)) or "")
end


--- A ServiceAccount.
function M.account(account)
  return head("v1", "ServiceAccount", account.name, account.namespace)
end


local function rule_text(rule)
  local text = comment(table.concat(rule.why, "; "), 2)
  text = text .. ("  - apiGroups: %s\n    resources: %s\n"):format(flow { rule.group }, flow { rule.resource })
  if rule.names then
    text = text .. ("    resourceNames: %s\n"):format(flow(sorted_keys(rule.names)))
  end
  return text .. ("    verbs: %s\n"):format(flow(verbs.sorted(rule.verbs)))
end


--- A role with these rules, and its binding to the account. @param namespace string|nil of a Role; nil: a ClusterRole
function M.role(name, namespace, rules, account)
  local prefix = namespace and "" or "Cluster"
  local role = head("rbac.authorization.k8s.io/v1", prefix .. "Role", name, namespace) .. "rules:\n"
  for _, rule in ipairs(rules) do
    role = role .. rule_text(rule)
  end
  local binding = head("rbac.authorization.k8s.io/v1", prefix .. "RoleBinding", name, namespace)
    .. ("roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: %sRole\n  name: %s\n"):format(prefix, scalar(name))
    .. ("subjects:\n  - kind: ServiceAccount\n    name: %s\n    namespace: %s\n"):format(scalar(account.name),
      scalar(account.namespace))
  return role .. "---\n" .. binding
end


--- The file: a comment, then these documents.
function M.file(title, documents)
  return comment(title, 0) .. table.concat(documents, "---\n")
end


return M
