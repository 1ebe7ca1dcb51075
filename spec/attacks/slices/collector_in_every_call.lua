-- attack: memory is held so near its limit that the collector runs in each call of the host.
-- expect: held
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local held = {}

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for i = 1, 13 do held[i] = ("x"):rep(1024 * 1024 - i) end
    for i = 1, 200 do
      local t = {}
      for j = 1, 20 do t["key " .. i .. " " .. j] = ("value "):rep(5) .. j end
      cjson.decode(cjson.encode(t))
      for key, value in pairs(t) do t[key] = value:gsub("v", key) end
    end
  end,
}
