-- As parts.lua; called as well for the Secrets that name a Thing in their label `for`, when their labels change.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local function concerned(secret)
  local name = secret.metadata.labels["for"]
  if name == "raise" then
    error "cannot map this"
  elseif name == "many" then
    local list = {}
    for index = 1, 10001 do
      list[index] = { namespace = "default", name = "t" .. index }
    end
    return list
  end
  return name and { { namespace = secret.metadata.namespace, name = name } }
end

return moonloop.controller {
  name = "mapped",
  reconciles = Thing,
  watches = { moonloop.watch(Secret, concerned, { "labels" }) },
  uses = { ConfigMap },

  reconcile = function(thing, ctx)
    assert(ctx.create {
      apiVersion = "v1", kind = "ConfigMap",
      metadata = { name = ("called-%s-%.0f"):format(thing.metadata.name, math.random() * 1e15) },
    })
  end,
}
