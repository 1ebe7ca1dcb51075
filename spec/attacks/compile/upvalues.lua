-- attack: more upvalues than a function may have, by way of functions in between.
-- expect: refused
@x150{local a@I@ = @I@
}@
local function f()
  @x150{local b@I@ = @I@
}@
  return function() return 0 @x150{+ a@I@ + b@I@}@ end
end
return f
