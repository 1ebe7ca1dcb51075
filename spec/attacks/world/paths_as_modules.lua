-- attack: require is given paths.
-- expect: ok
local found = {}
for _, name in ipairs { "../secret", "/etc/passwd", "a/b", "..", ".", "a..b", "", "a\0b", "a\nb", ("a"):rep(5000),
  "attack.lua", "%2e%2e", "C:\\x", "@attack" } do
  if pcall(require, name) then
    found[#found + 1] = name
  end
end
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    if found[1] then error("ESCAPED: " .. found[1]) end
  end,
}
