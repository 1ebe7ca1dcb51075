-- attack: a function with an environment of its own, and the environment of the host's functions is looked for.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local function inside()
  local _ENV = { x = 1 } -- luacheck: ignore
  return x, _G
end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local x, g = inside()
    if x ~= 1 or g ~= nil then error "ESCAPED: another environment" end
    for _, name in ipairs { "_G", "load", "loadfile", "dofile", "io", "os", "debug", "package", "coroutine", "print",
      "collectgarbage", "xpcall", "warn" } do
      if pcall(function() return _ENV[name] end) then error("ESCAPED: " .. name) end
    end
  end,
}
