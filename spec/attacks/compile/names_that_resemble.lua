-- attack: a name that is none, and as many local variables that resemble it as there can be.
-- expect: refused /there is no variable 'abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_0'/
@x120{ local function f@I@() local abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_@I@ }@
return abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_0
@x120{ end }@
