-- attack: cjson.encode gets each value there is, inside of lists and objects, and as a key.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local cjson = require "cjson"

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(cjson.encode)
    hostile.throw_one(function(value) return cjson.encode { value, value } end)
    hostile.throw_one(function(value) return cjson.encode { a = value, b = { value } } end)
    hostile.throw_one(function(value) return cjson.encode { [value] = value } end)
    hostile.throw_one(function(value) return cjson.encode(moonloop.array { value }) end)
  end,
}
