--- Prints the figures that tell how well the sources are ordered, and compares them with limits.
---
---   lua5.4 tools/house.lua            prints the figures
---   lua5.4 tools/house.lua --check    prints them, and exits with 1 when one exceeds its limit
---
--- The figures about C come from the object files of build/release or build/asan: nm says which names an object file
--- defines and which names it takes from others. `make house` builds first.

-- The highest value that each figure may have. When work lowers a figure, lower its limit in the same commit.
local LIMITS = {
  product_files = 150, -- C files of the operator
  circle_files = 0, -- C files that need each other
  circle_rooms = 0, -- folders with C files that need each other
  one_user = 52.0, -- percent of the exported C functions that one other file uses
  one_user_untested = 24.6, -- percent that one other file, and no test, bench or example, uses
  sentences = 0, -- sentences that break the rules of English
}

-- The advice for a figure that exceeds its limit.
local ADVICE = {
  product_files = "put the code of the new file into the file where a reader would look for it",
  circle_files = "move what two files share into a file below both, or merge them",
  circle_rooms = "move what two folders share into the lower one",
  one_user = "merge a function into the file of its only user, or make it static",
  one_user_untested = "merge a function into the file of its only user, or make it static",
  sentences = "rewrite the sentences that lua5.4 tools/check-english.lua names",
}

-- Neither of these builds has the object file of this one.
local ONLY_IN_THE_IMAGE = "host/cli/main.c"

-- The top folders of the first table, and the number of folder names that make a room in each.
local DEPTHS = { cluster = 3, host = 2, lua = 2, spec = 2, tools = 1 }
local CODE = { c = true, cc = true, go = true, h = true, lua = true, sh = true }
-- The folders of tests, benches and examples: a function that one of them names is a contract.
local USES = { "spec/", "cluster/spec/", "bench/", "examples/" }
local BUILDS = { "build/release", "build/asan" }
local LINE = 110


local function fail(text)
  io.stderr:write("house: ", text, "\n")
  os.exit(1)
end


-- The lines that a command prints.
local function lines_of(command)
  local lines = {}
  local pipe = assert(io.popen(command))
  for line in pipe:lines() do
    lines[#lines + 1] = line
  end
  if not pipe:close() then
    fail("this command failed: " .. command)
  end
  return lines
end


local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end


local function count_lines(path)
  local count = 0
  for _ in io.lines(path) do
    count = count + 1
  end
  return count
end


-- The source files that exist, of those that git knows or would add.
local function source_files()
  local folders = table.concat(sorted_keys(DEPTHS), " ")
  local names = {}
  for _, name in ipairs(lines_of("git ls-files --cached --others --exclude-standard " .. folders)) do
    local file = CODE[name:match "%.(%w+)$"] and io.open(name)
    if file then
      file:close()
      names[#names + 1] = name
    end
  end
  return names
end


local function folder_of(path)
  return path:match "^(.*)/[^/]*$"
end


-- The room of a file: the first names of its folder.
local function room_of(path)
  local parts = {}
  for part in folder_of(path):gmatch "[^/]+" do
    if #parts == 0 or #parts < DEPTHS[parts[1]] then
      parts[#parts + 1] = part
    end
  end
  return table.concat(parts, "/")
end


local function print_rooms(sources)
  local rooms = {}
  local sum = { files = 0, lines = 0 }
  for _, path in ipairs(sources) do
    local room = rooms[room_of(path)] or { files = 0, lines = 0 }
    rooms[room_of(path)] = room
    local lines = count_lines(path)
    for _, row in ipairs { room, sum } do
      row.files = row.files + 1
      row.lines = row.lines + lines
    end
  end
  print(("%-36s %6s %8s"):format("room", "files", "lines"))
  for _, name in ipairs(sorted_keys(rooms)) do
    print(("%-36s %6d %8d"):format(name, rooms[name].files, rooms[name].lines))
  end
  print(("%-36s %6d %8d"):format("all", sum.files, sum.lines))
end


local function is_product(path)
  return path:find "^host/.*%.c$" ~= nil
end


-- The C file that became an object file: "a/CMakeFiles/t.dir/b.c.o" is "a/b.c", and CMake writes ".." as "__".
local function source_of(object)
  local folder, path = object:match "^(.*)/CMakeFiles/[^/]+%.dir/(.*%.c)%.o$"
  while path and path:find "^__/" do
    folder, path = folder_of(folder), path:sub(4)
  end
  return path and folder .. "/" .. path
end


-- A table from C file to object file, for all the C files in `wanted`; nil when this build lacks one of them.
local function objects_in(build, wanted)
  local objects, count = {}, 0
  local found = lines_of(("find %s/host %s/cluster -name '*.c.o' 2>/dev/null || true"):format(build, build))
  for _, path in ipairs(found) do
    local source = source_of(path:sub(#build + 2))
    if wanted[source] and not objects[source] then
      objects[source] = path
      count = count + 1
    end
  end
  for source in pairs(wanted) do
    if not objects[source] then
      return nil, count > 0 and source
    end
  end
  return objects
end


-- The first build that has all the object files.
local function find_objects(wanted)
  local lacks
  for _, build in ipairs(BUILDS) do
    local objects, missing = objects_in(build, wanted)
    if objects then
      return objects, build
    end
    lacks = lacks or missing
  end
  fail((lacks and "no build has an object file of " .. lacks or "nothing is built") .. "; run: make house")
end


-- Reads the symbols of the object files. Returns a table from file to the set of names that it takes from other files,
-- a table from name to the file that defines it, and the set of the names that are functions.
local function read_symbols(objects)
  local needs, definer, functions = {}, {}, {}
  local source_by_object, paths = {}, {}
  for source, object in pairs(objects) do
    needs[source] = {}
    source_by_object[object] = source
    paths[#paths + 1] = "'" .. object .. "'"
  end
  for _, line in ipairs(lines_of("nm -P -A " .. table.concat(paths, " "))) do
    local object, name, kind = line:match "^(.-): (%S+) (%a)"
    local source = source_by_object[object]
    if kind == "U" then
      needs[source][name] = true
    elseif kind and kind:find "[TWVDBRCGS]" then
      definer[name] = source
      functions[name] = kind == "T" or nil
    end
  end
  return needs, definer, functions
end


-- file → file → true, where the first file takes a name from the second.
local function file_graph(needs, definer)
  local graph = {}
  for file, names in pairs(needs) do
    graph[file] = {}
    for name in pairs(names) do
      local other = definer[name]
      if other and other ~= file then
        graph[file][other] = true
      end
    end
  end
  return graph
end


-- The same for the folders of the files.
local function folder_graph(files)
  local graph = {}
  for file, others in pairs(files) do
    local folder = folder_of(file)
    graph[folder] = graph[folder] or {}
    for other in pairs(others) do
      if folder_of(other) ~= folder then
        graph[folder][folder_of(other)] = true
      end
    end
  end
  return graph
end


-- The strongly connected components with more than one node (Tarjan), each a sorted list, the longest first.
local function circles_of(graph)
  local index, low, on_stack, stack, circles, count = {}, {}, {}, {}, {}, 0
  local function visit(node)
    count = count + 1
    index[node], low[node] = count, count
    stack[#stack + 1], on_stack[node] = node, true
    for _, other in ipairs(sorted_keys(graph[node])) do
      if not index[other] then
        visit(other)
        low[node] = math.min(low[node], low[other])
      elseif on_stack[other] then
        low[node] = math.min(low[node], index[other])
      end
    end
    if low[node] < index[node] then
      return
    end
    local circle = {}
    repeat
      local member = table.remove(stack)
      on_stack[member] = nil
      circle[#circle + 1] = member
    until member == node
    if #circle > 1 then
      table.sort(circle)
      circles[#circles + 1] = circle
    end
  end
  for _, node in ipairs(sorted_keys(graph)) do
    if not index[node] then
      visit(node)
    end
  end
  table.sort(circles, function(a, b)
    if #a ~= #b then
      return #a > #b
    end
    return a[1] < b[1]
  end)
  return circles
end


-- Prints the members of each circle, and returns how many there are in all.
local function print_circles(circles, indent)
  local count = 0
  for _, circle in ipairs(circles) do
    count = count + #circle
    local line = ("%4d:"):format(#circle)
    for _, member in ipairs(circle) do
      if #line + #member + 1 > LINE then
        print(line)
        line = indent
      end
      line = line .. " " .. member
    end
    print(line)
  end
  return count
end


-- The set of the identifiers in the C files of USES.
local function identifiers_of_tests()
  local words = {}
  for _, path in ipairs(lines_of("git ls-files --cached --others --exclude-standard " .. table.concat(USES, " "))) do
    local file = path:find "%.[ch]c?$" and io.open(path)
    if file then
      for word in file:read("a"):gmatch "[%a_][%w_]*" do
        words[word] = true
      end
      file:close()
    end
  end
  return words
end


-- Counts the exported functions, among them the ones that exactly one other file uses, and among these the ones that
-- no test, bench or example names.
local function count_exports(needs, definer, functions)
  local users, tested = {}, identifiers_of_tests()
  for _, names in pairs(needs) do
    for name in pairs(names) do
      users[name] = (users[name] or 0) + 1
    end
  end
  local exported, one_user, untested = 0, 0, 0
  for name in pairs(definer) do
    if functions[name] and name ~= "main" then
      exported = exported + 1
      if users[name] == 1 then
        one_user = one_user + 1
        untested = untested + (tested[name] and 0 or 1)
      end
    end
  end
  return exported, one_user, untested
end


-- The number of sentences that break the rules of English; nil where nothing counts them.
local function count_sentences()
  local file = io.open "tools/check-english.lua"
  if not file then
    return nil
  end
  file:close()
  return tonumber(lines_of("lua5.4 tools/check-english.lua --count || true")[1])
end


local complaints = {}

-- Prints a figure with its limit, and notes one that exceeds it.
local function figure(text, value, key)
  local limit = LIMITS[key]
  local form = math.type(value) == "float" and "%.1f %%" or "%d"
  local padded = text .. (" "):rep(48 - utf8.len(text))
  print(("%s %8s%s"):format(padded, form:format(value), limit and (" (at most " .. form:format(limit) .. ")") or ""))
  if limit and value > limit then
    local complaint = "FAIL %s: " .. form .. ", and the limit is " .. form .. ": %s"
    complaints[#complaints + 1] = complaint:format(text, value, limit, ADVICE[key])
  end
end


local sources = source_files()
local wanted, product = {}, 0
for _, path in ipairs(sources) do
  if path ~= ONLY_IN_THE_IMAGE and (path:find "^host/.*%.c$" or path:find "^cluster/[hc]%w+/.*%.c$") then
    wanted[path] = true
  end
  product = product + (is_product(path) and 1 or 0)
end
local objects, build = find_objects(wanted)
local needs, definer, functions = read_symbols(objects)
local graph = file_graph(needs, definer)
local exported, one_user, untested = count_exports(needs, definer, functions)

print_rooms(sources)
print(("\nC files that need each other, in %s:"):format(build))
local circle_files = print_circles(circles_of(graph), "     ")
print "\nFolders with C files that need each other:"
local circle_rooms = print_circles(circles_of(folder_graph(graph)), "     ")
print ""

figure("C files of the operator", product, "product_files")
figure("C files that need each other", circle_files, "circle_files")
figure("folders with C files that need each other", circle_rooms, "circle_rooms")
figure("exported C functions", exported)
figure("exported C functions that one other file uses", one_user)
figure("their share", 100.0 * one_user / exported, "one_user")
figure("… and no test uses", untested)
figure("their share", 100.0 * untested / exported, "one_user_untested")
local sentences = count_sentences()
if sentences then
  figure("sentences that break the rules of English", sentences, "sentences")
end
if arg[1] == "--check" and #complaints > 0 then
  print(table.concat(complaints, "\n"))
  os.exit(1)
end
