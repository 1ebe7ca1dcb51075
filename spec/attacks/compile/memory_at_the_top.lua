-- attack: the memory is taken at the top of the file.
-- expect: limit memory
local t = {}
while true do t[#t + 1] = ("x"):rep(100000) .. #t end
