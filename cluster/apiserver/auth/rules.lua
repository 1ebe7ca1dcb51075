--- Rules of roles: which requests a rule allows, and whether some rules cover another one.
---
--- Rules: kubernetes/pkg/apis/rbac/v1/evaluation_helpers.go, kubernetes/pkg/apis/rbac/helpers.go,
--- component-helpers/auth/rbac/validation/policy_comparator.go,
--- kubernetes/pkg/registry/rbac/validation/policy_compact.go.
local field = require "cluster.apiserver.field"

local M = {}

local NOTHING = {}


local function has(list, word)
  for _, item in ipairs(list or NOTHING) do
    if item == word then
      return true
    end
  end
  return false
end


local function has_or_star(list, word)
  return has(list, "*") or has(list, word)
end


-- "*/scale" is the scale of everything.
local function names_resource(rule, resource, subresource)
  if not subresource then
    return has_or_star(rule.resources, resource)
  end
  return has_or_star(rule.resources, resource .. "/" .. subresource) or has(rule.resources, "*/" .. subresource)
end


-- "/healthz/*" is everything below; a lone star is everything.
local function url_covers(owned, path)
  return owned == path or owned:sub(-1) == "*" and path:sub(1, #owned - 1) == owned:sub(1, -2)
end


local function names_url(rule, path)
  for _, url in ipairs(rule.nonResourceURLs or NOTHING) do
    if url_covers(url, path) then
      return true
    end
  end
  return false
end


--- Does a rule allow this?
--- @param attributes table of a request or a review: is_resource, verb, and group, resource, subresource, name, or path
function M.allows(rule, attributes)
  if not has_or_star(rule.verbs, attributes.verb) then
    return false
  elseif not attributes.is_resource then
    return names_url(rule, attributes.path)
  end
  local subresource = attributes.subresource ~= "" and attributes.subresource or nil
  return has_or_star(rule.apiGroups, attributes.group)
    and names_resource(rule, attributes.resource, subresource)
    and (not (rule.resourceNames and rule.resourceNames[1]) or has(rule.resourceNames, attributes.name or ""))
end


-- A rule as rules that each name one of everything.
local function break_down(rule, atoms)
  local names = rule.resourceNames and rule.resourceNames[1] and rule.resourceNames or { false }
  for _, group in ipairs(rule.apiGroups or NOTHING) do
    for _, resource in ipairs(rule.resources or NOTHING) do
      for _, verb in ipairs(rule.verbs or NOTHING) do
        for _, name in ipairs(names) do
          atoms[#atoms + 1] = { group = group, resource = resource, verb = verb, name = name or nil }
        end
      end
    end
  end
  for _, url in ipairs(rule.nonResourceURLs or NOTHING) do
    for _, verb in ipairs(rule.verbs or NOTHING) do
      atoms[#atoms + 1] = { url = url, verb = verb }
    end
  end
end


local function covers(rule, atom)
  if not has_or_star(rule.verbs, atom.verb) then
    return false
  elseif atom.url then
    return names_url(rule, atom.url)
  end
  local resource, subresource = atom.resource:match("^([^/]*)/(.*)$")
  local named = rule.resourceNames and rule.resourceNames[1]
  return has_or_star(rule.apiGroups, atom.group)
    and names_resource(rule, resource or atom.resource, subresource)
    and (not named or atom.name ~= nil and has(rule.resourceNames, atom.name))
end


local function quoted(list)
  local parts = {}
  for i, item in ipairs(list) do
    parts[i] = field.quote(item)
  end
  return "[" .. table.concat(parts, " ") .. "]"
end


local function describe(atom, verbs)
  if atom.url then
    return ("{NonResourceURLs:%s, Verbs:%s}"):format(quoted { atom.url }, quoted(verbs))
  end
  return ("{APIGroups:%s, Resources:%s%s, Verbs:%s}"):format(quoted { atom.group }, quoted { atom.resource },
    atom.name and ", ResourceNames:" .. quoted { atom.name } or "", quoted(verbs))
end


-- Atoms that differ in nothing but the verb become one line; those of paths stay as they are.
local function describe_all(atoms)
  local lines, compact, order = {}, {}, {}
  for _, atom in ipairs(atoms) do
    if atom.url then
      lines[#lines + 1] = describe(atom, { atom.verb })
    else
      local key = atom.group .. "\0" .. atom.resource .. "\0" .. (atom.name or "\0")
      if not compact[key] then
        compact[key] = { atom = atom, verbs = {} }
        order[#order + 1] = compact[key]
      end
      table.insert(compact[key].verbs, atom.verb)
    end
  end
  for _, entry in ipairs(order) do
    lines[#lines + 1] = describe(entry.atom, entry.verbs)
  end
  table.sort(lines)
  return lines
end


--- The rights of `wanted` that no rule of `owned` covers, in the words of the server's message, sorted; nil if none is.
--- @return string[]|nil
function M.missing(owned, wanted)
  local atoms, uncovered = {}, {}
  for _, rule in ipairs(wanted) do
    break_down(rule, atoms)
  end
  for _, atom in ipairs(atoms) do
    local found = false
    for _, rule in ipairs(owned) do
      found = found or covers(rule, atom)
    end
    uncovered[#uncovered + 1] = not found and atom or nil
  end
  return uncovered[1] and describe_all(uncovered) or nil
end


M.quoted = quoted


return M
