-- attack: a sum of a hundred thousand, which is no constant.
-- expect: held
local a = 1
return a @x100000{+a }@
