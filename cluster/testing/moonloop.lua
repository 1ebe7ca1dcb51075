--- The module that `require "moonloop"` returns to a test: kinds, and the values that JSON has and Lua has not. A test
--- declares no controllers; its script runs in the sandbox, with lua/moonloop/init.lua.
local calls = require "cluster.testing.calls"
local host = require "cluster.host"

local M = {}

local kind_mark = {}

function kind_mark.__tostring(kind)
  return kind.apiVersion .. "/" .. kind.kind
end


function kind_mark.__eq(a, b)
  return a.apiVersion == b.apiVersion and a.kind == b.kind
end


--- Marks a table as a list, so that it stays one when it is empty.
M.array = host.json.array

--- JSON's null: in the changes of world.patch it removes a field.
M.null = host.json.null

--- Is the value moonloop.null?
function M.is_null(value)
  return value == host.json.null
end


--- A kind of object, by the apiVersion and kind of its manifests.
function M.kind(api_version, kind)
  if type(api_version) ~= "string" or type(kind) ~= "string" or not kind:match "^%u%w*$" then
    error('moonloop.kind(apiVersion, kind): expected an API version and a kind, as in moonloop.kind("apps/v1", '
      .. '"Deployment")', 2)
  end
  return setmetatable({ apiVersion = api_version, kind = kind }, kind_mark)
end


return calls.close("moonloop in a test", M)
