--- Decodes the body of a create or an update, with kube-apiserver's errors.
---
--- Rules: apiserver/pkg/endpoints/handlers/{create,rest}.go, apimachinery/pkg/runtime/serializer/json,
--- apiextensions-apiserver/pkg/apiserver/customresource_handler.go.
local builtin = require "cluster.apiserver.schema.builtin"
local decode_warnings = require "cluster.apiserver.verbs.decode_warnings"
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local later = require "cluster.later"
local protobuf = later.module "cluster.apiserver.schema.protobuf"
local prune_and_default = require "cluster.apiserver.prune_and_default"
local respond = require "cluster.apiserver.respond"
local schema = require "cluster.apiserver.schema"
local status = require "cluster.apiserver.status"
local syntax = require "cluster.apiserver.syntax"
local typed = require "cluster.apiserver.schema.typed"
local yaml = require "cluster.apiserver.verbs.yaml"

local M = {}

local MEDIA = { "application/json", "application/yaml", "application/vnd.kubernetes.protobuf" }
local READ_MEDIA = { "application/json", "application/yaml" }
local READERS = {}
local DELETE_OPTIONS = builtin.of("", "v1", "DeleteOptions")
local NO_KIND = 'no kind "%s" is registered for version "%s" in scheme "pkg/runtime/scheme.go:111"'
local SHAPE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


-- The end of the message: the first 30 bytes, in hex if they do not begin an object.
local function summary(text)
  if text == "" then
    return "<empty>"
  end
  local head = text:sub(1, 30)
  if head:sub(1, 1) ~= "{" then
    head = head:gsub(".", function(char) return ("%02x"):format(char:byte()) end)
  end
  return #text > 30 and head .. " ..." or head
end


local function unrecognized(res, why, text)
  return status.bad_request(("the object provided is unrecognized (must be of type %s): %s (%s)"):format(
    res.kind, why, summary(text)))
end


-- The text in a field; `default`, or "", for none.
local function text_in(object, key, default)
  local value = object[key]
  return type(value) == "string" and value or default or ""
end


local function unusable(res, object, why)
  local is_said = object.apiVersion ~= nil and not res.builtin
  local version = text_in(object, "apiVersion", not is_said and res.api_version or nil):match("([^/]*)$")
  return status.bad_request(('%s in version "%s" cannot be handled as a %s: %s'):format(
    text_in(object, "kind", res.kind), version, res.kind, why))
end


READERS["application/json"] = function(text, strict)
  if strict then
    return host.json.decode_strict(text)
  end
  return host.json.decode(text)
end


READERS["application/yaml"] = function(text, strict)
  local value, json, complaint = yaml.decode(text, strict)
  if value == nil then
    return nil, json
  end
  return value, { yaml = complaint }, json
end


READERS["application/vnd.kubernetes.protobuf"] = function(text)
  local object, why = protobuf.decode(text)
  return object, object and {} or why
end


--- The media type of the body, without parameters; JSON when nothing is said.
function M.media_type(request)
  local header = request.headers["content-type"]
  if not header or header == "" or header == "application/json" then
    return "application/json"
  end
  return header:match("^%s*([^;]*)"):match("^(.-)%s*$"):lower()
end


--- Reads the body as one object, whatever its kind.
--- @param strict boolean whether keys that came twice are of interest
--- @return table|nil object, or nil and why or nil, nil and a status
--- @return table|string duplicates paths of those of JSON; `yaml` has the complaint about those of YAML
--- @return table|nil failure a Status when the media type is not read
--- @return string|nil text of the object in JSON
function M.read(request, strict)
  local media = M.media_type(request)
  local reader = READERS[media]
  if not reader then
    return nil, nil, status.unsupported_media(MEDIA)
  end
  local value, rest, json = reader(request.body, strict)
  if value == nil and media == MEDIA[3] then
    return nil, rest
  elseif value == nil then
    return nil, media == "application/yaml" and rest
      or "couldn't get version/kind; json parse error: " .. syntax.describe(request.body)
  end
  return value, strict and rest or {}, nil, json or request.body
end


-- A custom object has to be of the kind that is asked for. It can be read already. @return table|nil failure
local function check_custom(res, object)
  local version, kind = text_in(object, "apiVersion"), text_in(object, "kind")
  if version ~= res.api_version then
    return status.bad_request(("the API version in the data (%s) does not match the expected API version (%s)"):format(
      version, res.api_version))
  elseif kind ~= res.kind then
    return status.invalid(res.group, kind, text_in(object.metadata, "name"),
      { field.invalid("kind", kind, "must be " .. res.kind) })
  end
end


-- The server's name for the Go package of a group's types.
local function package_of(group)
  return group == "" and "core" or group:match("^[^.]+")
end


-- Checks that kind and apiVersion are texts, before their values are looked at. Returns a message, or nil.
local function unreadable_kind(object)
  for _, key in ipairs { "apiVersion", "kind" } do
    local value = object[key]
    if value ~= nil and value ~= host.json.null and type(value) ~= "string" then
      return ("couldn't get version/kind; json parse error: json: cannot unmarshal %s into Go struct field .%s of type "
        .. "string"):format(gofmt.json_type(value), key)
    end
  end
end


-- CRDs are another server's on a real control plane: neither knows the kinds of the other.
local function is_extension(res)
  return res.group == "apiextensions.k8s.io"
end


--- Checks kind and apiVersion of an object that should be of a built-in kind: a message, or nil. They may be left out,
--- but must be right if they are given.
--- @param registry table the other kinds that there are
function M.wrong_kind(registry, res, object)
  local why = unreadable_kind(object)
  if why then
    return why
  end
  local version, kind = text_in(object, "apiVersion"), text_in(object, "kind")
  version = version == "" and res.api_version or version
  kind = kind == "" and res.kind or kind
  if (version == res.api_version or version == res.formerly) and kind == res.kind then
    return nil
  end
  local group, short = version:match("^(.-)/?([^/]*)$")
  local found = registry:by_kind(group, short, kind)
  if found and found.builtin and is_extension(found) == is_extension(res) then
    return ("converting (%s.%s) to (%s.%s): unknown conversion"):format(short, kind, package_of(res.group), res.kind)
  end
  return NO_KIND:format(kind, version)
end


-- Looks at the kind before the rest is read. A built-in kind may be left out. @return table|nil failure
local function check_kind(request, res, object)
  local why = unreadable_kind(object)
  if not res.builtin and not why and text_in(object, "kind") == "" then
    why = ("Object 'Kind' is missing in '%s'"):format(request.body)
  end
  if why then
    return unrecognized(res, why, request.body)
  end
  if res.builtin then
    why = M.wrong_kind(request.server.registry, res, object)
  elseif object.apiVersion == host.json.null then
    why = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
  end
  return why and unusable(res, object, why)
end


--- Turns problems of an object's fields into warnings, an error, or nothing, as `fieldValidation` asks.
--- @param mode string "Ignore", "Warn" or "Strict"
--- @return string|nil why the request is refused
function M.enforce_field_validation(request, mode, found)
  if #found == 0 or mode == "Ignore" then
    return nil
  elseif mode == "Strict" then
    return "strict decoding error: " .. table.concat(found, ", ")
  end
  for _, problem in ipairs(found) do
    for _, warning in ipairs(yaml.warnings(problem)) do
      respond.warn(request, warning)
    end
  end
end


local function decode(request, mode, res)
  if not res.builtin and M.media_type(request) == MEDIA[3] then
    return nil, nil, status.unsupported_media(READ_MEDIA)
  end
  local object, duplicates, failure, text = M.read(request, mode ~= "Ignore")
  if failure then
    return nil, nil, failure
  end
  if object == nil then
    return nil, nil, unrecognized(res, duplicates, request.body)
  end
  if object == host.json.null then
    object = {}
  elseif type(object) ~= "table" or host.json.is_array(object) then
    return nil, nil, unrecognized(res, "couldn't get version/kind; json parse error: json: cannot unmarshal "
      .. gofmt.json_type(object) .. " into Go value of type " .. SHAPE, request.body)
  end
  return object, duplicates, nil, text
end


--- Describes a built-in kind that is not stored, as parts of objects take one.
--- @param formerly string|nil another apiVersion that it may have
--- @return table for M.object
function M.kind(group, version, kind, formerly)
  local plural = kind:lower() .. "s"
  return {
    id = group == "" and plural or plural .. "." .. group, plural = plural, kind = kind,
    group = group, version = version, api_version = group == "" and version or group .. "/" .. version,
    formerly = formerly, builtin = true, schema = builtin.of(group, version, kind),
    strategy = { defaults = typed.of(builtin.name_of(group, version, kind)) },
  }
end


--- Reads an object of the request's resource, or of another kind.
--- @param options table of create or update: its `validation` says what becomes of unknown fields
--- @param other table|nil description of the other kind
--- @return table|nil object with defaults, without unknown fields; nil and a status when it is refused
function M.object(request, options, other)
  if request.object then
    return request.object
  end
  local res, mode = other or request.res, options.validation
  local object, duplicates, failure, text = decode(request, mode, res)
  if not object then
    return nil, failure
  end
  failure = check_kind(request, res, object)
  if failure then
    return nil, failure
  end
  local unknown, why = prune_and_default(res, object)
  if M.media_type(request) == MEDIA[3] then
    text = nil -- protobuf has no keys in an order
  end
  why = unknown and M.enforce_field_validation(request, mode, decode_warnings(res, text, duplicates, unknown)) or why
  if why then
    return nil, unusable(res, object, why)
  end
  failure = not res.builtin and check_custom(res, object)
  if failure then
    return nil, failure
  end
  object.apiVersion, object.kind = res.api_version, res.kind
  return object
end


--- The DeleteOptions in the body of a deletion; nil when there is no body, nil and a status when it is something else.
function M.delete_options(request)
  if request.body == "" then
    return nil
  end
  local object, why, failure = M.read(request, false)
  if failure then
    return nil, failure
  elseif object == nil then
    return nil, status.bad_request(why)
  elseif object == host.json.null then
    return {}
  elseif type(object) ~= "table" or host.json.is_array(object) then
    return nil, status.bad_request("couldn't get version/kind; json parse error: json: cannot unmarshal "
      .. gofmt.json_type(object) .. " into Go value of type " .. SHAPE)
  end
  why = unreadable_kind(object)
  if why then
    return nil, status.bad_request(why)
  elseif object.kind and object.kind ~= "DeleteOptions" then
    return nil, status.bad_request(NO_KIND:format(object.kind, object.apiVersion or "v1"))
  end
  why = schema.decode(DELETE_OPTIONS, object)
  if why then
    return nil, status.bad_request(why)
  end
  for key, value in pairs(object) do
    if value == host.json.null then
      object[key] = nil
    end
  end
  return object
end


return M
