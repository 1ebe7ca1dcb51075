-- attack: time.duration gives a table that is a number by its metamethods.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local time = require "moonloop.time"
local number = setmetatable({}, { __lt = function() return false end, __eq = function() return true end })
time.duration = function() return number end
type = function() return "number" end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return { requeue_after = "5s" }
  end,
}
