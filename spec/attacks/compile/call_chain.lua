-- attack: a function that is called a hundred thousand times in one expression.
-- expect: refused
local function f() return f end
local n = f@x200000{()}@
return 1
