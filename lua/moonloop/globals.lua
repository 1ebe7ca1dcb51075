-- Messages for host/script/globals.c, which refuses a file of a script that uses a name without a variable: they say
-- what to write instead. The table in docs/language.md says why scripts do not have these names.
local _, host = ...
local names = host.require "moonloop.names"

local M = {}

local OUTSIDE = "a script reaches the cluster through ctx only"
local FILES = "put the code into a file beside this one, and require it"

local INSTEAD = {
  print = "use ctx.log",
  warn = "use ctx.log",
  os = "for the time use ctx.now() and moonloop.time; " .. OUTSIDE,
  io = OUTSIDE,
  debug = "there is no access to Lua's insides",
  package = "use require",
  load = FILES,
  loadfile = FILES,
  loadstring = FILES,
  dofile = FILES,
  coroutine = "the host does the waiting: call ctx as if it blocked",
  xpcall = "use pcall; the host logs a traceback of what a reconcile raises",
  collectgarbage = "the host collects garbage",
  _G = "there is no table of globals; use local variables, or a table of the file",
  unpack = "use table.unpack",
  ctx = "it is the second parameter of reconcile: function(object, ctx)",
}
for name, module in pairs { moonloop = "moonloop", time = "moonloop.time", cjson = "cjson", json = "cjson" } do
  INSTEAD[name] = ('write \'local %s = require "%s"\' at the top'):format(name, module)
end

-- The names that scripts have; scripts cannot add to them.
local LANGUAGE = "assert error getmetatable ipairs math next pairs pcall rawequal rawget rawlen rawset require select "
  .. "setmetatable string table tonumber tostring type utf8"


local function hint(name, locals)
  local nearest = names.nearest(name, locals) or names.nearest(name, LANGUAGE)
  return nearest and ("did you mean '%s'?"):format(nearest)
end


--- The problem of reading a name that is no variable.
---@param name string
---@param locals string the local variables there, with spaces between them
---@return string problem "there is no variable 'nmes' here; did you mean 'names'?"
function M.missing(name, locals)
  local instead = INSTEAD[name] or hint(name, locals)
  return ("there is no variable '%s' here%s"):format(names.text(name), instead and "; " .. instead or "")
end


--- The problem of assigning to a name that is no variable.
---@param name string
---@param locals string
---@return string problem "a script sets no globals: write 'local count = …'"
function M.written(name, locals)
  local nearest = hint(name, locals)
  return ("a script sets no globals: write 'local %s = …'%s"):format(
    names.text(name), nearest and "; or " .. nearest or "")
end


return M
