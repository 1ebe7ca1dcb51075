-- The accounts to which tenant.lua reports, as a process: lua5.4 accounts_server.lua FILE. Writes its port to
-- FILE.port, and the body of each request to FILE, a line each.
local socket = require "socket"

local file = assert(arg[1])
local server = assert(socket.bind("127.0.0.1", 0))

local function write(path, how, text)
  local out = assert(io.open(path, how))
  out:write(text)
  out:close()
end


local _, port = server:getsockname()
write(file .. ".port", "w", tostring(port))
while true do
  local client = assert(server:accept())
  client:settimeout(5)
  local length, line = 0, client:receive "*l"
  while line and line ~= "" do
    length = tonumber(line:lower():match "^content%-length: *(%d+)") or length
    line = client:receive "*l"
  end
  write(file, "a", (client:receive(length) or "") .. "\n")
  client:send "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
  client:close()
end
