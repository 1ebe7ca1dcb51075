--- Checks that includes between the folders of host/ and cluster/ point down only and tie no files of one folder into a
--- circle, that Lua's headers stay in host/script and cluster/host, that no circle of requires ties folders of Lua
--- together, and that nothing in host/ or lua/ needs cluster/. There is no exception. Prints each violation, and exits
--- with 1 when there is one.
local layers = {
  "base", "codec", "net", "kube", "state", "script", "operator", "cluster/host", "cli", "cluster/cli",
}
local rank = {}
for i, name in ipairs(layers) do
  rank[name] = i
end

local bad = 0


-- The existing files that git knows or would add.
local function files(patterns)
  local list = io.popen("git ls-files --cached --others --exclude-standard " .. patterns)
  local names = {}
  for name in list:lines() do
    local file = io.open(name)
    if file then
      file:close()
      names[#names + 1] = name
    end
  end
  list:close()
  return names
end


local function complain(file, number, text)
  io.stderr:write(("%s:%d: %s\n"):format(file, number, text))
  bad = bad + 1
end


-- The layer of a path or of an include: "kube" for host/kube/client.c and "kube/client.h".
local function layer_of(path)
  return path:match "^(cluster/%w+)/" or path:match "^host/(%w+)/" or path:match "^(%w+)/"
end


local function check_includes(file)
  local mine = layer_of(file)
  local number = 0
  for line in io.lines(file) do
    number = number + 1
    local used = line:match('^#include "([%w_/]+)')
    local theirs = used and layer_of(used)
    if rank[mine] and rank[theirs] and rank[theirs] > rank[mine] then
      complain(file, number, ("%s includes %s, which stands above it"):format(mine, theirs))
    elseif theirs and theirs:find "^cluster/" and not mine:find "^cluster/" then
      complain(file, number, "nothing in host/ includes cluster/")
    end
    local lua = line:match("^#include [<\"]lua%.h") or line:match("^#include [<\"]l[au]%w+lib%.h")
    if mine ~= "script" and mine ~= "cluster/host" and lua then
      complain(file, number, "only host/script and cluster/host know Lua")
    end
  end
end


-- The module of a file: a C file with its header, and with the header that only files of its family share:
-- "operator/scripts" for host/operator/scripts.c, scripts.h and scripts_internal.h.
local function module_of(path)
  return (path:gsub("%.[ch]c?$", ""):gsub("_internal$", ""))
end


-- module → module → the line that includes it, { file =, number = }.
local function includes(names)
  local edges = {}
  for _, file in ipairs(names) do
    local number, mine = 0, module_of(file:match "^host/(.*)$" or file)
    edges[mine] = edges[mine] or {}
    for line in io.lines(file) do
      number = number + 1
      local used = line:match('^#include "([%w_/]+/[%w_]+%.h)"')
      local theirs = used and module_of(used)
      if theirs and theirs ~= mine then
        edges[mine][theirs] = edges[mine][theirs] or { file = file, number = number }
      end
    end
  end
  return edges
end


-- The room of a Lua file: its folder in cluster/ or in cluster/apiserver/. A file beside such folders is a room
-- of its own, and so is each file of lua/moonloop/.
local function room(file)
  local path = file:match("^cluster/(.*)%.lua$")
  if not path then
    return file:match("^lua/(.*)%.lua$")
  end
  local inner = path:match("^apiserver/(.*)$")
  return inner and "apiserver/" .. inner:match("^[^/]+") or path:match("^[^/]+")
end


-- room → room → the first line that requires it, { file =, number = }. This leaves out a name that is put together at
-- run time ("moonloop.a." .. name): it stays in its own room.
local function requires(names)
  local known, edges = {}, {}
  for _, file in ipairs(names) do
    known[file:gsub("^lua/", ""):gsub("%.lua$", ""):gsub("/init$", ""):gsub("/", ".")] = file
  end
  for _, file in ipairs(names) do
    local number, mine = 0, room(file)
    edges[mine] = edges[mine] or {}
    for line in io.lines(file) do
      number = number + 1
      local used = known[line:match('^[^-].*require[ (]*"([%w_.]*)"')
        or line:match('^[^-].*later%.module "([%w_.]*)"')]
      local theirs = used and room(used)
      if theirs and theirs ~= mine then
        edges[mine][theirs] = edges[mine][theirs] or { file = file, number = number }
      end
      if used and used:find "^cluster/" and file:find "^lua/" then
        complain(file, number, "nothing in lua/ requires cluster")
      end
    end
  end
  return edges
end


-- Returns true when one room needs the other, directly or through more rooms.
local function leads(edges, from, to, seen)
  if from == to then
    return true
  end
  seen[from] = true
  for next_room in pairs(edges[from] or {}) do
    if not seen[next_room] and leads(edges, next_room, to, seen) then
      return true
    end
  end
  return false
end


local function check_circles(edges)
  for from, uses in pairs(edges) do
    for to, line in pairs(uses) do
      if leads(edges, to, from, {}) then
        complain(line.file, line.number, ("%s needs %s, which needs it, too"):format(from, to))
      end
    end
  end
end


local sources = files "'host/*.c' 'host/*.h' 'cluster/host/*.[ch]' 'cluster/host/*.cc' 'cluster/cli/*.[ch]'"
for _, file in ipairs(sources) do
  check_includes(file)
end
check_circles(includes(sources))
check_circles(requires(files "'lua/*.lua' 'cluster/*.lua' ':!lua/*/meta' ':!cluster/meta' ':!cluster/spec'"))
os.exit(bad == 0 and 0 or 1)
