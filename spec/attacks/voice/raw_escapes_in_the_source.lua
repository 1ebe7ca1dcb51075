-- attack: an unfinished string of raw control characters, which the message of the compiler quotes.
-- expect: refused
local x = "[2JFORGED ›31m
