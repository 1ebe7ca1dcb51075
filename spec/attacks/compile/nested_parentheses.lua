-- attack: parentheses in parentheses.
-- expect: refused /levels|overflow/
return @x100000{(}@1@x100000{)}@
