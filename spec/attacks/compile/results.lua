-- attack: a return of a hundred thousand values.
-- expect: refused
return @x100000{nil,}@1
