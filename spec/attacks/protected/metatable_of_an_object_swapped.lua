-- attack: the metatable of one object is put on others of another form, which are then sent.
-- expect: held
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing, ctx)
    local meta = getmetatable(thing)
    if type(meta) == "table" then
      for _, t in ipairs { {}, { 1, 2 }, { [{}] = 1 }, { apiVersion = {}, kind = 5 }, setmetatable({}, { __index = error }) } do
        pcall(setmetatable, t, meta)
        pcall(cjson.encode, t)
        for _ in pairs(t) do end
        pcall(moonloop.array, t)
        pcall(ctx.apply, t)
      end
    end
  end,
}
