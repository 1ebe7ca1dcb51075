-- attack: a file with a loop at its top is edited every 20 ms.
-- expect: limit cpu
-- renames: 30
-- for: 1500ms
local edit = @N@
while edit do end
