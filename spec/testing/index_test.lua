-- moonloop.index in a watch function and in a reconcile.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")

local function thing(name, refers_to)
  return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name }, spec = { mode = refers_to } }
end


local function map(name, text)
  return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name }, data = { text = text } }
end


describe("A script with an index", function()
  local world

  local function texts(expected)
    for name, text in pairs(expected) do
      world.expect(Thing, name, { status = { text = text } })
    end
  end

  before_each(function()
    world = testing.world { scripts = "spec/testing/index/referring.lua", crds = "spec/testing/crds" }
    world.apply { map("gold", "1"), map("iron", "2"), thing("a", "gold"), thing("b", "iron"), thing("c", "gold") }
  end)

  it("is called for what refers to an object that changes", function()
    texts { a = "1", b = "2", c = "1" }
    world.apply(map("gold", "3"))
    texts { a = "3", b = "2", c = "3" }
    local patches = #world.requests("patch", "/things/")
    world.apply(map("iron", "4"))
    texts { a = "3", b = "4", c = "3" }
    assert.equal(patches + 1, #world.requests("patch", "/things/"))
  end)

  it("finds what refers to it since, and not what did before", function()
    world.patch(Thing, "a", { spec = { mode = "iron" } })
    world.apply { map("iron", "5"), map("gold", "6") }
    texts { a = "5", b = "5", c = "6" }
    world.delete(Thing, "c")
    world.apply(map("gold", "7"))
    texts { a = "5", b = "5" }
  end)

  it("has it after a restart, and when the watch was behind", function()
    world.restart()
    world.apply(map("gold", "8"))
    texts { a = "8", c = "8" }
    local heal = world.fault "stale_cache"
    world.patch(Thing, "b", { spec = { mode = "gold" } })
    world.apply(map("gold", "9"))
    heal()
    texts { a = "9", b = "9", c = "9" }
    world.expect(Thing, "c", { status = { peers = "a b c" } })
  end)

  it("goes on when its function fails for an object, and says so once", function()
    world.patch(Thing, "c", { spec = { mode = "raise" } })
    world.patch(Thing, "c", { metadata = { labels = { a = "b" } } })
    world.apply(map("gold", "10"))
    texts { a = "10" }
    world.advance "1s"
    local notes = {}
    for _, event in ipairs(world.events(Thing, "c")) do
      if event.reason == "IndexFailed" then
        notes[#notes + 1] = event.note
      end
    end
    assert.same({ "referring.lua:10: no index for this" }, notes)
    world.patch(Thing, "c", { spec = { mode = "gold" } })
    world.apply(map("gold", "11"))
    texts { a = "11", c = "11" }
  end)
end)
