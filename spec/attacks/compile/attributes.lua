-- attack: variables to be closed by the thousand.
-- expect: refused
@x5000{do local x <close> = nil end }@
@x300{local c@I@ <const> = @I@
}@
