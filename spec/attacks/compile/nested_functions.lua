-- attack: functions in functions.
-- expect: refused
return @x20000{function() return }@1 @x20000{end }@
