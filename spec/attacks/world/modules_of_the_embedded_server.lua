-- attack: the host's own Lua, the API server and the harness of tests, is required by a script.
-- expect: ok
local found = {}
for _, name in ipairs { "cluster.host", "cluster.apiserver", "cluster.apiserver.running", "cluster.dev",
  "moonloop.testing", "cluster.world", "lfs", "posix", "socket", "os", "io", "debug", "package" } do
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
