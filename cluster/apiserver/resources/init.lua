--- Descriptions of the built-in kinds that are served, made from the table of kinds (kinds.lua) and the facts on
--- resources (kinds/resources.lua).
local builtin = require "cluster.apiserver.schema.builtin"
local facts = require "cluster.kinds.resources"
local kinds = require "cluster.apiserver.resources.kinds"
local later = require "cluster.later"
local selectors = require "cluster.apiserver.resources.selectors"
local typed = require "cluster.apiserver.schema.typed"

local M = {}

local VERBS = { "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch" }
local NONE = {}

-- Where the number of copies stands in every built-in kind that has a scale.
local SCALE = { spec = "spec.replicas", status = "status.replicas", selector = selectors.of_spec }


-- Puts the object in the form of its type first: what the kind's own defaults see has no nulls and no empty parts.
local function with_type(normalize, defaults)
  if not defaults then
    return normalize
  end
  return function(object)
    normalize(object)
    defaults(object)
  end
end


local function rules_of(kind)
  if not kind.rules then
    return NONE
  end
  local module, one = kind.rules:match("^(%S+) ?(%S*)$")
  local rules = require("cluster.apiserver." .. (module:find(".", 1, true) and module or "resources." .. module))
  return one ~= "" and rules[one] or rules
end


local function strategy_of(res, kind)
  local strategy = {}
  for name, value in pairs(rules_of(kind)) do
    strategy[name] = value
  end
  if not strategy.review then
    strategy.defaults = with_type(typed.of(builtin.name_of(res.group, res.version, res.kind)), strategy.defaults)
  end
  return strategy
end


-- Names of parts → true, or where the numbers of a scale stand.
local function subresources_of(parts)
  local set = {}
  for _, part in ipairs(parts) do
    set[part.name] = part.name == "scale" and SCALE or true
  end
  return set
end


-- The names of a kind, and its place in the store.
local function identity(fact, id)
  return {
    group = fact.group, version = fact.version, storage_version = fact.version,
    api_version = fact.group == "" and fact.version or fact.group .. "/" .. fact.version,
    id = id or (fact.group == "" and fact.plural or fact.plural .. "." .. fact.group),
    plural = fact.plural, singular = fact.singular or fact.kind:lower(), kind = fact.kind,
    list_kind = fact.kind .. "List", namespaced = fact.namespaced, builtin = true,
  }
end


local function describe(fact, kind)
  local res = identity(fact, kind.id)
  res.verbs = fact.verbs or VERBS
  res.short = fact.short or NONE
  res.categories = fact.categories or NONE
  res.parts = fact.parts or NONE
  res.subresources = subresources_of(res.parts)
  res.printed = fact.columns
  res.deprecated = kind.deprecated
  res.storage_version = kind.stored or res.storage_version
  res.schema = builtin.of(res.group, res.version, res.kind)
  res.strategy = later.table(function()
    return strategy_of(res, kind)
  end)
  res.convert = kind.id and later.table(function()
    return rules_of(kind).convert
  end)
  return res
end


--- Descriptions of all built-in kinds, one a group and version, in a list of the caller's own, in the order in which
--- discovery lists their groups.
function M.all()
  local list = {}
  for _, fact in ipairs(facts) do
    local served = kinds[fact.group == "" and fact.version or fact.group .. "/" .. fact.version]
    local kind = served and served[fact.plural]
    if kind then
      list[#list + 1] = describe(fact, kind)
    end
  end
  return list
end


return M
