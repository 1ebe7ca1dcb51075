-- attack: forty files, each with a loop at its top.
-- expect: limit cpu
-- copies: 40
-- for: 1500ms
while true do end
