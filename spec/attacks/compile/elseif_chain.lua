-- attack: a chain of ten thousand elseif.
-- expect: held
local x = 1
if x == 0 then x = 0
@x20000{elseif x == @I@ then x = 2
}@end
