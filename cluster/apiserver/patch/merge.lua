--- JSON merge patch, RFC 7386, with the library's treatment of nulls inside lists and of new members.
--- Rules: gopkg.in/evanphx/json-patch.v4 merge.go, apiserver/pkg/endpoints/handlers/patch.go.
local failure = require "cluster.apiserver.patch.failure"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"

local json = host.json


local function is_object(value)
  return type(value) == "table" and not json.is_array(value)
end


-- Takes the null members out of `value` and of all objects below it; null items of lists stay.
local function prune_nulls(value)
  if type(value) ~= "table" then
    return
  end
  for key, item in pairs(value) do
    if item == json.null and not json.is_array(value) then
      value[key] = nil
    else
      prune_nulls(item)
    end
  end
end


local function merge(object, patch)
  for key, value in pairs(patch) do
    local current = object[key]
    if value == json.null then
      object[key] = nil
    elseif not is_object(current) then
      prune_nulls(value)
      object[key] = value
    elseif is_object(value) then
      merge(current, value)
    else
      object[key] = value
    end
  end
  return object
end


local function apply(object, patch)
  if patch == json.null then
    failure.bad_request("Invalid JSON Patch")
  elseif not is_object(patch) then
    failure.bad_request("error decoding patch: json: cannot unmarshal " .. gofmt.json_type(patch)
      .. " into Go value of type map[string]interface {}")
  end
  return merge(json.copy(object), json.copy(patch))
end


--- Merges `patch` into `object`. Returns the new object, or nil and a Status (400) when the patch is no object.
--- The inputs are not changed.
return function(object, patch)
  return failure.try(apply, object, patch)
end
