-- attack: moonloop.array on each value there is.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw_one(moonloop.array)
    hostile.throw_one(require "cjson".array)
    for _, value in ipairs { moonloop.null, Thing } do
      if pcall(moonloop.array, value) then error "ESCAPED: a userdata is a list" end
    end
  end,
}
