-- attack: kinds whose group, version and name are paths.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for _, pair in ipairs { { "v1/../..", "ConfigMap" }, { "../v1", "Secret" }, { "v1", "Thing/../../secrets" }, { "a/b/c", "K" },
      { "", "K" }, { "v1", "" }, { "/v1", "K" }, { "v1/", "K" }, { "v1?x", "K" }, { "v1", "K\n" }, { "v1\0", "K" }, { "v 1", "K" },
      { "%2e%2e/v1", "K" }, { "..", "K" }, { "apps/..", "K" }, { "v1", ".." }, { "v1#", "K" } } do
      if pcall(moonloop.kind, pair[1], pair[2]) then
        error("ESCAPED: a kind of " .. pair[1] .. " " .. pair[2])
      end
    end
  end,
}
