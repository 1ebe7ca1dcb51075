-- attack: as many texts as fit into a megabyte.
-- expect: held
local t = {}
@x50000{t.a@I@="@I@" }@
return t
