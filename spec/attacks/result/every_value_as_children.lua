-- attack: each value there is, as the children, as one of them, and as each field of one.
-- expect: held
-- objects: 60
-- for: 500ms
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")
local step = 0

local FIELDS = { "apiVersion", "kind", "metadata", "data", "status" }
local METADATA = { "name", "namespace", "uid", "resourceVersion", "labels", "ownerReferences", "generateName" }

local function object()
  return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "m" .. step }, data = {} }
end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function()
    step = step + 1
    local value = hostile.values[step % #hostile.values + 1]
    local place = step // #hostile.values % (#FIELDS + #METADATA + 2)
    local one = object()
    if place == 0 then
      return { children = value }
    elseif place == 1 then
      return { children = { one, value } }
    elseif place <= #FIELDS + 1 then
      one[FIELDS[place - 1]] = value
    else
      one.metadata[METADATA[place - #FIELDS - 1]] = value
    end
    return { children = { moonloop.recreate(one), one } }
  end,
}
