--- The patch types, and their application to an object.
---
--- Rules and wordings: apiserver/pkg/endpoints/handlers/patch.go.
local body = require "cluster.apiserver.verbs.body"
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local later = require "cluster.later"
local patches = later.module "cluster.apiserver.patch"
local prune_and_default = require "cluster.apiserver.prune_and_default"
local status = require "cluster.apiserver.status"
local syntax = require "cluster.apiserver.syntax"

local M = {}

local KINDS = {
  ["application/json-patch+json"] = { name = "json", label = "json patch " },
  ["application/merge-patch+json"] = { name = "merge", label = "" },
  ["application/strategic-merge-patch+json"] = { name = "strategic", label = "" },
  ["application/apply-patch+yaml"] = { name = "apply", label = "" },
}
local CUSTOM_MEDIA = { "application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml" }


--- The kind of patch that the request brings: { name = "json"|"merge"|"strategic"|"apply" }; nil and a status when it
--- is none, or none that the resource takes.
function M.kind(request)
  local header = request.headers["content-type"] or ""
  local kind = KINDS[(header:match("^[^;]*"))]
  if request.res.builtin then
    if not kind then
      local failure = status.unsupported_media {}
      failure.message, failure.details = "415: Unsupported Media Type", {}
      return nil, failure
    end
    return kind
  end
  if not kind or kind.name == "strategic" then
    return nil, status.unsupported_media(CUSTOM_MEDIA)
  end
  return kind
end


local function undecodable(kind, text)
  local why = syntax.describe(text)
  if kind.name ~= "strategic" then
    why = "error decoding patch: " .. why
  end
  return status.bad_request(why)
end


-- The patch as a JSON value, and what comes twice in it.
local function read(request, kind, settings)
  local text = request.body
  local patch, rest
  if settings.validation == "Ignore" then
    patch = host.json.decode(text)
    rest = {}
  else
    patch, rest = host.json.decode_strict(text)
  end
  if patch == nil then
    return nil, undecodable(kind, text)
  end
  local decode_warnings = {}
  for i, path in ipairs(rest) do
    decode_warnings[i] = ('%sduplicate field "%s"'):format(kind.label, path)
  end
  settings.decode_warnings = decode_warnings
  return patch
end


--- Applies the patch in the request's body to `old`, which stays as it is.
--- @param schema table of the object  @param settings table of options.patch; gets `complaints` and `patch`
--- @return table|nil object, or nil and a status
function M.apply(request, kind, old, schema, settings)
  local patch, failure = read(request, kind, settings)
  if patch == nil then
    return nil, failure
  end
  settings.patch = patch
  return patches[kind.name](old, patch, schema)
end


-- The text that a message shows of a patch that does not fit.
local function object_text(kind, object, settings)
  if kind.name == "strategic" then
    return gofmt.plain(settings.patch)
  end
  return host.json.encode(object)
end


local GO_KINDS = { object = "map", array = "slice" }
local SCALARS = { string = true, bool = true, int32 = true, int64 = true, float64 = true }


-- A strategic patch is made of an object without a text between: what does not fit is told in other words.
local function restored(why)
  local kind, type_name = why:match("^json: cannot unmarshal (%S+).- of type (%S+)$")
  if not kind then
    return why
  end
  kind = GO_KINDS[kind] or kind
  if type_name:find("^%[%]") then
    return "cannot restore slice from " .. kind
  elseif type_name:find("^map%[") then
    return "cannot restore map from " .. kind
  elseif not SCALARS[type_name] then
    return "cannot restore struct from: " .. kind
  elseif kind == "number" and type_name ~= "bool" then
    return ("cannot convert %s to %s"):format(type_name == "string" and "int64" or "float64", type_name)
  end
  return "unrecognized type: " .. type_name
end


-- Checks kind and apiVersion after a patch. Returns a message, or nil.
local function wrong_kind(request, kind, res, object)
  if kind.name == "strategic" or not res.builtin then
    return nil
  end
  return body.wrong_kind(request.server.registry, res, object)
end


--- Takes out the unknown fields of the object that a patch made, and sets its defaults.
--- @return table|nil failure a status
function M.prune_and_default(request, kind, res, object, settings)
  local before = settings.validation == "Strict" and host.json.copy(object) or object
  local unknown, why = nil, wrong_kind(request, kind, res, object)
  if not why then
    unknown, why = prune_and_default(res, object)
    why = why and kind.name == "strategic" and restored(why) or why
  end
  if unknown then
    local decode_warnings = settings.decode_warnings
    for _, path in ipairs(unknown) do
      decode_warnings[#decode_warnings + 1] = ('unknown field "%s"'):format(path)
    end
    why = body.enforce_field_validation(request, settings.validation, decode_warnings)
  end
  if why then
    return status.invalid("", "", "", { field.invalid("patch", object_text(kind, before, settings), why) })
  end
  object.apiVersion, object.kind = res.api_version, res.kind
end


return M
