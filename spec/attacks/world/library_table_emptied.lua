-- attack: what require gives is emptied, and required again.
-- expect: refused
local moonloop = require "moonloop"
local names = {}
for name in pairs(moonloop) do
  names[#names + 1] = name
end
for i = 1, #names do
  moonloop[names[i]] = nil
end
local again = require "moonloop"
return again.controller { name = "attack" }
