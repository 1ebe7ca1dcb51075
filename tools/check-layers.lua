--- Checks that includes between the folders of host/ point down only, and that Lua's headers
--- stay in host/script. Prints each line that does not, exits 1 then.
local layers = { "base", "codec", "net", "kube", "state", "script", "run", "cli" }
local rank = {}
for i, name in ipairs(layers) do
  rank[name] = i
end

local function files()
  local list = io.popen("git ls-files 'host/*.c' 'host/*.h'")
  local names = {}
  for name in list:lines() do
    names[#names + 1] = name
  end
  list:close()
  return names
end

local function complain(file, number, text)
  io.stderr:write(("%s:%d: %s\n"):format(file, number, text))
end

local bad = 0
for _, file in ipairs(files()) do
  local mine = file:match("^host/(%w+)/")
  local number = 0
  for line in io.lines(file) do
    number = number + 1
    local theirs = line:match('^#include "(%w+)/')
    if rank[mine] and rank[theirs] and rank[theirs] > rank[mine] then
      complain(file, number, ("%s includes %s, which stands above it"):format(mine, theirs))
      bad = bad + 1
    end
    local lua = line:match("^#include [<\"]lua%.h") or line:match("^#include [<\"]l[au]%w+lib%.h")
    if mine ~= "script" and lua then
      complain(file, number, "only host/script knows Lua")
      bad = bad + 1
    end
  end
end
os.exit(bad == 0 and 0 or 1)
