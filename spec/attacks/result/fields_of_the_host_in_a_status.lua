-- attack: a status that is to become other fields of the object: metadata, spec, uid.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return { status = { metadata = { name = "x" }, ["../spec"] = 1, ["/spec"] = 1, ["~1spec"] = 1, [""] = { [""] = "" },
      ["$patch"] = "replace", ["$retainKeys"] = { "a" }, apiVersion = "x", kind = {} } }
  end,
}
