-- attack: functions of the stock string library that scripts must not have.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    for _, name in ipairs { "dump", "pack", "packsize", "unpack" } do
      if string[name] ~= nil or ("x")[name] ~= nil then error("ESCAPED: string." .. name) end
    end
    if pcall(string.format, "%p", {}) then error "ESCAPED: an address" end
    for _, value in ipairs { {}, hostile.throw, ctx, moonloop.null, Thing, moonloop } do
      if tostring(value):find "0x" or ("%s"):format(value):find "0x" then error "ESCAPED: an address" end
    end
    local _, why = pcall(function() return {} < {} end)
    if why:find "0x" then error "ESCAPED: an address" end
  end,
}
