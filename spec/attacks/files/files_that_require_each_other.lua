-- attack: modules in a circle, and a chain of them that is deep.
-- expect: refused
return require "one"
-- also: one.lua
return require "two"
-- also: two.lua
return require "one"
