-- attack: the text of the file has raw escapes and a newline near which it does not compile.
-- expect: refused /attack.lua:4/
local x = [[\
]] ]2J2026-01-01T00:00:00.000Z error host: FORGED [2J
