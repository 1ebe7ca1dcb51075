-- attack: moonloop.array and setmetatable on the tables of the library itself.
-- expect: ok
local time = require "moonloop.time"
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local watch = moonloop.watch(Thing, function() end)

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for _, t in ipairs { time, cjson, string, table, math, utf8 } do
      pcall(moonloop.array, t)
      pcall(cjson.array, t)
    end
    if pcall(setmetatable, watch, {}) then error "ESCAPED: a watch is no longer one" end
    if pcall(moonloop.array, watch) then error "ESCAPED: a watch is a list" end
    return { requeue_after = "5s" }
  end,
}
