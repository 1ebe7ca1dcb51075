-- Every function of the script API, as lua/script_api.lua lists them, called in every function of a script that the
-- host calls: reconcile, finalize, a watch function, `when`, the function of an index, default, validate, convert; and
-- every form of a result. After each call the process goes on, and each object ends as it should.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Widget = moonloop.kind("example.com/v1", "Widget")
local Alpha = moonloop.kind("example.com/v1alpha1", "Widget")
local Secret = moonloop.kind("v1", "Secret")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local OBJECTS = 30

-- An argument of each type. A function with another type needs one here.
local ARGUMENTS = {
  any = "{ a = 1 }", boolean = "true", integer = "7", number = "1.5", string = '"x"', table = "{ a = 1 }",
  T = "object", ["T[]"] = "{ 1, 2 }", ["string|number"] = '"10m"', ["string|moonloop.LabelSelector"] = '"a=b"',
  ["string|table|function"] = '"y"',
  ["table<string, string>"] = '{ a = "b" }', ["moonloop.Beside"] = "{ status = { a = 1 } }",
  ["moonloop.Date"] = "{ year = 2026, month = 1, day = 2 }", ["moonloop.Kind"] = "ConfigMap",
  ["moonloop.LocalDate"] = "{ year = 2026, month = 10, day = 25, hour = 2, later = true }",
  ['moonloop.EventOptions|"Normal"|"Warning"'] = '{ about = object }',
  ["moonloop.ListOptions"] = "{ owned = true }",
  ["moonloop.HttpRequest"] = '{ method = "GET", url = "https://x.test/" }',
  ["moonloop.Manifest"] = 'config(object, "x")', ["moonloop.Object"] = 'made(object, ctx)',
  ["moonloop.WriteOptions"] = "{ adopt = true }",
  ["moonloop.Selection"] = '{ labels = "a=b" }', ["moonloop.When"] = '{ "status" }',
  ["moonloop.Declaration"] = '{ name = "y", reconciles = ConfigMap, reconcile = function() end }',
}

-- Calls that need more than arguments of the right types. A run does not delete the object that it makes: that
-- would have no end.
local CALLS = {
  ["ctx.delete"] = 'ctx.delete(config(object, "absent"))',
  ["ctx.metric"] = 'ctx.metric("calls", 1)',
  ["ctx.once"] = 'ctx.once("once-" .. object.metadata.name, { key = function() return "x" end })',
  ["ctx.event"] = 'ctx.event("Called", "x", { about = object })',
  ["moonloop.exact"] = 'moonloop.exact(config(object, "x"), "data", "metadata.labels")',
  ["moonloop.kind"] = 'moonloop.kind("v1", "Pod")',
}

local function argument_of(entry, param)
  local kind = param[2]
  local text = ARGUMENTS[kind] or kind:find "^fun%(" and "function() return {} end"
    or kind:find "^table<" and "{ key = function() return 'x' end }" or kind:find '^"' and kind:match '^"[^"]*"'
  return assert(text, ("%s: no argument of type %s; add one to ARGUMENTS"):format(entry.call, kind))
end


-- With all arguments, and without those that may be left out.
local function calls_of(name, entry)
  local all, few = {}, {}
  for _, param in ipairs(entry.params) do
    all[#all + 1] = argument_of(entry, param)
    if not param[1]:find "%?$" then
      few[#few + 1] = all[#all]
    end
  end
  local call = name .. "(%s)"
  return { CALLS[name] or call:format(table.concat(all, ", ")), CALLS[name] or call:format(table.concat(few, ", ")) }
end


-- The body of a function that calls all of them with `object` and `ctx`.
local function statements()
  local lines = {}
  for _, module in ipairs(dofile "lua/script_api.lua".modules) do
    for _, entry in ipairs(module) do
      if entry.params then
        for _, call in ipairs(calls_of(module.var .. "." .. entry.name, entry)) do
          lines[#lines + 1] = ("  pcall(function() return %s end)"):format(call)
        end
      end
    end
  end
  assert.is_true(#lines > 60)
  return table.concat(lines, "\n")
end


local SCRIPT = [[
local moonloop = require "moonloop"
local time, cjson, crypto = require "moonloop.time", require "cjson", require "moonloop.crypto"
local base64, quantity = require "moonloop.base64", require "moonloop.quantity"
local yaml, labels = require "moonloop.yaml", require "moonloop.labels"
local regex = require "moonloop.regex"
local Widget = moonloop.kind("example.com/v1", "Widget")
local ConfigMap, Secret = moonloop.kind("v1", "ConfigMap"), moonloop.kind("v1", "Secret")

local function config(object, suffix)
  return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = object.metadata.name .. "-" .. suffix } }
end

local by_name

local function made(object, ctx)
  return ctx.get(ConfigMap, object.metadata.name .. "-x")
end

local function call_all(object, ctx)
STATEMENTS
  pcall(function() return ctx.list(ConfigMap, { index = by_name, key = "x" }) end)
end

by_name = moonloop.index(ConfigMap, function(object) call_all(object) return object.metadata.name end)

local results = {
  none = function() end,
  status = function() return { status = { phase = "Ready" } } end,
  conditions = function() return { conditions = { Ready = { status = true } } } end,
  children = function(object)
    return { children = { config(object, "child"), moonloop.recreate(config(object, "again")) } }
  end,
  requeue = function() return { requeue_after = "1h" } end,
  requeue_at = function(_, ctx) return { requeue_at = ctx.now() + 3600 } end,
  invalid = function(_, ctx) return ctx.invalid("spec.mode", "is odd", { status = { phase = "Bad" } }) end,
  terminal = function(_, ctx) return ctx.terminal("no", { conditions = { Ready = { status = false } } }) end,
  raise = function() error "boom" end,
  wrong = function() return 7 end,
}

return moonloop.controller {
  name = "every", reconciles = Widget, owns = { ConfigMap }, wakes = WAKES,
  watches = { moonloop.watch(Secret, function(secret, ctx)
    call_all(secret, ctx)
    return { "default/w1" }
  end, function(old, new) call_all(new, old) return true end) },
  metrics = {
    calls = { type = "counter", help = "x" },
    finals = { type = "counter", help = "x" },
    size = { type = "gauge", help = "x", labels = { "name" } },
  },
  when = function(old, new) call_all(new, old) return true end,
  default = function(object, ctx) call_all(object, ctx) object.spec.size = object.spec.size or 3 end,
  validate = function(new, old, ctx) call_all(new, ctx) call_all(new, old) end,
  convert = { v1alpha1 = {
    to = function(object, ctx) call_all(object, ctx) return object end,
    from = function(object, ctx) call_all(object, ctx) return object end,
  } },
  reconcile = function(object, ctx)
    call_all(object, ctx)
    ctx.metric("size", 1, { name = object.metadata.name })
    return results[object.spec.mode](object, ctx)
  end,
  finalize = function(object, ctx)
    call_all(object, ctx)
    ctx.metric("finals", 1)
    ctx.metric("size", 2, { name = object.metadata.name })
    return results[object.spec.finally](object, ctx)
  end,
}
]]

local RESULTS = {
  "none", "status", "conditions", "children", "requeue", "requeue_at", "invalid", "terminal", "raise", "wrong",
}

local function script_file(wakes)
  local text = SCRIPT:gsub("STATEMENTS", function() return statements() end):gsub("WAKES", wakes)
  local folder = os.tmpname()
  local file = assert(io.open(folder .. ".lua", "w"))
  file:write(text)
  file:close()
  os.remove(folder)
  return folder .. ".lua"
end


local function widget(name, mode, finally)
  return {
    apiVersion = "example.com/v1", kind = "Widget", metadata = { name = name },
    spec = { mode = mode, finally = finally or "none" },
  }
end


describe("every function of the script API, wherever the host calls a script,", function()
  local path, world

  local function open(wakes)
    path = script_file(wakes)
    world = testing.world { scripts = path, crds = "spec/testing/webhooks/crds" }
  end

  after_each(function()
    os.remove(path or "")
  end)

  for _, wakes in ipairs { "nil", '"all"' } do
    it(("is called by %d objects that are finalized, each counted once (wakes = %s)"):format(OBJECTS, wakes), function()
      open(wakes)
      for index = 1, OBJECTS do
        world.apply(widget("w" .. index, RESULTS[index % #RESULTS + 1]))
      end
      world.apply { apiVersion = "v1", kind = "Secret", metadata = { name = "s" } }
      world.patch(Secret, "s", { metadata = { labels = { a = "b" } } })
      assert.is_table(world.get(Alpha, "w1"))
      assert.equal(3, world.get(Widget, "w1").spec.size)
      for index = 1, OBJECTS do
        world.delete(Widget, "w" .. index)
      end
      world.advance "1m"
      assert.same({}, world.list(Widget))
      assert.equal(OBJECTS, world.metric "finals")
      assert.is_nil(world.metric("size", { name = "w1" }))
      assert.is_true(world.metric "calls" >= 2 * OBJECTS)
    end)
  end

  it("may end finalize with any result, and the object goes when it says nothing", function()
    open "nil"
    for _, result in ipairs(RESULTS) do
      world.apply(widget(result:gsub("_", "-"), "children", result))
    end
    for _, result in ipairs(RESULTS) do
      world.delete(Widget, (result:gsub("_", "-")))
    end
    world.advance "10m"
    assert.equal(#RESULTS - 1, #world.list(Widget))
    for _, object in ipairs(world.list(Widget)) do
      world.patch(Widget, object.metadata.name, { spec = { finally = "none" } })
    end
    world.advance "10m"
    assert.same({}, world.list(Widget))
    assert.is_nil(world.get(ConfigMap, "none-child"))
  end)
end)
