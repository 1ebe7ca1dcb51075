-- Whose an object is that a script names: strangers', orphans, and those of another object of the same controller.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Secret = moonloop.kind("v1", "Secret")
local Service = moonloop.kind("v1", "Service")

local function thing(mode, name)
  return {
    apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name or "a" }, spec = { mode = mode },
  }
end


local function config(name, data)
  return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name }, data = data }
end


local world

local function controller_of(kind, name)
  for _, reference in ipairs(world.get(kind, name).metadata.ownerReferences or {}) do
    if reference.controller then
      return reference.name
    end
  end
  return nil
end


local function notes(name)
  world.advance "1s"
  local list = {}
  for _, event in ipairs(world.events(Thing, name)) do
    list[#list + 1] = event.note
  end
  return table.concat(list, "\n")
end


-- As `kubectl delete --cascade=orphan` of the owner, or a restore that leaves owner references out.
local function orphan(kind, name)
  world.patch(kind, name, { metadata = { ownerReferences = moonloop.null } })
end


before_each(function()
  world = testing.world { scripts = "spec/testing/ownership/made.lua", crds = "spec/testing/crds" }
end)

for _, way in ipairs { "apply", "ensure", "children" } do
  describe("An object named by " .. way, function()
    it("that somebody else made stays as it is, and the refusal says what can be done", function()
      world.apply(config("precious", { theirs = "1" }))
      world.apply(thing(way .. " precious mine"))
      world.expect(ConfigMap, "precious", { data = { theirs = "1" } })
      assert.is_nil(world.get(ConfigMap, "precious").data.mine)
      assert.is_nil(controller_of(ConfigMap, "precious"))
      local said = notes "a"
      assert.matches("ConfigMap default/precious exists and is controlled by nothing", said, 1, true)
      assert.matches("adopt = true", said, 1, true)
      world.delete(Thing, "a")
      world.expect(ConfigMap, "precious", { data = { theirs = "1" } })
    end)

    it("is never taken from another object of the controller", function()
      world.apply(thing(way .. " shared mine", "a"))
      world.apply(thing(way .. " shared mine", "b"))
      world.advance "5m"
      assert.equal("a", controller_of(ConfigMap, "shared"))
      world.expect(ConfigMap, "shared", { data = { mine = "a" } })
      assert.is_true(#world.requests("patch", "/configmaps") <= 2)
      assert.matches("exists and is controlled by Thing a", notes "b", 1, true)
      world.delete(Thing, "a") -- and with it what it has
      world.advance "20m"
      assert.equal("b", controller_of(ConfigMap, "shared"))
    end)

    it("comes home when it has lost its owner", function()
      world.apply(thing(way .. " lost mine"))
      assert.equal("a", controller_of(ConfigMap, "lost"))
      orphan(ConfigMap, "lost")
      world.settle()
      assert.equal("a", controller_of(ConfigMap, "lost"))
      world.delete(Thing, "a")
      assert.is_nil(world.get(ConfigMap, "lost"))
    end)

    it("comes home to an object that is made again", function()
      world.apply(thing(way .. " lost mine"))
      local uid = world.get(ConfigMap, "lost").metadata.uid
      local heal = world.fault("unavailable", { times = 1000 })
      orphan(ConfigMap, "lost")
      world.delete(Thing, "a")
      heal()
      world.apply(thing(way .. " lost mine", "a2"))
      world.advance "1m"
      assert.equal(uid, world.get(ConfigMap, "lost").metadata.uid)
      assert.equal("a2", controller_of(ConfigMap, "lost"))
    end)

    it("of a kind that the script adopts is taken over, but not from another controller", function()
      world.apply { apiVersion = "v1", kind = "Service", metadata = { name = "theirs" }, spec = { ports = {
        { port = 80 } } } }
      world.apply(thing(("service-%s theirs"):format(way)))
      assert.equal("a", controller_of(Service, "theirs"))
      world.apply(thing(("service-%s theirs"):format(way), "b"))
      world.advance "1m"
      assert.equal("a", controller_of(Service, "theirs"))
      assert.matches("controlled by Thing a", notes "b", 1, true)
    end)
  end)
end


describe("ctx.apply", function()
  it("takes a stranger's object over when the call says so", function()
    world.apply(config("theirs", { theirs = "1" }))
    world.apply(thing "adopt theirs mine")
    assert.equal("a", controller_of(ConfigMap, "theirs"))
    world.expect(ConfigMap, "theirs", { data = { theirs = "1", mine = "a" } })
    world.delete(Thing, "a")
    assert.is_nil(world.get(ConfigMap, "theirs"))
  end)

  it("may be called twice for an object that it has just made", function()
    world.apply(thing "twice new mine")
    world.expect(ConfigMap, "new", { data = { mine = "a", twice = "yes" } })
    world.expect(Thing, "a", { status = { text = "twice" } })
    for _, request in ipairs(world.requests "patch") do
      assert.is_true(request.code < 300, "it conflicts with itself")
    end
  end)

  it("does not merge into what somebody makes before the cache shows it", function()
    local heal = world.fault("stale_cache", { kind = ConfigMap })
    world.apply(config("race", { theirs = "1" }))
    world.apply(thing "apply race mine")
    world.advance "10s"
    assert.is_nil(world.get(ConfigMap, "race").data.mine)
    heal()
    world.advance "1m"
    assert.is_nil(world.get(ConfigMap, "race").data.mine)
    assert.is_nil(controller_of(ConfigMap, "race"))
  end)
end)


describe("ctx.ensure", function()
  it("takes a stranger's object over when the call says so, and changes nothing else", function()
    world.apply(config("theirs", { theirs = "1" }))
    world.apply(thing "ensure_adopt theirs mine")
    assert.equal("a", controller_of(ConfigMap, "theirs"))
    assert.same({ theirs = "1" }, world.get(ConfigMap, "theirs").data)
  end)
end)


describe("A child that cannot be changed", function()
  it("is made again when it has lost its owner meanwhile", function()
    world.apply(thing "sealed made a")
    local uid = world.get(ConfigMap, "made").metadata.uid
    local heal = world.fault("unavailable", { times = 1000 })
    orphan(ConfigMap, "made")
    world.apply(thing "sealed made b")
    heal()
    world.advance "1m"
    assert.same({ b = "a" }, world.get(ConfigMap, "made").data)
    assert.not_equal(uid, world.get(ConfigMap, "made").metadata.uid)
    assert.equal("a", controller_of(ConfigMap, "made"))
  end)
end)


describe("ctx.once", function()
  it("keeps the values of a Secret in uses that has lost its owner", function()
    world = testing.world { scripts = "spec/testing/once_uses.lua", crds = "spec/testing/crds" }
    world.apply(thing "keys one")
    local data = world.get(Secret, "a-once").data
    orphan(Secret, "a-once")
    world.apply(thing "keys one two")
    assert.equal("a", controller_of(Secret, "a-once"))
    assert.equal(data.one, world.get(Secret, "a-once").data.one)
    assert.is_string(world.get(Secret, "a-once").data.two)
  end)

  it("keeps the values of a Secret that has lost its owner", function()
    world.apply(thing "once values")
    local password = world.get(Secret, "values").data.password
    orphan(Secret, "values")
    world.settle()
    assert.equal("a", controller_of(Secret, "values"))
    assert.equal(password, world.get(Secret, "values").data.password)
    world.expect(Thing, "a", { status = { text = "once" } })
  end)

  it("takes no Secret of somebody else's", function()
    world.apply { apiVersion = "v1", kind = "Secret", metadata = { name = "values" } }
    world.apply(thing "once values")
    assert.is_nil(controller_of(Secret, "values"))
    assert.matches("exists and is controlled by nothing", notes "a", 1, true)
  end)
end)


describe("Fields that no version of the script wants any more", function()
  for _, way in ipairs { "apply", "children" } do
    it("go when it went from ensure to " .. way, function()
      world.apply(thing "ensure made kept dropped")
      world.expect(ConfigMap, "made", { data = { kept = "a", dropped = "a" } })
      world.apply(thing(way .. " made kept"))
      assert.same({ kept = "a" }, world.get(ConfigMap, "made").data)
      local before = #world.requests("patch", "/configmaps")
      world.apply(thing(way .. " made kept more"))
      assert.equal(before + 1, #world.requests("patch", "/configmaps"))
    end)

    it("stay when another has set them, with " .. way, function()
      world.apply(thing "ensure made kept dropped")
      world.patch(ConfigMap, "made", { data = { theirs = "1" } })
      world.apply(thing(way .. " made kept"))
      assert.same({ kept = "a", theirs = "1" }, world.get(ConfigMap, "made").data)
    end)
  end

  it("do not include those that the script patches beside", function()
    world.apply(thing "patched made kept")
    world.restart()
    world.apply(thing "patched made kept more")
    assert.same({ kept = "a", more = "a", patched = "yes" }, world.get(ConfigMap, "made").data)
  end)

  it("do not include those that the script makes the object with", function()
    world.apply(thing "initial made kept")
    world.restart()
    world.apply(thing "initial made kept more")
    assert.same({ first = "1", kept = "a", more = "a" }, world.get(ConfigMap, "made").data)
    world.apply(thing "apply made kept")
    assert.same({ kept = "a" }, world.get(ConfigMap, "made").data)
  end)

  for _, way in ipairs { "apply", "children" } do
    it("go from a Secret's stringData, with " .. way, function()
      world.apply(thing(("secret-%s made kept dropped"):format(way)))
      world.expect(Secret, "made", { data = { kept = "YQ==", dropped = "YQ==" } })
      world.apply(thing(("secret-%s made kept"):format(way)))
      assert.same({ kept = "YQ==" }, world.get(Secret, "made").data)
    end)
  end

  it("go from a Secret that ensure made of stringData", function()
    world.apply(thing "secret-ensure made kept dropped")
    world.apply(thing "secret-apply made kept")
    assert.same({ kept = "YQ==" }, world.get(Secret, "made").data)
  end)

  it("are no values of ctx.once", function()
    world.apply(thing "once made")
    world.apply(thing "secret-apply made kept")
    world.expect(Secret, "made", { data = { password = "bWFkZQ==", kept = "YQ==" } })
  end)
end)
