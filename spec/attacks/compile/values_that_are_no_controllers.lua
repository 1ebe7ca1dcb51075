-- attack: a file that returns a function.
-- expect: refused
return function() end
