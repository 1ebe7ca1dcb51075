--- Completes the short description of a built-in kind to the one that the server works with.
local builtin = require "cluster.apiserver.schema.builtin"
local typed = require "cluster.apiserver.schema.typed"

local M = {}

local VERBS = { "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch" }


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


--- Makes a resource description.
--- @param short table group ("" when left out), plural, kind, and of the other fields those that differ from the
---   usual: version v1, singular (the kind in lower case), namespaced, all verbs, no short names, categories or
---   subresources. `strategy.defaults` runs after the object has been put in the form of its type.
--- @return table res
function M.kind(short)
  local res = {}
  for key, value in pairs(short) do
    res[key] = value
  end
  res.group = res.group or ""
  res.version = res.version or "v1"
  res.storage_version = res.storage_version or res.version
  res.api_version = res.group == "" and res.version or res.group .. "/" .. res.version
  res.id = res.id or (res.group == "" and res.plural or res.plural .. "." .. res.group)
  res.singular = res.singular or res.kind:lower()
  res.list_kind = res.kind .. "List"
  res.namespaced = res.namespaced ~= false
  res.builtin = true
  res.verbs = res.verbs or VERBS
  res.short = res.short or {}
  res.categories = res.categories or {}
  res.subresources = res.subresources or {}
  res.schema = builtin.of(res.group, res.version, res.kind)
  res.strategy = res.strategy or {}
  res.strategy.defaults = with_type(typed.of(builtin.name_of(res.group, res.version, res.kind)),
    res.strategy.defaults)
  return res
end


--- The set of the words in a list.
function M.set(words)
  local set = {}
  for _, word in ipairs(words) do
    set[word] = true
  end
  return set
end


return M
