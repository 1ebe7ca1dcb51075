-- attack: lists of what nobody else holds are sorted, joined, moved, unpacked and encoded.
-- expect: held
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local function list()
      local t = setmetatable({}, { __mode = "kv" })
      for i = 1, 3000 do t[i] = { i } end
      return t
    end
    pcall(table.sort, list(), function(a, b) return #{ a, b } == 2 and tostring(a) < tostring(b) end)
    pcall(table.concat, list())
    pcall(function() return { table.unpack(list()) } end)
    pcall(table.move, list(), 1, 3000, 2)
    pcall(cjson.encode, list())
    pcall(table.remove, list(), 1)
    pcall(table.insert, list(), 1, {})
  end,
}
