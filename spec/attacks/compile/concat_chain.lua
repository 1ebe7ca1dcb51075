-- attack: a chain of concatenations, which bind to the right.
-- expect: refused
return "a" @x100000{.. "b" }@
