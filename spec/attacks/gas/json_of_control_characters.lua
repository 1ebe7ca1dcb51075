-- attack: a megabyte of what JSON writes as six bytes each is encoded again and again.
-- expect: held
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("\1"):rep(500000)
    while true do cjson.encode(text) end
  end,
}
