-- attack: a variable whose name has nine hundred thousand bytes, which the message repeats.
-- expect: refused
return @x90000{abcdefghij}@
