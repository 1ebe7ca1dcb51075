--- Files, commands and waiting: all that the runner asks of the operating system.
local socket = require "socket"

local M = {}


--- A word that the shell takes as it is.
function M.quote(word)
  return "'" .. tostring(word):gsub("'", "'\\''") .. "'"
end


--- The whole content of a file, or nil.
function M.read(path)
  local file = io.open(path, "rb")
  local text = file and file:read("a")
  if file then
    file:close()
  end
  return text
end


--- Writes a file, and the folders it stands in.
function M.write(path, text)
  local file = io.open(path, "wb")
  if not file then
    os.execute("mkdir -p " .. M.quote(path:match("^(.*)/")))
    file = assert(io.open(path, "wb"))
  end
  assert(file:write(text))
  assert(file:close())
end


--- Runs a shell line; returns its standard output and its exit code.
function M.run(line)
  local pipe = assert(io.popen(line))
  local output = pipe:read("a")
  local _, how, code = pipe:close()
  return output, how == "signal" and 128 + code or code
end


--- The lines of a command's output, as a list.
function M.lines(command)
  local lines = {}
  for line in M.run(command):gmatch("[^\n]+") do
    lines[#lines + 1] = line
  end
  return lines
end


--- A new folder, removed by `M.remove`.
function M.folder()
  return (M.run("mktemp -d -t conformance.XXXXXX"):gsub("%s+$", ""))
end


--- Removes a folder that `M.folder` made.
function M.remove(folder)
  os.execute("rm -rf " .. M.quote(folder))
end


--- Lower-case hexadecimal digits from the kernel.
function M.random_hex(count)
  local file = assert(io.open("/dev/urandom", "rb"))
  local bytes = file:read(count)
  file:close()
  return (bytes:gsub(".", function(byte)
    return ("%x"):format(byte:byte() % 16)
  end))
end


--- Seconds since 1970, with a fraction.
M.now = socket.gettime

--- Lets so many seconds pass.
M.sleep = socket.sleep


return M
