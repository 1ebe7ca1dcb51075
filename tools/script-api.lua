--- Compares the stubs, the docs and the name lists of the script API with lua/script_api.lua, which has the list of it.
--- Without an argument: names each file that differs from its output, and each function that has no row in
--- docs/script-limits.md or no program in spec/attacks/lib, and exits with 1 when there is one. With --write: writes
--- those files again.
local api = dofile "lua/script_api.lua"
local MADE = "Made by tools/script-api.lua out of lua/script_api.lua"
local STUB_COLUMNS = 118
local LINE_MAX = 120

local function read(path)
  local file = io.open(path)
  local text = file and file:read "a"
  if file then
    file:close()
  end
  return text
end


-- {{{ the table, and how its parts are spelt

local types, modules = {}, {}
for _, module in ipairs(api.test_modules) do
  modules[module.name] = module
end
for _, entry in ipairs(api.types) do
  types[entry.name] = entry
end
for _, module in ipairs(api.modules) do
  modules[module.name] = module
end


-- "namespace?" → "namespace", true
local function optional(name)
  return name:gsub("%?$", ""), name:find "%?$" ~= nil
end


local function names_of(entry)
  local names = {}
  for index, field in ipairs(entry.values or entry) do
    names[index] = entry.values and field or optional(field.name or field[1])
  end
  return names
end


-- ctx.list(Kind [, {ListOptions}]) with the fields of that type.
local function call_of(entry)
  return (entry.call:gsub("{(%u%a+)}", function(name)
    return ("{ %s = }"):format(table.concat(names_of(types[name]), " =, "))
  end))
end


-- The doc with its placeholders filled in: `{ErrorKind}`.
local function doc_of(entry)
  local doc = entry.doc or entry[3]
  return doc and (doc:gsub("`{(%u%a+)}`", function(name)
    return ('`"%s"`'):format(table.concat(types[name].values, '"`, `"'))
  end))
end


local function functions(module)
  local list = {}
  for _, entry in ipairs(module) do
    if entry.call then
      list[#list + 1] = entry
    end
  end
  return list
end


-- }}}
-- {{{ lua/moonloop/fields.lua

local function quoted(name)
  return name:match "^%a+$" and name or ('["%s"]'):format(name)
end


local function fields_file()
  local lists = {}
  for _, module in ipairs(api.modules) do
    lists[#lists + 1] = { module.name, names_of(module) }
  end
  for _, entry in ipairs(api.types) do
    if entry.list then
      lists[#lists + 1] = { entry.list, names_of(entry) }
    end
  end
  local out = {
    "-- " .. MADE .. ": the names that there are,",
    '-- for "did you mean". A list is one string, as scripts can get hold of this table.',
    "return {",
  }
  for _, list in ipairs(lists) do
    local line = ('  %s = "%s",'):format(quoted(list[1]), table.concat(list[2], " "))
    while #line > LINE_MAX do
      local cut = LINE_MAX - line:sub(1, LINE_MAX - 1):reverse():find(" ", 1, true)
      out[#out + 1], line = line:sub(1, cut) .. '"', '    .. "' .. line:sub(cut + 1)
    end
    out[#out + 1] = line
  end
  out[#out + 1] = "}\n"
  return table.concat(out, "\n")
end


-- }}}
-- {{{ host/script/ctx_calls.h

local function calls_file()
  local width, out = 0, {
    "/* " .. MADE .. ": how each function of ctx is",
    " * called, for its error messages. */", "#pragma once", "",
  }
  for _, entry in ipairs(functions(modules.ctx)) do
    width = math.max(width, #entry.name)
  end
  for _, entry in ipairs(functions(modules.ctx)) do
    local name = ("%-" .. width + 5 .. "s"):format(entry.name:upper() .. "_CALL")
    out[#out + 1] = ('#define %s "%s"'):format(name, call_of(entry):gsub('"', '\\"'))
  end
  return table.concat(out, "\n") .. "\n"
end


-- }}}
-- {{{ the stubs for editors

-- Lines of a comment, from Markdown: of a link only its text.
local function add_comment(out, text)
  local line = "---"
  for word in text:gsub("%[([^%]]*)%]%([^)]*%)", "%1"):gmatch "%S+" do
    if #line + 1 + #word > STUB_COLUMNS then
      out[#out + 1], line = line, "---"
    end
    line = line .. " " .. word
  end
  out[#out + 1] = line
end


-- A line with its doc behind it, or above it where it would be too long.
local function add_tag(out, tag, doc)
  local line = tag .. (doc and " " .. doc:gsub("%[([^%]]*)%]%([^)]*%)", "%1") or "")
  if doc and #line > STUB_COLUMNS then
    add_comment(out, doc)
    line = tag
  end
  out[#out + 1] = line
end


local function add_type(out, entry)
  out[#out + 1] = ""
  if entry.doc then
    add_comment(out, doc_of(entry))
  end
  if entry.values then
    out[#out + 1] = "---@alias moonloop." .. entry.name
    for _, value in ipairs(entry.values) do
      out[#out + 1] = ('---| "%s"'):format(value)
    end
  elseif entry.is then
    out[#out + 1] = ("---@alias moonloop.%s %s"):format(entry.name, entry.is)
  else
    out[#out + 1] = "---@class moonloop." .. entry.name
    for _, field in ipairs(entry) do
      add_tag(out, ("---@field %s %s"):format(field[1], field[2]), doc_of(field))
    end
  end
end


local function add_function(out, var, entry)
  local names = {}
  if entry.generic then
    out[#out + 1] = "---@generic " .. entry.generic
  end
  for index, param in ipairs(entry.params) do
    names[index] = optional(param[1])
    add_tag(out, ("---@param %s %s"):format(param[1], param[2]), param[3])
  end
  for _, result in ipairs(entry.returns or {}) do
    add_tag(out, ("---@return %s %s"):format(result[2], result[1]), result[3])
  end
  if entry.errors then
    out[#out + 1] = "---@return moonloop.Error? err " .. entry.errors:gsub(" ", ", ")
  end
  out[#out + 1] = ("function %s.%s(%s) end"):format(var, entry.name, table.concat(names, ", "))
end


local function add_module(out, module)
  out[#out + 1] = ""
  if module.doc then
    add_comment(out, module.doc)
  end
  out[#out + 1] = "---@class " .. (module.class or module.name)
  out[#out + 1] = ("local %s = {}"):format(module.var)
  for _, entry in ipairs(module) do
    out[#out + 1] = ""
    add_comment(out, doc_of(entry))
    if entry.call then
      add_function(out, module.var, entry)
    else
      out[#out + 1] = "---@type " .. entry.type
      out[#out + 1] = ("%s.%s = nil"):format(module.var, entry.name)
    end
  end
end


-- The stub of the last module by its name in `require`; the modules before it stand in it as well.
local function stub_file(...)
  local names = { ... }
  local name = names[#names]
  local out = {
    "---@meta " .. name,
    ('-- Stubs of `require "%s"` for editors (lua-language-server). Nothing loads this file.'):format(name),
    ("-- %s."):format(MADE),
    "-- luacheck: ignore 241",
    ("error \"moonloop/meta is for editors; require '%s' instead\""):format(name),
  }
  for _, entry in ipairs(api.types) do
    if (entry.module or "moonloop") == name then
      add_type(out, entry)
    end
  end
  for _, module in ipairs(names) do
    add_module(out, modules[module])
  end
  out[#out + 1] = ""
  out[#out + 1] = ("return %s\n"):format(modules[name].var)
  return table.concat(out, "\n")
end


-- }}}
-- {{{ cluster/testing/signatures.lua

-- A type as the checks of a test's calls read it: an alias is what it stands for.
local function checked_type(kind)
  local alias = types[kind:match "^moonloop%.(.*)$" or ""]
  return alias and alias.values and ('"%s"'):format(table.concat(alias.values, '"|"')) or kind
end


-- A line `{ "name?", 'type' },`, or two where it would be too long.
local function add_checked(out, indent, name, kind)
  local line = ("%s{ %q, '%s' },"):format(indent, name, checked_type(kind))
  if #line <= LINE_MAX then
    out[#out + 1] = line
    return
  end
  local cut = LINE_MAX - 8 - #indent - #name - 6
  out[#out + 1] = ("%s{ %q, '%s'"):format(indent, name, checked_type(kind):sub(1, cut))
  out[#out + 1] = ("%s  .. '%s' },"):format(indent, checked_type(kind):sub(cut + 1))
end


local function test_signatures_file()
  local out = {
    ("-- %s: the arguments of"):format(MADE),
    "-- the functions that tests have, and the fields of their options (calls.lua).", "return {", "  functions = {",
  }
  for _, module in ipairs(api.test_modules) do
    for _, entry in ipairs(functions(module)) do
      out[#out + 1] = ("    [%q] = {"):format(module.var .. "." .. entry.name)
      out[#out + 1] = ("      call = %q,"):format(call_of(entry))
      for _, param in ipairs(entry.params) do
        add_checked(out, "      ", param[1], param[2])
      end
      out[#out + 1] = "    },"
    end
  end
  out[#out + 1] = "  },"
  out[#out + 1] = "  options = {"
  for _, entry in ipairs(api.types) do
    if entry.module == "moonloop.testing" and entry.given then
      out[#out + 1] = ('    ["moonloop.%s"] = {'):format(entry.name)
      for _, field in ipairs(entry) do
        add_checked(out, "      ", field[1], field[2])
      end
      out[#out + 1] = "    },"
    end
  end
  out[#out + 1] = "  },"
  out[#out + 1] = "}\n"
  return table.concat(out, "\n")
end


-- }}}
-- {{{ the tables of the pages about scripts

local function add_row(out, ...)
  out[#out + 1] = ("| %s |"):format(table.concat({ ... }, " | ")):gsub("|  ", "| "):gsub("|  ", "| ")
end


local function function_rows(out, module)
  for _, entry in ipairs(module) do
    if not entry.to_return then
      add_row(out, ("`%s`"):format(entry.call and call_of(entry) or module.var .. "." .. entry.name), doc_of(entry))
    end
  end
end


local function field_rows(out, entry)
  for _, field in ipairs(entry) do
    add_row(out, ("`%s`"):format(field.example or optional(field[1])), doc_of(field))
  end
end


local function head(out, title)
  out[#out + 1] = title and ("| %s | |"):format(title) or "| | |"
  out[#out + 1] = "|---|---|"
end


local sections = {}

function sections.moonloop(out)
  head(out)
  function_rows(out, modules.moonloop)
end


function sections.controller(out)
  head(out, "Field of a controller")
  field_rows(out, types.Declaration)
end


function sections.selection(out)
  head(out)
  field_rows(out, types.Selection)
end


function sections.webhooks(out)
  head(out, "In `webhooks`")
  field_rows(out, types.Webhooks)
end


function sections.result(out)
  head(out)
  field_rows(out, types.Result)
  for _, entry in ipairs(modules.ctx) do
    if entry.to_return then
      add_row(out, ("`%s`"):format(call_of(entry)), doc_of(entry))
    end
  end
end


function sections.ctx(out)
  add_row(out, "", "", "`err.kind`")
  out[#out + 1] = "|---|---|---|"
  for _, entry in ipairs(modules.ctx) do
    if not entry.to_return then
      local errors = entry.errors and ("`%s`"):format(entry.errors:gsub(" ", "` `")) or ""
      add_row(out, ("`%s`"):format(call_of(entry)), doc_of(entry), errors)
    end
  end
end


function sections.error(out)
  head(out)
  field_rows(out, types.Error)
end


function sections.time(out)
  head(out)
  function_rows(out, modules["moonloop.time"])
end


function sections.cjson(out)
  head(out)
  function_rows(out, modules.cjson)
end


for _, name in ipairs { "crypto", "base64", "quantity", "yaml", "labels", "regex" } do
  sections[name] = function(out)
    head(out)
    function_rows(out, modules["moonloop." .. name])
  end
end


function sections.language(out)
  local globals, libraries, seen = {}, {}, {}
  for _, entry in ipairs(api.language) do
    local library = entry[1]:match "^(%w+)%."
    if not library then
      globals[#globals + 1] = entry[1]
    elseif not seen[library] then
      seen[library] = true
      libraries[#libraries + 1] = library
    end
  end
  out[#out + 1] = ("Lua 5.4 with `%s`, and the libraries `%s`. These parts are missing:")
    :format(table.concat(globals, " "), table.concat(libraries, " "))
end


function sections.options(out)
  head(out, "option")
  field_rows(out, types["testing.Options"])
end


function sections.pods(out)
  head(out, "In a rule")
  field_rows(out, types["testing.PodRule"])
end


function sections.waiting(out)
  head(out)
  field_rows(out, types["testing.Waiting"])
end


function sections.world(out)
  head(out)
  function_rows(out, modules.world)
end


local placed = {} -- set of the sections that a page has

local function docs_file(path)
  local text = read(path)
  return (text:gsub("(<!%-%- script%-api: (%w+) %-%->\n).-(\n<!%-%- end %-%->)", function(open, name, close)
    local out = {}
    assert(sections[name], name)(out)
    placed[name] = true
    return open .. table.concat(out, "\n") .. close
  end))
end


-- }}}
-- {{{ spec/fuzz/lua_signatures.h

-- Letters of spec/fuzz/lua_grammar.h for types.
local LETTERS = {
  ["string|number"] = "s", ["string|moonloop.LabelSelector"] = "s", ["string|table|function"] = "r",
  ["table<string, string>"] = "t",
  any = "v", boolean = "v", integer = "i", number = "n", string = "s", table = "t", T = "o", ["T[]"] = "t",
  ["moonloop.Beside"] = "t", ["moonloop.Date"] = "d", ["moonloop.LocalDate"] = "d", ["moonloop.Declaration"] = "T",
  ["moonloop.Kind"] = "k",
  ["moonloop.ListOptions"] = "q", ["moonloop.HttpRequest"] = "t", ["moonloop.Manifest"] = "o",
  ["moonloop.Object"] = "o", ['moonloop.EventOptions|"Normal"|"Warning"'] = "t",
  ["moonloop.Selection"] = "e", ["moonloop.When"] = "w", ["moonloop.WriteOptions"] = "t",
}

local function letters_of(entry)
  local letters, may_end = "", false
  for _, param in ipairs(entry.params) do
    local name, is_optional = optional(param[1])
    local kind = param[2]
    local letter = name == "pattern" and "p" or LETTERS[kind] or kind:find "^fun%(" and "f"
      or kind:find "^table<" and "t" or kind:find '^"' and "s"
    if not letter then
      error(("%s: the fuzzer knows no letter for %s: LETTERS in tools/script-api.lua"):format(entry.call, kind), 0)
    end
    letters = letters .. (is_optional and not may_end and "?" or "") .. letter
    may_end = may_end or is_optional
  end
  return letters
end


local function signatures_file()
  local out = {
    "/* " .. MADE .. ": what the fuzzer of the",
    " * sandbox calls. `types`: write_arguments in lua_grammar.h. */", "#pragma once", "",
    "static const struct signature {", "    const char *name;", "    const char *types;", "} signatures[] = {",
  }
  for _, entry in ipairs(api.language) do
    out[#out + 1] = ('    {"%s", "%s"},'):format(entry[1], entry[2])
  end
  for _, module in ipairs(api.modules) do
    for _, entry in ipairs(functions(module)) do
      out[#out + 1] = ('    {"%s.%s", "%s"},'):format(module.var, entry.name, letters_of(entry))
    end
  end
  out[#out + 1] = "};\n"
  return table.concat(out, "\n")
end


-- }}}
-- {{{ what is written by hand

local bad = 0


local function complain(text, ...)
  io.stderr:write(text:format(...), "\n")
  bad = bad + 1
end


-- Every function by its full name: "ctx.get", "moonloop.time.utc", "string.rep".
local function known_functions()
  local known = {}
  for _, entry in ipairs(api.language) do
    known[entry[1]] = entry[1]
  end
  for _, module in ipairs(api.modules) do
    for _, entry in ipairs(functions(module)) do
      known[module.name .. "." .. entry.name] = module.var .. "." .. entry.name
    end
  end
  return known
end


-- Rows of metamethods and iterators, and of functions that only the library itself calls, name no function of the API.
-- spec/unit/script/test_bounds.c compares all rows with the functions that a script can reach.
local function check_limits(known)
  local path, rows = "docs/script-limits.md", {}
  for cell in read(path):gmatch "\n|([^|]*)|" do
    for name in cell:gmatch "`([^`]*)`" do
      rows[name] = true
    end
  end
  for _, name in ipairs(api.more) do
    rows[name] = nil
  end
  for name in pairs(known) do
    if not rows[name] then
      complain("%s has no row for %s", path, name)
    end
  end
  for name in pairs(rows) do
    local room = name:match "^moonloop%.([%w_]+)%." or "-"
    local is_internal = ("amount calendar children conditions cron dialect globals names natural objects result "
      .. "validation webhooks zone zone_rule zones"):find(room, 1, true)
    if not (known[name] or is_internal or name:find "__" or name:find "%(%)$") then
      complain("%s has a row for %s, which lua/script_api.lua does not list", path, name)
    end
  end
end


-- An error message that begins with a call, "time.parse(text): …", shows it as the table does.
local function check_messages()
  local list = io.popen "git ls-files 'lua/moonloop/*.lua' 'host/script/*.c' ':!lua/moonloop/meta'"
  for path in list:lines() do
    local text = read(path)
    for _, module in ipairs(api.modules) do
      for _, entry in ipairs(functions(module)) do
        local name = module.var .. "%." .. entry.name
        for shown in text:gmatch("[\"'](" .. name .. " ?[({][^\n]-): ") do
          if shown ~= call_of(entry) then
            complain("%s: a message shows '%s', the table '%s'", path, shown, call_of(entry))
          end
        end
      end
    end
  end
  list:close()
end


-- A program of spec/attacks/lib has to name the function: "ctx.get", or "math" and "abs".
local function check_attacks(known)
  local texts, list = {}, io.popen "git ls-files --cached --others --exclude-standard 'spec/attacks/lib/*.lua'"
  for name in list:lines() do
    texts[#texts + 1] = read(name)
  end
  list:close()
  local all = table.concat(texts, "\n")
  for _, name in pairs(known) do
    local library, short = name:match "^(.*)%.(.-)$"
    local is_named = all:find("%f[%w_.]" .. name:gsub("%p", "%%%0") .. "%f[^%w_]")
    for _, text in ipairs(texts) do
      local is_indexed = library and text:find(library .. "[", 1, true)
      is_named = is_named or is_indexed and text:find(('"%s"'):format(short), 1, true)
    end
    if not is_named then
      complain("spec/attacks/lib has no program that calls %s", name)
    end
  end
end


-- }}}

local files = {
  { "lua/moonloop/fields.lua", fields_file() },
  { "host/script/ctx_calls.h", calls_file() },
  { "lua/moonloop/meta/moonloop.lua", stub_file("ctx", "moonloop") },
  { "lua/moonloop/meta/time.lua", stub_file "moonloop.time" },
  { "lua/moonloop/meta/testing.lua", stub_file("world", "moonloop.testing") },
  { "cluster/testing/signatures.lua", test_signatures_file() },
  { "lua/moonloop/meta/cjson.lua", stub_file "cjson" },
  { "lua/moonloop/meta/crypto.lua", stub_file "moonloop.crypto" },
  { "lua/moonloop/meta/base64.lua", stub_file "moonloop.base64" },
  { "lua/moonloop/meta/quantity.lua", stub_file "moonloop.quantity" },
  { "lua/moonloop/meta/yaml.lua", stub_file "moonloop.yaml" },
  { "lua/moonloop/meta/labels.lua", stub_file "moonloop.labels" },
  { "lua/moonloop/meta/regex.lua", stub_file "moonloop.regex" },
  { "spec/fuzz/lua_signatures.h", signatures_file() },
}

for _, page in ipairs { "scripting", "reading", "webhooks", "library", "language", "testing" } do
  local path = ("docs/%s.md"):format(page)
  files[#files + 1] = { path, docs_file(path) }
end
for name in pairs(sections) do
  if not placed[name] then
    complain("no page has <!-- script-api: %s -->", name)
  end
end

for _, made in ipairs(files) do
  local path, text = made[1], made[2]
  if read(path) ~= text and arg[1] == "--write" then
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    print("wrote " .. path)
  elseif read(path) ~= text then
    complain("%s is not what lua/script_api.lua says: make script-api", path)
  end
end
check_messages()
check_limits(known_functions())
check_attacks(known_functions())
os.exit(bad == 0 and 0 or 1)
