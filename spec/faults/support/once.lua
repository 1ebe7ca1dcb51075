-- A Thing whose mode is "a b" has a Secret with these keys, of ctx.once, and a ConfigMap that shows what the script
-- saw. Whenever a value is made, it is another one.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local function value()
  return ("%016x"):format(math.random(0, math.maxinteger))
end


return moonloop.controller {
  name = "once",
  reconciles = Thing,
  owns = { Secret, ConfigMap },

  reconcile = function(thing, ctx)
    local functions = {}
    for key in thing.spec.mode:gmatch "%S+" do
      functions[key] = value
    end
    local values = assert(ctx.once(thing.metadata.name, functions))
    local name = thing.metadata.name
    assert(ctx.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name }, data = values })
  end,
}
