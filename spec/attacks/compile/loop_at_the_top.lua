-- attack: a loop at the top of the file.
-- expect: limit cpu
while true do end
