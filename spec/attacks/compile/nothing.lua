-- attack: a file that returns nothing, with a mark of the byte order.
-- expect: refused /nothing|near/
local x = nil
