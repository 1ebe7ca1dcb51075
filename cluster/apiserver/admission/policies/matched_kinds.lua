--- The kinds whose types a policy's expressions are checked against: those that its rules name, without wildcards.
---
--- The group "" means any group, and resources are known by their singular names, too: as client-go's RESTMapper has
--- it. Rules: apiserver/pkg/admission/plugin/policy/validating/typechecking.go (typesToCheck),
--- apimachinery/pkg/api/meta/restmapper.go (KindsFor).
local M = {}

local NONE = {}
local KINDS_MAX = 10 -- of one rule; what follows it is not looked at


local function sorted(list)
  local copy = table.move(list or NONE, 1, #(list or NONE), 1, {})
  table.sort(copy)
  return copy
end


-- The names of a list in their order, none when one has a wildcard.
local function names_of(list)
  for _, name in ipairs(list or NONE) do
    if name:find("*", 1, true) then
      return NONE
    end
  end
  return sorted(list)
end


-- Without wildcards and subresources.
local function resources_of(list)
  local names = {}
  for _, name in ipairs(list or NONE) do
    if not name:find "[*/]" then
      names[#names + 1] = name
    end
  end
  return sorted(names)
end


-- Descriptions by version and lower-case name, each list in the order of their groups.
local function index(registry)
  local found = {}
  for _, res in ipairs(registry:all()) do
    for _, name in ipairs { res.plural, res.singular ~= res.plural and res.singular or nil } do
      local key = res.version .. "/" .. name
      found[key] = found[key] or {}
      table.insert(found[key], res)
    end
  end
  return found
end


-- Adds the kinds of a rule to `set`. @return boolean whether they are as many as one rule may have
local function add_rule(rule, found, set)
  local count = 0
  local resources, versions = resources_of(rule.resources), names_of(rule.apiVersions)
  for _, group in ipairs(names_of(rule.apiGroups)) do
    for _, version in ipairs(versions) do
      for _, name in ipairs(resources) do
        for _, res in ipairs(found[version .. "/" .. name:lower()] or NONE) do
          if group == "" or res.group == group then
            set[res.group .. "/" .. res.version .. "/" .. res.kind] = res
            count = count + 1
            if count == KINDS_MAX then
              return true
            end
          end
        end
      end
    end
  end
  return false
end


local function before(a, b)
  if a.group ~= b.group then
    return a.group < b.group
  elseif a.version ~= b.version then
    return a.version < b.version
  end
  return a.kind < b.kind
end


--- @param spec table of a policy
--- @return table list of descriptions of resources, in the order of groups, versions and kinds
function M.of(spec, registry)
  local set, list, found = {}, {}, index(registry)
  for _, rule in ipairs((spec.matchConstraints or NONE).resourceRules or NONE) do
    if add_rule(rule, found, set) then
      break
    end
  end
  for _, res in pairs(set) do
    list[#list + 1] = res
  end
  table.sort(list, before)
  return list
end


return M
