-- A controller that gets another name, and says what it was formerly: formerly.lua beside this file, as it is with each
-- name.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Namespace = moonloop.kind("v1", "Namespace")

local TEXT = [[
local moonloop = require "moonloop"
local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local function config(name, namespace, data)
  return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = namespace }, data = data }
end

return moonloop.controller {
  name = "NAME",
  formerly = FORMERLY,
  reconciles = Thing,
  owns = { ConfigMap },
  reconcile = function(thing)
    if thing.spec.mode == "bad" then error "it is bad" end
    local name = thing.metadata.name
    return {
      children = { config(name, nil, { DATA }), config(name .. "-far", "elsewhere", { DATA }) },
      status = { text = "NAME" },
    }
  end,
  FINALIZE
}
]]

describe("A controller with another name", function()
  local world, path

  local function write(name, formerly, data, finalize)
    local values = { NAME = name, FORMERLY = formerly, DATA = data or 'kept = "1"',
      FINALIZE = finalize or "finalize = function() end," }
    local file = assert(io.open(path, "w"))
    file:write((TEXT:gsub("%u%u%u%u+", values)))
    file:close()
  end

  local function thing(name, mode)
    return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name }, spec = { mode = mode } }
  end

  before_each(function()
    path = os.tmpname() .. ".lua"
    write("one", "nil", 'kept = "1", dropped = "1"')
    world = testing.world { scripts = path, crds = "spec/testing/crds" }
    world.apply { apiVersion = "v1", kind = Namespace.kind, metadata = { name = "elsewhere" } }
    world.apply(thing("a", "good"))
    world.expect(Thing, "a", { status = { text = "one" }, metadata = { finalizers = { "moonloop.dev/one" } } })
    world.expect(ConfigMap, "a-far", { data = { dropped = "1" } }, "elsewhere")
  end)

  after_each(function()
    os.remove(path)
    os.remove((path:gsub("%.lua$", "")))
  end)

  local function rename(...)
    write(...)
    world.restart()
    world.advance "1s"
  end

  it("takes over fields, marks, finalizers and the list of children", function()
    rename("two", '{ "zero", "one" }')
    local object = world.get(Thing, "a")
    assert.equal("two", object.status.text)
    assert.same({ "moonloop.dev/two" }, object.metadata.finalizers)
    assert.equal("v1 ConfigMap elsewhere/a-far", object.metadata.annotations["children.moonloop.dev/two"])
    assert.is_nil(object.metadata.annotations["children.moonloop.dev/one"])
    assert.same({ kept = "1" }, world.get(ConfigMap, "a").data)
    local far = world.get(ConfigMap, "a-far", "elsewhere")
    assert.same({ kept = "1" }, far.data)
    assert.equal(("two default/a %s"):format(object.metadata.uid), far.metadata.annotations["moonloop.dev/owner"])
    for _, map in ipairs { far, world.get(ConfigMap, "a") } do
      for _, entry in ipairs(map.metadata.managedFields) do
        assert.not_equal("moonloop-one", entry.manager)
      end
    end
    rename("two", "nil") -- the word is not needed any more
    world.delete(Thing, "a")
    assert.is_nil(world.get(Thing, "a"))
    assert.is_nil(world.get(ConfigMap, "a-far", "elsewhere"))
  end)

  it("leaves everything as it was, and says so, without the word", function()
    rename("two", "nil")
    local said = {}
    for _, event in ipairs(world.events(Thing, "a")) do
      said[#said + 1] = event.note
    end
    assert.matches("is controlled by one default/a", table.concat(said, "\n"), 1, true)
  end)

  it("finalizes what is deleted while it has the old name's finalizer", function()
    local heal = world.fault("unavailable", { verb = "patch", times = 1000 })
    world.delete(Thing, "a")
    assert.is_table(world.get(Thing, "a"))
    heal()
    rename("two", '{ "one" }')
    assert.is_nil(world.get(Thing, "a"))
    assert.is_nil(world.get(ConfigMap, "a-far", "elsewhere"))
  end)

  it("takes the old name's finalizer off when it does not finalize", function()
    rename("two", '{ "one" }', nil, "")
    assert.is_nil(world.get(Thing, "a").metadata.finalizers)
  end)

  it("takes back what the old name said of a failure", function()
    world.patch(Thing, "a", { spec = { mode = "bad" } })
    local heal = world.fault("unavailable", { times = 1000 })
    world.patch(Thing, "a", { spec = { mode = "good" } })
    heal()
    rename("two", '{ "one" }')
    for _, condition in ipairs(world.get(Thing, "a").status.conditions or {}) do
      assert.not_equal("False", condition.status)
    end
  end)

  it("costs nothing once all is taken over", function()
    rename("two", '{ "one" }')
    local before = #world.requests()
    world.patch(Thing, "a", { metadata = { labels = { any = "thing" } } })
    world.advance "10s"
    assert.equal(before, #world.requests())
  end)
end)
