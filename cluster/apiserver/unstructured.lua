--- Values at paths of names within objects, with the errors that Go's helpers have for a path that leads nowhere.
---
--- Rules and wordings: apimachinery/pkg/apis/meta/v1/unstructured/helpers.go.
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"

local M = {}

local null, is_array = host.json.null, host.json.is_array


--- Go's name for the type of a value that was read from JSON.
function M.type_name(value)
  if value == null then
    return "<nil>"
  elseif type(value) == "table" then
    return is_array(value) and "[]interface {}" or "map[string]interface {}"
  elseif type(value) == "boolean" then
    return "bool"
  end
  return math.type(value) == "integer" and "int64" or math.type(value) == "float" and "float64" or "string"
end


local function mistyped(path, value, wanted)
  return ("%s accessor error: %s is of the type %s, expected %s"):format(
    path, gofmt.plain(value), M.type_name(value), wanted)
end


--- The value at a path of names (".spec.replicas", with or without the first dot).
--- @param wanted string Go's name for the type that it must have: "int64", "string"
--- @return any value nil when it is not there, or nil and why nothing of that type could be there
function M.find(object, path, wanted)
  local value, walked = object, ""
  for name in path:gmatch "[^.]+" do
    walked = walked .. "." .. name
    if value == nil or value == null then
      return nil
    elseif type(value) ~= "table" or is_array(value) then
      return nil, mistyped(walked, value, "map[string]interface{}")
    end
    value = value[name]
  end
  if value ~= nil and M.type_name(value) ~= wanted then
    return nil, mistyped(walked, value, wanted)
  end
  return value
end


return M
