-- Values that no function expects, for programs to call functions with.
local moonloop = require "moonloop"
local M = {}

local function returns(value)
  return function() return value end
end

local function with(name, value)
  return setmetatable({ 1, 2, 3 }, { [name] = value })
end

local cyclic = {}
cyclic.self, cyclic[cyclic] = cyclic, cyclic

local deep = {}
for _ = 1, 300 do
  deep = { deep }
end

local wide = {}
for i = 1, 2000 do
  wide[i * 3] = i
end

--- Without nil, which is thrown as well.
M.values = {
  false, true, 0, -0.0, 1, -1, 2, 64, 65, 2 ^ 53, 1e308, 0 / 0, 1 / 0, -1 / 0, math.maxinteger, math.mininteger,
  0.5, "", "\0", "a", "0x10", "1e999", "nan", " 5 ", "%", "[", "(", "%f", "%b", "\xff\xfe", "\n", "..", "../others",
  ("a"):rep(20000), ("["):rep(300), ("%1"):rep(200), ("(a"):rep(40),
  function() end, function() error "no" end, function(...) return ... end,
  {}, { 1, 2, 3 }, { n = 1 }, { [1.5] = 1, [true] = 2 }, cyclic, deep, wide, string, math, _ENV,
  moonloop, moonloop.null, moonloop.array(), moonloop.kind("attacks.test/v1", "Thing"),
  with("__index", function() error "index" end), with("__index", returns(1)), with("__newindex", error),
  with("__len", returns(math.maxinteger)), with("__len", returns("x")), with("__tostring", returns(1)),
  with("__tostring", function() error { } end), with("__name", 5), with("__name", "a\nb"), with("__call", error),
  with("__eq", returns(true)), with("__lt", returns(true)), with("__le", error), with("__concat", returns({})),
  with("__unm", error), with("__pairs", error), with("__close", error), with("__metatable", "no"),
}

local count = #M.values + 1

--- The world that functions share is as it was.
function M.sane()
  assert(("x"):upper() == "X" and ("a"):rep(2) == "aa", "ESCAPED: the methods of strings")
  assert(getmetatable "" == false, "ESCAPED: the metatable of strings")
  assert(#{ 1, 2 } == 2 and tostring(1) == "1" and 1 < 2 and "a" .. 1 == "a1", "ESCAPED: the language")
  assert(getmetatable(1) == nil and getmetatable(nil) == nil and getmetatable(true) == nil and
    getmetatable(returns) == nil, "ESCAPED: a metatable for a type")
end

-- A run has time for a part of the pairs; the next one goes on with those behind them.
local PAIRS_AT_ONCE = 450
local pairs_thrown = 0

--- Calls the function with each value alone, and with a part of the pairs; `first`: what stands before those.
function M.throw(f, ...)
  local n, first = select("#", ...), { ... }
  local function try(...)
    first[n + 1], first[n + 2] = ...
    pcall(f, table.unpack(first, 1, n + select("#", ...)))
  end
  pcall(f, ...)
  for i = 1, count do
    try(M.values[i])
  end
  for _ = 1, PAIRS_AT_ONCE do
    pairs_thrown = pairs_thrown + 1
    try(M.values[pairs_thrown // count % count + 1], M.values[pairs_thrown % count + 1])
  end
  M.sane()
end

--- The same with one value at a time in the place behind the others.
function M.throw_one(f, ...)
  local n, arguments = select("#", ...), { ... }
  for i = 1, count do
    arguments[n + 1] = M.values[i]
    pcall(f, table.unpack(arguments, 1, n + 1))
  end
  M.sane()
end

return M
