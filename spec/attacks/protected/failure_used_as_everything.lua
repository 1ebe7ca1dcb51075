-- attack: an error that ctx gave is called, changed, measured, joined with all there is and raised.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    local _, err = ctx.get(Thing, "nobody")
    local uses = { function() err.kind = 1 end, function() return err() end, function() return #err end,
      function() return err.x end, function() return err[1] end, function() return err < err end, function() return err + 1 end,
      function() setmetatable(err, {}) end, function() rawset(err, 1, 1) end, function() for _ in pairs(err) do end end }
    for _, use in ipairs(uses) do pcall(use) end
    hostile.throw_one(function(value) return err .. value end)
    hostile.throw_one(function(value) return value .. err end)
    hostile.throw_one(function(value) return err == value end)
    hostile.throw_one(function(value) return err[value] end)
    if getmetatable(err) then error "ESCAPED: the metatable of errors" end
    if err.kind ~= "NotFound" then error "ESCAPED: an error was changed" end
    local ok, raised = pcall(error, err)
    if ok or raised ~= err then error "ESCAPED: another error" end
  end,
}
