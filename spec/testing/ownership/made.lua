-- A script that makes one object in the way that the Thing's mode says, as in "apply shared a b": by ctx.apply, the
-- ConfigMap `shared` with the keys a and b. A way that begins with "secret-" makes a Secret of stringData.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Secret = moonloop.kind("v1", "Secret")
local Service = moonloop.kind("v1", "Service")

local make = {}

function make.apply(ctx, object)
  assert(ctx.apply(object))
end


function make.adopt(ctx, object)
  assert(ctx.apply(object, { adopt = true }))
end


function make.ensure(ctx, object)
  assert(ctx.ensure(object))
end


function make.ensure_adopt(ctx, object)
  assert(ctx.ensure(object, { adopt = true }))
end


function make.children(_, object)
  return { object }
end


function make.twice(ctx, object)
  assert(ctx.apply(object))
  object.data.twice = "yes"
  assert(ctx.apply(object))
end


function make.patched(ctx, object)
  local made = assert(ctx.apply(object))
  if not made.data.patched then
    ctx.patch(made, { data = { patched = "yes" } })
  end
end


-- Beside what it applies, the object has what it was made with.
function make.initial(ctx, object)
  assert(ctx.ensure { apiVersion = "v1", kind = "ConfigMap", metadata = object.metadata, data = { first = "1" } })
  assert(ctx.apply(object))
end


-- The server lets nobody change such an object.
function make.sealed(_, object)
  object.immutable = true
  return { moonloop.recreate(object) }
end


function make.once(ctx, object)
  assert(ctx.once(object.metadata.name, { password = function() return "made" end }))
end


return moonloop.controller {
  name = "made",
  reconciles = Thing,
  owns = { ConfigMap, Secret, { kind = Service, adopt = true } },

  reconcile = function(thing, ctx)
    local way, name, keys = thing.spec.mode:match "^(%S+) (%S+) ?(.*)$"
    local object = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name }, data = {} }
    for key in keys:gmatch "%S+" do
      object.data[key] = thing.metadata.name
    end
    if way:find "^secret%-" then
      object.kind, object.stringData, object.data = "Secret", object.data, nil
    elseif way:find "^service%-" then
      object.kind, object.data = "Service", nil
      object.spec = { ports = { { port = 80 } } }
    end
    return { children = make[way:gsub("^%l+%-", "")](ctx, object), status = { text = way } }
  end,
}
