-- attack: a file of names, each to be looked up before it runs, in functions within functions full of local variables.
-- expect: refused /(there is no variable 'nothing_that_there_is'|CPU time|memory)/
@x120{ local function f@I@() local a@I@, b@I@, c@I@, d@I@, e@I@, g@I@, h@I@ }@
@x25000{ string.x(math, table, utf8) }@
return nothing_that_there_is
@x120{ end }@
