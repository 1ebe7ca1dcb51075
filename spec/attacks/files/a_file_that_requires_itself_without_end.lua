-- attack: modules that build the names of modules, and require what is being loaded.
-- expect: refused
local function try(name) return pcall(require, name) end
for _ = 1, 1000 do try "attack" try "one" end
return try "attack" and require "attack"
-- also: one.lua
local ok = pcall(require, "attack")
return { ok = ok and require "one" }
