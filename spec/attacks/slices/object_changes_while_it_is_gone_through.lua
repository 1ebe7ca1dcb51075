-- attack: pairs over the reconciled object while its fields are taken out and put in.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing)
    for key in pairs(thing) do
      thing[key] = nil
      thing[key .. key] = { key }
      for name in pairs(thing.metadata or {}) do thing.metadata[name] = nil end
    end
    for key, value in pairs(thing) do thing[value] = key end
  end,
}
