-- The modes of once.lua and once_uses.lua: a Thing names its mode. Each value that is made is another one.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret")

local function value()
  return ("value-%08x"):format(math.random(0, 0xffffffff))
end


local bad = {
  raises = function() error "no luck" end,
  nothing = function() end,
  number = function() return 5 end,
  large = function() return ("x"):rep(64 * 1024 + 1) end,
  name = value,
}

local modes = {}

function modes.idle() end

-- "keys a b": a Secret with these keys.
function modes.keys(thing, words, ctx)
  local functions = {}
  for key in words:gmatch "%S+" do
    functions[key] = value
  end
  local values, err = ctx.once(thing.metadata.name .. "-once", functions)
  if not values then
    return { status = { kind = err.kind, message = err.message, values = moonloop.null } }
  end
  return { status = { values = values, kind = moonloop.null, message = moonloop.null } }
end

-- "children once", "children none": no children, with and without a call of ctx.once.
function modes.children(thing, words, ctx)
  if words == "once" then
    assert(ctx.once(thing.metadata.name .. "-once", { a = value }))
  end
  return { children = {} }
end

-- "bad raises": a good key, and one whose function is bad.
function modes.bad(thing, word, ctx)
  local _, why = pcall(ctx.once, thing.metadata.name .. "-once", { good = value, wrong = bad[word] })
  return { status = { message = tostring(why) } }
end

-- "call name": a wrong call. Its arguments come from the word: a script with a wrong literal does not load.
function modes.call(_, word, ctx)
  local letter = word:sub(1, 1)
  local many = {}
  for index = 1, 101 do
    many["k" .. index] = value
  end
  local calls = {
    name = function() ctx.once("No_Name", { a = value }) end,
    table = function() ctx.once("x", letter) end,
    none = function() ctx.once("x", {}) end,
    key = function() ctx.once("x", { ["a b"] = value }) end,
    dots = function() ctx.once("x", { [".."] = value }) end,
    text = function() ctx.once("x", { a = letter }) end,
    many = function() ctx.once("x", many) end,
    elsewhere = function() ctx.once("x", { a = value }, "other") end,
    all = function()
      local large = {}
      for index = 1, 17 do
        large["k" .. index] = function() return ("x"):rep(64 * 1024) end
      end
      ctx.once("x", large)
    end,
  }
  local _, why = pcall(calls[word])
  return { status = { message = tostring(why) } }
end

return function(name, field)
  local declared = {
    name = name, reconciles = Thing,
    reconcile = function(thing, ctx)
      local mode, words = (thing.spec.mode or ""):match "^(%a+) (.*)$"
      return mode and modes[mode](thing, words, ctx)
    end,
  }
  if field then
    declared[field] = { Secret }
  end
  return moonloop.controller(declared)
end
