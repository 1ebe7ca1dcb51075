--- Checks ML_RAISES in host/script and cluster/host. A Lua error may leave a marked function, and a function of Lua
--- that raises. A caller of either must be marked, too, and must have no ML_AUTO variable: the error would skip its
--- cleanup. Protected functions are passed as pointers, so this check does not see a call. Prints each violation, and
--- exits with 1 when there is one. Reads text in the form of clang-format: a function begins with a "{" on its own line
--- and ends with "}".
local function set(names)
  local found = {}
  for name in names:gmatch "%S+" do
    found[name] = true
  end
  return found
end


local RAISING = set [[
  lua_arith lua_call lua_callk lua_compare lua_concat lua_error lua_gettable lua_settable lua_yield lua_yieldk
  luaL_argcheck luaL_argerror luaL_argexpected luaL_checkany luaL_checkinteger luaL_checklstring luaL_checknumber
  luaL_checkoption luaL_checkstack luaL_checkstring luaL_checktype luaL_checkudata luaL_error luaL_len
  luaL_optinteger luaL_optlstring luaL_optnumber luaL_optstring luaL_tolstring luaL_typeerror
]]

-- They raise when there is no memory, or call a metamethod. The state of cluster/host has no limit, and runs
-- trusted code only: out of memory, the process ends.
local ALLOCATING = set [[
  lua_createtable lua_getfield lua_getglobal lua_geti lua_len lua_newtable lua_newthread lua_newuserdatauv lua_next
  lua_pushcclosure lua_pushfstring lua_pushliteral lua_pushlstring lua_pushstring lua_pushvfstring lua_rawset
  lua_rawseti lua_rawsetp lua_register lua_setfield lua_setglobal lua_seti luaL_addchar luaL_addlstring
  luaL_addstring luaL_addvalue luaL_buffinitsize luaL_getmetafield luaL_getsubtable luaL_newlib luaL_newlibtable
  luaL_newmetatable luaL_openlibs luaL_prepbuffsize luaL_pushresult luaL_pushresultsize luaL_ref luaL_requiref
  luaL_setfuncs luaL_setmetatable luaL_traceback luaL_where
]]

local bad = 0


local function complain(file, number, text)
  io.stderr:write(("%s:%d: %s\n"):format(file, number, text))
  bad = bad + 1
end


-- The lines of a file without comments and the insides of strings.
local function code_of(name)
  local file = assert(io.open(name))
  local text = file:read "a"
  file:close()
  local function blank(piece)
    return (piece:gsub("[^\n]", " "))
  end
  text = text:gsub("\\.", "  "):gsub('"[^"\n]*"', blank):gsub("'[^'\n]*'", blank):gsub("/%*.-%*/", blank)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do
    lines[#lines + 1] = line
  end
  return lines
end


-- Reads the declaration or definition that begins at this line: its name, the number of its last line, and true for a
-- body.
local function head_at(lines, first)
  local text = ""
  for number = first, #lines do
    text = text .. " " .. lines[number]:gsub("ML_RAISES", ""):gsub("__attribute__%(%(.-%)%)", "")
    if lines[number]:match ";%s*$" or lines[number + 1] == "{" then
      return text:match "([%w_]+)%s*%(", number, lines[number + 1] == "{"
    end
  end
end


-- All functions of a file, { name =, number =, static =, marked =, first =, last = }: the lines of the body, if any.
local function functions_of(lines)
  local found, marked, number = {}, false, 1
  while number <= #lines do
    local line = lines[number]
    marked = marked or line:match "^ML_RAISES" ~= nil
    if line:match "^[%a_]" and line ~= "ML_RAISES" and not line:match "^typedef" then
      local name, last, has_body = head_at(lines, number)
      local one = { name = name, number = number, static = line:match "%f[%w]static%f[%W]", marked = marked }
      marked, number = false, last or number
      if has_body then
        one.first = number + 1
        repeat
          number = number + 1
        until lines[number] == "}" or number == #lines
        one.last = number
      end
      found[#found + 1] = name and one
    end
    number = number + 1
  end
  return found
end


local function check_function(file, lines, one, raises)
  for number = one.first, one.last do
    local line = lines[number]
    if one.marked and line:match "%f[%w_]ML_AUTO" then
      complain(file, number, one.name .. " may be left by a Lua error, which skips the cleanup of this variable")
    end
    for called in line:gmatch "([%a_][%w_]*)%s*%(" do
      if not one.marked and raises(called) then
        complain(file, number, ("%s calls %s, which a Lua error may leave: it has to be ML_RAISES, too")
          :format(one.name, called))
      end
    end
  end
end


local files, marked = {}, {}
local list = io.popen("git ls-files --cached --others --exclude-standard "
  .. "'host/script/*.[ch]' 'cluster/host/*.[ch]' 'cluster/host/*.cc'")
for name in list:lines() do
  if io.open(name) then
    local lines = code_of(name)
    files[#files + 1] = { name = name, lines = lines, functions = functions_of(lines), marked = {} }
  end
end
list:close()
for _, file in ipairs(files) do
  for _, one in ipairs(file.functions) do
    if one.marked then
      (one.static and file.marked or marked)[one.name] = true
    end
  end
end
for _, file in ipairs(files) do
  local in_sandbox = file.name:match "^host/script/"
  for _, one in ipairs(file.functions) do
    one.marked = one.marked or file.marked[one.name] or not one.static and marked[one.name]
    if one.first then
      check_function(file.name, file.lines, one, function(called)
        return RAISING[called] or in_sandbox and ALLOCATING[called] or file.marked[called] or marked[called]
      end)
    end
  end
end
os.exit(bad == 0 and 0 or 1)
