-- attack: the name of a module that is not there has a newline.
-- expect: refused
require "x\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J"
