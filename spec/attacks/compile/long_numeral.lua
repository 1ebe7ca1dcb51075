-- attack: a number of a million digits.
-- expect: refused
return @x90000{1234567890}@ + 0x@x5000{f}@
