-- attack: an object with a hundred thousand members of the same key is decoded.
-- expect: held
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = "{" .. ('"a":1,'):rep(100000) .. '"b":2}'
    for _ = 1, 100 do cjson.decode(text) end
  end,
}
