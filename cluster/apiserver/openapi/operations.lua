--- The requests for a resource: its paths and their methods, independent of the OpenAPI version.
---
--- Rules: apiserver/pkg/endpoints/installer.go, apiextensions-apiserver/pkg/controller/openapi/builder/builder.go.
--- The old paths that begin with /watch/ and those that connect to something (exec, proxy) are left out.
local builtin = require "cluster.apiserver.schema.builtin"
local custom = require "cluster.apiserver.openapi.custom"
local subresources = require "cluster.apiserver.discovery.subresources"

local M = {}

local META = "io.k8s.apimachinery.pkg.apis.meta.v1."

local LIST = {
  "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
  "resourceVersionMatch", "sendInitialEvents", "shardSelector", "timeoutSeconds", "watch",
}
local WRITE = { "dryRun", "fieldManager", "fieldValidation" }
local PATCH = { "dryRun", "fieldManager", "fieldValidation", "force" }
local DELETE = {
  "dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents",
  "propagationPolicy",
}
local DELETE_COLLECTION = {
  "continue", "dryRun", "fieldSelector", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential",
  "labelSelector", "limit", "orphanDependents", "propagationPolicy", "resourceVersion", "resourceVersionMatch",
  "sendInitialEvents", "shardSelector", "timeoutSeconds",
}
local GET_CUSTOM = { "resourceVersion" }
local NONE = {}

--- JSON types of parameters of a query; "string" for all others.
M.types = {
  allowWatchBookmarks = "boolean", force = "boolean", gracePeriodSeconds = "integer",
  ignoreStoreReadErrorWithClusterBreakingPotential = "boolean", limit = "integer", orphanDependents = "boolean",
  sendInitialEvents = "boolean", timeoutSeconds = "integer", watch = "boolean",
}

local OK, OR_CREATED, CREATED, ACCEPTED = { 200 }, { 200, 201 }, { 200, 201, 202 }, { 200, 202 }

-- How each verb is asked for. `word` begins the operation's id; `custom` stands in for parameters with custom kinds.
local VERBS = {
  list = { method = "get", action = "list", word = "list", parameters = LIST, codes = OK },
  create = { method = "post", action = "post", word = "create", parameters = WRITE, codes = CREATED, sends = true },
  deletecollection = {
    method = "delete", action = "deletecollection", word = "delete", between = "Collection",
    parameters = DELETE_COLLECTION, custom = LIST, codes = OK,
  },
  get = { method = "get", action = "get", word = "read", parameters = NONE, custom = GET_CUSTOM, codes = OK },
  update = { method = "put", action = "put", word = "replace", parameters = WRITE, codes = OR_CREATED, sends = true },
  delete = { method = "delete", action = "delete", word = "delete", parameters = DELETE, codes = ACCEPTED },
  patch = { method = "patch", action = "patch", word = "patch", parameters = PATCH, codes = OR_CREATED, sends = true },
}

local COLLECTION = { "list", "create", "deletecollection" }
local OBJECT = { "get", "update", "delete", "patch" }
local PART = { "get", "create", "update", "patch" }


-- The group as words of operations have it: "apps" → "Apps", "a.example.com" → "AExampleCom".
local function group_words(group)
  if group == "" then
    return "core"
  end
  local words = group:gsub("%.k8s%.io$", ""):gsub("%.(%w)", function(letter)
    return letter:upper()
  end)
  return words
end


local function capital(word)
  return (word:gsub("^%l", string.upper))
end


--- The tag of all operations of a group, or of one version of it.
function M.tag(group, version)
  return group_words(group) .. (version and "_" .. version or "")
end


--- The id of an operation, from what stands before the group and version and what stands after.
function M.id(word, group, version, rest)
  return word .. capital(group_words(group)) .. capital(version) .. rest
end


--- The full name of the definition of a kind in the group version of `res`, or of another one of built-in kinds.
function M.definition_name(res, kind, group, version)
  if not res.builtin and not group then
    return custom.name(res, kind)
  end
  return builtin.name_of(group or res.group, version or res.version, kind)
end


local function has(verbs, verb)
  for _, known in ipairs(verbs) do
    if known == verb then
      return true
    end
  end
  return false
end


-- The bodies that an operation takes and returns, as names of definitions.
local function bodies(res, verb, kind)
  if verb == "list" then
    return nil, M.definition_name(res, res.list_kind)
  elseif verb == "delete" then
    return META .. "DeleteOptions", META .. "Status"
  elseif verb == "deletecollection" then
    return res.builtin and META .. "DeleteOptions" or nil, META .. "Status"
  elseif verb == "patch" then
    return META .. "Patch", kind
  end
  return VERBS[verb].sends and kind or nil, kind
end


-- The kind that the operation is about: for parts of custom resources always the whole.
local function subject(res, part)
  if part and res.builtin then
    return { group = part.group or res.group, version = part.version or res.version, kind = part.kind }
  end
  return { group = res.group, version = res.version, kind = res.kind }
end


local function operation(res, verb, part)
  local facts = VERBS[verb]
  local kind = M.definition_name(res, part and part.kind or res.kind, part and part.group, part and part.version)
  local scope = (facts.between or "") .. (res.namespaced and "Namespaced" or "")
  local takes, gives = bodies(res, verb, kind)
  return {
    verb = verb, method = facts.method, action = facts.action, takes = takes, gives = gives,
    must_send = facts.sends or false, codes = verb == "patch" and not res.builtin and OK or facts.codes,
    parameters = not res.builtin and facts.custom or facts.parameters, tag = M.tag(res.group, res.version),
    id = M.id(facts.word, res.group, res.version, scope .. res.kind .. (part and capital(part.name) or "")),
    kind = subject(res, part),
  }
end


local function add_path(list, res, path, names, verbs, part)
  local entry = { path = path, names = names, operations = {} }
  for _, verb in ipairs(verbs) do
    if has(part and part.verbs or res.verbs, verb) then
      entry.operations[#entry.operations + 1] = operation(res, verb, part)
    end
  end
  if entry.operations[1] then
    list[#list + 1] = entry
  end
end


local function everywhere(res, path)
  local list = operation(res, "list")
  list.id = M.id("list", res.group, res.version, res.kind .. "ForAllNamespaces")
  return { path = path, names = {}, operations = { list } }
end


--- The paths of a resource.
--- @return table list of { path =, names = names of parameters in the path, operations = list of { verb =, method =,
---   action =, id =, tag =, kind = group, version and kind it is about, parameters = names in the query, takes =,
---   gives = names of definitions or nil, must_send =, codes = HTTP codes of success } }
function M.of(res)
  local list = {}
  local root = (res.group == "" and "/api/" or "/apis/" .. res.group .. "/") .. res.version
  local base = root .. "/" .. res.plural
  if res.namespaced then
    if has(res.verbs, "list") then
      list[1] = everywhere(res, base)
    end
    base = root .. "/namespaces/{namespace}/" .. res.plural
  end
  local whole = res.namespaced and { "namespace" } or {}
  local one = res.namespaced and { "name", "namespace" } or { "name" }
  add_path(list, res, base, whole, COLLECTION)
  add_path(list, res, base .. "/{name}", one, OBJECT)
  for _, part in ipairs(subresources.of(res)) do
    if M.definition_name(res, part.kind, part.group, part.version) then
      add_path(list, res, base .. "/{name}/" .. part.name, one, PART, part)
    end
  end
  return list
end


return M
