-- attack: rawset, table.insert, table.move and table.sort on what stands for absent fields, shared by all objects.
-- expect: ok
-- objects: 3
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local first

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing)
    local absent = thing.status
    pcall(rawset, absent, "smuggled", thing.metadata.name)
    pcall(table.insert, absent, thing.metadata.name)
    pcall(table.move, { 1, 2 }, 1, 2, 1, absent)
    first = first or thing.metadata.name
    if thing.metadata.name ~= first and (absent.smuggled == first or absent[1] == first) then
      error "ESCAPED: one object's absent field is another's"
    end
  end,
}
