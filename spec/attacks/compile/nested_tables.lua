-- attack: constructors in constructors.
-- expect: refused /levels|overflow/
return @x100000{{}@ @x100000{}}@
