-- attack: a watch function returns keys that are paths, of other namespaces, numbers, tables, and lists with holes.
-- expect: held
-- touches: 24
-- for: 1600ms
local moonloop = require "moonloop"
local calls = 0
local answers = { { "../x" }, { "a/b/c" }, { "/" }, { "" }, { "default/" }, { "/t1" }, { 5 }, { {} }, { { name = "../x" } },
  { { name = 5 } }, { { namespace = {}, name = "t1" } }, { [2] = "default/t1" }, { a = "default/t1" }, 5, "default/t1", true,
  { "default/t1\n2026" }, { ("n"):rep(1000000) }, { "default/t1\0x" }, setmetatable({}, { __len = function() return 1e9 end }),
  setmetatable({}, { __index = function() return "default/t1" end }), { function() end } }

return moonloop.controller {
  name = "attack",
  reconciles = moonloop.kind("attacks.test/v1", "Part"),
  watches = { moonloop.watch(moonloop.kind("attacks.test/v1", "Thing"), function()
    calls = calls + 1
    return answers[calls % #answers + 1]
  end) },
  reconcile = function() end,
}
