-- attack: a megabyte of empty lines before a mistake.
-- expect: refused /attack.lua/
@x1000000{
}@
return +
