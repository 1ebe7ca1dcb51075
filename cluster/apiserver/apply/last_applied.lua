--- The annotation of client-side apply, for objects that change to server-side apply.
--- Rules: apimachinery/pkg/util/managedfields/internal/{lastappliedmanager,lastappliedupdater,lastapplied}.go.
local host = require "cluster.host"
local set = require "cluster.apiserver.apply.set"
local types = require "cluster.apiserver.apply.types"
local validate = require "cluster.apiserver.apply.validate"
local walk = require "cluster.apiserver.apply.walk"

local M = {}

local ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
local ANNOTATIONS_MAX = 256 * 1024

--- The manager that takes over from client-side apply; no other does.
M.MANAGER = "kubectl"


local function annotations_of(object)
  local meta = object.metadata
  local found = type(meta) == "table" and meta.annotations
  return type(found) == "table" and found or {}
end


local function text_of(object)
  local text = annotations_of(object)[ANNOTATION]
  return text ~= "" and text or nil
end


--- The paths of what client-side apply has set in `live` and that nobody has changed since; nil when there are none.
function M.paths(live, res)
  local text = text_of(live)
  local applied = text and host.json.decode(text)
  local kind = types.of(res.schema)
  if type(applied) ~= "table" or applied.apiVersion ~= res.api_version or validate.problem(kind, applied)
    or validate.problem(kind, live) then
    return nil
  end
  local changed, removed = walk.compare(kind, applied, live)
  return set.difference(set.difference(walk.paths(kind, applied), changed), removed)
end


--- Writes into `object` what was applied by the server, when it has the annotation.
function M.refresh(object, applied)
  if not text_of(object) then
    return
  end
  applied = host.json.copy(applied)
  local applied_annotations = annotations_of(applied)
  if next(applied_annotations) ~= nil then
    applied_annotations[ANNOTATION] = nil
    if next(applied_annotations) == nil then
      applied.metadata.annotations = nil
    end
  end
  local annotations, size = host.json.copy(object.metadata.annotations), 0
  annotations[ANNOTATION] = host.json.encode(applied) .. "\n"
  for key, value in pairs(annotations) do
    size = size + #key + #value
  end
  if size > ANNOTATIONS_MAX then
    annotations[ANNOTATION] = nil
  end
  local meta = {}
  for key, value in pairs(object.metadata) do
    meta[key] = value
  end
  meta.annotations = annotations
  object.metadata = meta
end


return M
