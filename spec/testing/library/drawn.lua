-- A script whose status is drawn: what crypto_test.lua looks at.
local moonloop = require "moonloop"
local crypto = require "moonloop.crypto"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "drawn",
  reconciles = Thing,
  owns = { ConfigMap },

  reconcile = function(thing, ctx)
    local page = ctx.ensure { apiVersion = "v1", kind = "ConfigMap", metadata = { name = thing.metadata.name } }
    local runs = (thing.status.runs or 0) + 1
    return { status = { runs = runs, color = page.data and page.data.color, password = crypto.password(24),
      random = crypto.random(16, "hex"), uuid = crypto.uuid() } }
  end,
}
