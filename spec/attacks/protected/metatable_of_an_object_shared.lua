-- attack: the metatable of an object that was read is asked for; it is that of all objects of its shape.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing, ctx)
    for _, t in ipairs { thing, thing.metadata, thing.spec, thing.spec.list, thing.spec.nested } do
      local meta = getmetatable(t)
      if type(meta) == "table" then
        pcall(rawset, meta, "__index", function() error "ESCAPED: by a shape" end)
        pcall(rawset, meta, 1, 7)
        for key in pairs(meta) do pcall(rawset, meta, key, nil) end
      end
    end
    local again = ctx.get(Thing, "t1")
    if again.spec.list[3] ~= 3 then error "ESCAPED: another object was changed" end
  end,
}
