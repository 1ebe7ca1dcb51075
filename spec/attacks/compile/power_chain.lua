-- attack: a chain of powers, which bind to the right.
-- expect: refused
return 2 @x100000{^2 }@
