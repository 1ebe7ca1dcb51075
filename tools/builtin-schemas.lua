#!/usr/bin/env lua5.4
--- Writes lua/cluster/apiserver/schema/facts/*.lua from the OpenAPI documents of a running API server.
---
--- By hand, when the embedded server moves to another version of Kubernetes:
---     KUBECONFIG=… lua5.4 tools/builtin-schemas.lua [kubectl]
--- Only facts are taken (fields, types, list and patch rules, defaults, enums); descriptions are not.
--- The notation of the files is described, and read, in lua/cluster/apiserver/schema/notation.lua.
local cjson = require "cjson"

local KUBECTL = arg[1] or "kubectl"
local TARGET = "lua/cluster/apiserver/schema/facts/"
local REF = "^#/components/schemas/(.+)%.([^.]+)$"

-- One file a package. `kinds` are the ones served; what they refer to comes along.
local PACKAGES = {
  { alias = "core", name = "io.k8s.api.core.v1", group = "", path = "api/v1",
    kinds = "Namespace Pod ConfigMap Secret Service ServiceAccount Event Endpoints Node PersistentVolumeClaim "
      .. "PersistentVolume Binding PodTemplate" },
  { alias = "apps", name = "io.k8s.api.apps.v1", group = "apps",
    kinds = "Deployment ReplicaSet StatefulSet ControllerRevision" },
  { alias = "batch", name = "io.k8s.api.batch.v1", group = "batch", kinds = "Job" },
  { alias = "coordination", name = "io.k8s.api.coordination.v1", group = "coordination.k8s.io", kinds = "Lease" },
  { alias = "events", name = "io.k8s.api.events.v1", group = "events.k8s.io", kinds = "Event" },
  { alias = "discovery", name = "io.k8s.api.discovery.v1", group = "discovery.k8s.io", kinds = "EndpointSlice" },
  { alias = "policy", name = "io.k8s.api.policy.v1", group = "policy", kinds = "PodDisruptionBudget Eviction" },
  { alias = "rbac", name = "io.k8s.api.rbac.v1", group = "rbac.authorization.k8s.io",
    kinds = "Role RoleBinding ClusterRole ClusterRoleBinding" },
  { alias = "apiextensions", name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    group = "apiextensions.k8s.io", kinds = "CustomResourceDefinition" },
  { alias = "autoscaling", name = "io.k8s.api.autoscaling.v1", group = "autoscaling", kinds = "Scale" },
  { alias = "authorization", name = "io.k8s.api.authorization.v1", group = "authorization.k8s.io",
    kinds = "SubjectAccessReview SelfSubjectAccessReview LocalSubjectAccessReview SelfSubjectRulesReview" },
  { alias = "authentication", name = "io.k8s.api.authentication.v1", group = "authentication.k8s.io",
    kinds = "TokenReview SelfSubjectReview TokenRequest" },
  { alias = "meta", name = "io.k8s.apimachinery.pkg.apis.meta.v1", group = "",
    kinds = "ObjectMeta ListMeta Status DeleteOptions WatchEvent Patch LabelSelector Condition "
      .. "APIGroup APIGroupList APIResourceList APIVersions" },
}

-- Packages of one definition each; notation.lua knows them by these words.
local WORDS = {
  ["io.k8s.apimachinery.pkg.api.resource.Quantity"] = "Quantity",
  ["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] = "IntOrString",
  ["io.k8s.apimachinery.pkg.runtime.RawExtension"] = "RawExtension",
}

local MAX_LINE = 110
local ZERO = { string = '""', integer = "0", boolean = "false", number = "0" }
local LIST_TYPES = { atomic = "atomic", set = "set" }


local function fetch(path)
  local pipe = assert(io.popen(("%s get --raw /openapi/v3/%s"):format(KUBECTL, path)))
  local text = pipe:read "a"
  assert(pipe:close(), "cannot fetch " .. path)
  return cjson.decode(text)
end


local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end


-- All definitions of the server, by full name.
local function load_definitions()
  local all = {}
  for _, package in ipairs(PACKAGES) do
    local path = package.path or (package.alias ~= "meta" and "apis/" .. package.group .. "/v1" or "apis")
    for name, schema in pairs(fetch(path).components.schemas) do
      all[name] = schema
    end
  end
  for name, schema in pairs(fetch("apis/apps").components.schemas) do
    all[name] = schema
  end
  for name, schema in pairs(fetch("api").components.schemas) do
    all[name] = schema
  end
  return all
end


local Writer = {}
Writer.__index = Writer


-- The full name that `schema` refers to, or nil.
local function referred(schema)
  local ref = schema["$ref"] or (schema.allOf and schema.allOf[1]["$ref"])
  return ref and ref:gsub("^#/components/schemas/", "")
end


-- How `full` is written in a definition of `package`; remembers that it is needed.
function Writer:name_of(full, package)
  if WORDS[full] then
    return WORDS[full]
  end
  self.wanted[full] = true
  local owner, short = ("#/components/schemas/" .. full):match(REF)
  if owner == package.name then
    return short
  end
  return assert(self.aliases[owner], "a package that is not listed: " .. full) .. "." .. short
end


local function scalar(schema)
  if schema.type == "boolean" then
    return "bool"
  elseif schema.type == "integer" then
    return schema.format or "integer"
  elseif schema.type == "number" then
    return schema.format or "number"
  elseif schema.format == "byte" then
    return "bytes"
  end
  assert(schema.type == "string" and not schema.format, "an unknown kind of value")
  return "string"
end


-- Items of lists and maps have the zero value of their type as default, if they are not nested lists or bytes.
local function check_item_default(schema, word)
  local plain = ZERO[schema.type] and word ~= "bytes"
  local expected = plain and ZERO[schema.type] or nil
  local found = schema.default ~= nil and cjson.encode(schema.default) or nil
  assert(word == nil or found == expected, "an item with an unusual default")
end


-- The type of a value as the notation has it, and the schema of its innermost item.
function Writer:type_of(schema, package)
  local full = referred(schema)
  if full then
    return self:name_of(full, package), schema
  end
  local item = schema.items or schema.additionalProperties
  if item then
    local inner, leaf = self:type_of(item, package)
    if ZERO[item.type] then
      check_item_default(item, inner)
    end
    return (schema.items and "[]" or "{}") .. inner, leaf
  end
  if schema.type == "object" then
    return "object", schema
  end
  return scalar(schema), schema
end


local function list_rule(schema)
  local kind = schema["x-kubernetes-list-type"]
  if not kind then
    return nil
  end
  if kind == "map" then
    return "map(" .. table.concat(schema["x-kubernetes-list-map-keys"], ",") .. ")"
  end
  return assert(LIST_TYPES[kind])
end


local function patch_rule(schema)
  local strategy = schema["x-kubernetes-patch-strategy"]
  if not strategy then
    return nil
  end
  local key = schema["x-kubernetes-patch-merge-key"]
  return "patch:" .. strategy .. (key and "(" .. key .. ")" or "")
end


-- Structs that are no pointers have {} as default, required scalars their zero value.
function Writer:default_rule(schema, required)
  local full = referred(schema)
  local default = schema.default ~= nil and cjson.encode(schema.default) or nil
  if full then
    local struct = self.all[full].type == "object"
    assert(not default or (struct and default == "{}"))
    return (struct and not default) and "*" or "", nil
  end
  local implied = required and ZERO[schema.type] or nil
  if default == implied then
    return "", nil
  elseif not default then
    return "*", nil
  end
  return "", "=" .. default:gsub("\\/", "/")
end


-- Long lines go on in indented ones, broken before a word or after a choice.
local function wrap(line)
  local lines = {}
  while #line > MAX_LINE do
    local head = line:sub(1, MAX_LINE):match "^.*|" or line:sub(1, MAX_LINE):match "^(.*) "
    lines[#lines + 1] = head
    line = "  " .. line:sub(#head + 1):gsub("^ ", "")
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end


function Writer:field(name, schema, required, package)
  local kind, leaf = self:type_of(schema, package)
  local pointer, default = self:default_rule(schema, required)
  local words = { name .. (required and "!" or ""), pointer .. kind }
  words[#words + 1] = default
  words[#words + 1] = list_rule(schema)
  words[#words + 1] = schema["x-kubernetes-map-type"]
  words[#words + 1] = patch_rule(schema)
  if leaf.enum then
    words[#words + 1] = "{" .. table.concat(leaf.enum, "|") .. "}"
  end
  return wrap(table.concat(words, " "))
end


-- "@kind" for a kind of its own group version, "@kinds" for one that is in every group version.
local function kind_rule(schema, short, package)
  local kinds = schema["x-kubernetes-group-version-kind"]
  if not kinds then
    return nil
  elseif short == "DeleteOptions" or short == "WatchEvent" then
    return "@kinds"
  end
  assert(#kinds == 1 and kinds[1].kind == short and kinds[1].group == package.group)
  return "@kind"
end


local function without_fields(schema)
  if schema.format == "date-time" then
    return "@type date-time"
  elseif schema.type == "object" then
    return "@type object"
  end
  assert(schema.type == nil and not schema.oneOf)
  return "@type any"
end


function Writer:definition(full, short, package)
  local schema = self.all[full]
  if not schema.properties then
    return without_fields(schema)
  end
  local lines, required = {}, {}
  for _, name in ipairs(schema.required or {}) do
    required[name] = true
  end
  local kind = kind_rule(schema, short, package)
  lines[#lines + 1] = kind
  if schema["x-kubernetes-map-type"] then
    lines[#lines + 1] = "@" .. schema["x-kubernetes-map-type"]
  end
  for _, name in ipairs(sorted_keys(schema.properties)) do
    local implied = kind == "@kind" and (name == "apiVersion" or name == "kind")
    if not implied then
      lines[#lines + 1] = self:field(name, schema.properties[name], required[name] or false, package)
    end
  end
  return table.concat(lines, "\n")
end


-- Lists of objects all look alike, so notation.lua makes them; see that they do.
function Writer:check_list(full, package)
  local list = self.all[full .. "List"]
  if not list or not list.properties.metadata then
    return
  end
  local text = self:definition(full .. "List", full:match "[^.]+$" .. "List", package)
  local short = full:match "[^.]+$"
  assert(text == ("@kind\nitems! []%s\nmetadata meta.ListMeta"):format(short), "an unusual list: " .. text)
end


-- Definitions that are needed, by package alias, until nothing new turns up.
function Writer:close()
  local done, texts = {}, {}
  local changed = true
  while changed do
    changed = false
    for _, full in ipairs(sorted_keys(self.wanted)) do
      if not done[full] then
        done[full], changed = true, true
        local owner, short = ("#/components/schemas/" .. full):match(REF)
        local package = self.packages[owner]
        texts[package.alias] = texts[package.alias] or {}
        texts[package.alias][short] = self:definition(full, short, package)
        self:check_list(full, package)
      end
    end
  end
  return texts
end


local function write_file(package, texts)
  local out = {
    "--- Written by tools/builtin-schemas.lua; the notation is described in schema/notation.lua.",
    "return {",
  }
  for _, name in ipairs(sorted_keys(texts)) do
    local text = texts[name]
    if text:find "\n" then
      out[#out + 1] = ("\n  %s = [[\n%s\n]],"):format(name, text)
    else
      out[#out + 1] = ("\n  %s = %s,"):format(name, text:find '"' and "[[" .. text .. "]]" or '"' .. text .. '"')
    end
  end
  out[#out + 1] = "\n}\n"
  local file = assert(io.open(TARGET .. package.alias .. ".lua", "w"))
  file:write(table.concat(out, "\n"):sub(1, -1))
  file:close()
end


local function main()
  local writer = setmetatable({ all = load_definitions(), wanted = {}, aliases = {}, packages = {} }, Writer)
  for _, package in ipairs(PACKAGES) do
    writer.aliases[package.name] = package.alias
    writer.packages[package.name] = package
    for kind in package.kinds:gmatch "%S+" do
      writer.wanted[package.name .. "." .. kind] = true
    end
  end
  local texts = writer:close()
  for _, package in ipairs(PACKAGES) do
    write_file(package, texts[package.alias])
  end
end


main()
