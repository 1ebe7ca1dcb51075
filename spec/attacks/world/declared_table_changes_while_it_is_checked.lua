-- attack: a declaration whose fields come from __index gives another value each time it is asked.
-- expect: refused
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local asked = 0
local changing = setmetatable({}, { __index = function(_, field)
  asked = asked + 1
  if field == "name" then
    return asked < 3 and "attack" or "../\nFORGED"
  elseif field == "reconciles" then
    return asked < 8 and Thing or 5
  elseif field == "reconcile" then
    return asked < 12 and function() end or "no function"
  elseif field == "owns" then
    return asked % 2 == 0 and {} or 7
  end
end })
return moonloop.controller(changing)
