-- attack: a hundred thousand not, minus and complement before a value.
-- expect: refused
return @x50000{not - ~ }@1
