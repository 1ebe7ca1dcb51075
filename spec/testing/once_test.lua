-- ctx.once: a value is made once, whatever happens, and everybody sees the same.
local host = require "cluster.host"
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret")

local function thing(mode, name)
  return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name or "a" }, spec = { mode = mode } }
end


-- Returns the values in the Secret, decoded.
local function stored(world)
  local secret, values = world.get(Secret, "a-once"), {}
  for key, text in pairs(secret.data or {}) do
    values[key] = host.base64.decode(text)
  end
  return values, secret
end


local function seen(world)
  return world.get(Thing, "a").status.values
end


-- The Secret a-once as somebody else would write it.
local function by_hand(world, fields)
  local object = { apiVersion = "v1", kind = "Secret", metadata = { name = "a-once" } }
  for key, value in pairs(fields) do
    object[key] = value
  end
  world.apply(object)
end


local function owner(world, name)
  local object = world.get(Thing, name)
  return {
    { apiVersion = "example.com/v1", kind = "Thing", name = name, uid = object.metadata.uid, controller = true },
  }
end


for script, how in pairs { ["once"] = "from the cache", ["once_uses"] = "by request" } do
  describe(("ctx.once, with Secrets %s,"):format(how), function()
    local world

    before_each(function()
      world = testing.world { now = "2026-07-01T10:00:00Z", scripts = ("spec/testing/%s.lua"):format(script) }
    end)

    it("makes an owned Secret and gives its values", function()
      world.apply(thing "keys a b")
      local values, secret = stored(world)
      assert.same(values, seen(world))
      assert.matches("^value%-%x+$", values.a)
      assert.not_equal(values.a, values.b)
      assert.equal("Opaque", secret.type)
      local reference = secret.metadata.ownerReferences[1]
      assert.equal(world.get(Thing, "a").metadata.uid, reference.uid)
      assert.is_true(reference.controller)
      assert.equal(1, #secret.metadata.ownerReferences)
    end)

    it("keeps the values, also in the next process", function()
      world.apply(thing "keys a b")
      local before = stored(world)
      world.patch(Thing, "a", { metadata = { labels = { x = "y" } } })
      world.restart()
      world.advance "1m"
      assert.same(before, stored(world))
      assert.same(before, seen(world))
      assert.equal(1, #world.requests("create", "/secrets"))
      assert.equal(0, #world.requests("patch", "/secrets"))
    end)

    it("adds a key that is missing and takes away one that is not listed", function()
      world.apply(thing "keys a b")
      local before = stored(world)
      world.apply(thing "keys a c")
      local after = stored(world)
      assert.equal(before.a, after.a)
      assert.is_nil(after.b)
      assert.matches("^value", after.c)
      assert.equal(after.a, seen(world).a)
      assert.equal(after.c, seen(world).c)
      assert.equal(1, #world.requests("patch", "/secrets"))
    end)

    it("keeps a value that was changed by hand, and makes a key again that was deleted", function()
      world.apply(thing "keys a b")
      local before = stored(world)
      world.patch(Secret, "a-once", { data = { a = "bWluZQ==", b = moonloop.null } })
      world.patch(Thing, "a", { metadata = { labels = { x = "y" } } })
      local after = stored(world)
      assert.equal("mine", after.a)
      assert.matches("^value", after.b)
      assert.not_equal(before.b, after.b)
      assert.same(after, seen(world))
    end)

    it("uses the Secret that another replica has just made", function()
      world.apply(thing "idle now")
      local heal = world.fault("stale_cache", { kind = Secret })
      local labels = { ["moonloop.dev/once"] = "true" }
      by_hand(world, { data = { a = "dGhlaXJz" },
        metadata = { name = "a-once", ownerReferences = owner(world, "a"), labels = labels } })
      world.apply(thing "keys a")
      assert.same({ a = "theirs" }, seen(world))
      heal()
      assert.same({ a = "theirs" }, stored(world))
    end)

    it("never writes over a value that its cache does not show", function()
      world.apply(thing "keys a")
      local before = stored(world)
      local heal = world.fault("stale_cache", { kind = Secret })
      world.patch(Secret, "a-once", { data = { b = "dGhlaXJz" } })
      world.apply(thing "keys a b")
      world.advance "1m"
      heal()
      world.advance "20m"
      assert.same({ a = before.a, b = "theirs" }, stored(world))
      assert.same({ a = before.a, b = "theirs" }, seen(world))
    end)

    it("makes one value when requests and replies are lost", function()
      for _, fault in ipairs { "lost_reply", "lost_request", "timeout", "unavailable", "conflict" } do
        world = testing.world { now = "2026-07-01T10:00:00Z", scripts = ("spec/testing/%s.lua"):format(script) }
        world.fault(fault, { verb = "create", kind = Secret })
        world.fault(fault, { verb = "patch", kind = Secret })
        world.apply(thing "keys a")
        world.advance "1m"
        local before = stored(world)
        assert.same(before, seen(world), fault)
        world.apply(thing "keys a b")
        world.advance "20m"
        local after = stored(world)
        assert.equal(before.a, after.a, fault)
        assert.same(after, seen(world), fault)
      end
    end)

    it("leaves a Secret alone that somebody else has", function()
      for name, text in pairs { [""] = "controlled by nothing", b = "controlled by Thing b" } do
        world = testing.world { now = "2026-07-01T10:00:00Z", scripts = ("spec/testing/%s.lua"):format(script) }
        world.apply { thing "idle now", thing("idle now", "b") }
        by_hand(world, { data = { z = "eg==" },
          metadata = { name = "a-once", ownerReferences = name ~= "" and owner(world, name) or nil } })
        local before = world.get(Secret, "a-once")
        world.apply(thing "keys a")
        local status = world.get(Thing, "a").status
        assert.equal("AlreadyExists", status.kind)
        assert.truthy(status.message:find("Secret default/a-once exists and is " .. text, 1, true), status.message)
        assert.same(before, world.get(Secret, "a-once"))
      end
    end)

    it("says that an immutable Secret cannot get a key", function()
      world.apply(thing "keys a")
      world.patch(Secret, "a-once", { immutable = true })
      world.patch(Thing, "a", { metadata = { labels = { x = "y" } } })
      assert.same(stored(world), seen(world))
      world.apply(thing "keys a b")
      local status = world.get(Thing, "a").status
      assert.equal("Invalid", status.kind)
      assert.truthy(status.message:find("is immutable, and key 'b' has to be made", 1, true), status.message)
    end)

    it("writes nothing when a function is bad, and names its key", function()
      local texts = {
        raises = "its function failed: once_modes.lua:13: no luck",
        nothing = "its function returned nothing; expected a string",
        number = "its function returned a number; expected a string",
        large = "its function returned 65537 bytes; at most 65536",
      }
      for word, text in pairs(texts) do
        world.apply(thing("bad " .. word))
        local message = world.get(Thing, "a").status.message
        assert.truthy(message:find("key 'wrong': " .. text, 1, true), message)
        assert.is_nil(world.get(Secret, "a-once"))
      end
    end)

    it("refuses a wrong call and says where it is", function()
      local texts = {
        name = "expected the name of a Secret",
        table = "expected a table of functions, got a string",
        none = "0 keys; expected 1 to 100",
        key = "'a b' is no key of a Secret",
        dots = "'..' is no key of a Secret",
        text = "key 'a': expected the function that makes the value, got a string",
        many = "101 keys; expected 1 to 100",
        elsewhere = "a Thing in namespace 'default' cannot own a Secret in namespace 'other'",
        all = "the values have 1114112 bytes together; a Secret holds 1048576",
      }
      for word, text in pairs(texts) do
        world.apply(thing("call " .. word))
        local message = world.get(Thing, "a").status.message
        assert.truthy(message:find(text, 1, true), message)
        assert.matches("^once_modes.lua:%d+: ctx.once", message)
      end
      assert.equal(0, #world.requests("create", "/secrets"))
    end)

    it("goes with its owner", function()
      world.apply(thing "keys a")
      world.delete(Thing, "a")
      world.advance "1m"
      assert.is_nil(world.get(Secret, "a-once"))
    end)
  end)
end


describe("ctx.once", function()
  it("keeps its Secret when the children are pruned, also in a run that does not call it", function()
    local world = testing.world { scripts = "spec/testing/once.lua" }
    world.apply(thing "children once")
    local before = stored(world)
    world.apply(thing "children none")
    world.advance "1m"
    world.apply(thing "children once")
    assert.matches("^value", before.a)
    assert.same(before, stored(world))
    assert.equal(0, #world.requests("delete", "/secrets"))
  end)

  it("says how to declare Secret", function()
    local world = testing.world { scripts = "spec/testing/once_undeclared.lua" }
    world.apply(thing "bad name")
    local message = world.get(Thing, "a").status.message
    assert.truthy(message:find("Secret is not declared: add moonloop.kind(\"v1\", \"Secret\") to owns, or to uses", 1,
      true), message)
  end)
end)
