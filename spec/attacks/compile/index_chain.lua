-- attack: an expression of a hundred thousand fields.
-- expect: refused
local a = {}
return a@x100000{.b}@
