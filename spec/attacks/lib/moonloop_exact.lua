-- attack: moonloop.exact gets each value there is in each place, and marks more objects than memory has room for.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(moonloop.exact)
    for index = 1, 2000 do
      moonloop.exact({ data = { [tostring(index)] = "x" } }, "data", "metadata.labels")
    end
    assert(not pcall(moonloop.exact, {}, ("a."):rep(1000) .. "a"))
    assert(not pcall(moonloop.exact, {}, table.unpack({}, 1, 10000)))
    local endless = setmetatable({}, { __index = function(self) return self end })
    assert(not pcall(moonloop.exact, endless, ("a."):rep(31) .. "a"))
  end,
}
