-- attack: moonloop.copy, merge and equal get a table that stands for a million others.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Part = moonloop.kind("attacks.test/v1", "Part")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Part },
  reconcile = function(thing, ctx)
    local wide, other, calls = {}, {}, 0
    for _ = 1, 20 do wide, other = { wide, wide }, { other, other } end
    for _, call in ipairs { function() moonloop.copy(wide) end, function() moonloop.merge({ x = wide }, { y = 1 }) end,
      function() moonloop.equal(wide, other) end } do
      local ok, err = pcall(call)
      if ok or not tostring(err):find("more than 50000 values", 1, true) then error("ESCAPED: " .. tostring(err)) end
      ctx.get(Part, "none")
      calls = calls + 1
    end
    if calls ~= 3 then error "ESCAPED: it ended" end
  end,
}
