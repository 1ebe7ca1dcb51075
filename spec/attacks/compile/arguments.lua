-- attack: a call with a hundred thousand arguments.
-- expect: refused
local function f(...) return select("#", ...) end
return f(@x100000{1,}@1)
