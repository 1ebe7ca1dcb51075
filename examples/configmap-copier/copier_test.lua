local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Namespace = moonloop.kind("v1", "Namespace")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local function namespace(name, from)
  return {
    apiVersion = "v1", kind = "Namespace",
    metadata = { name = name, annotations = { ["copier.moonloop.dev/from"] = from } },
  }
end


local function configmap(name, value)
  return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name }, data = { k = value } }
end


describe("configmap-copier", function()
  local world

  before_each(function()
    world = testing.world {}
  end)

  it("copies what the annotation names, and again when that changes", function()
    world.apply { configmap("settings", "1"), namespace("shop", "default/settings") }
    world.expect(ConfigMap, "settings", { data = { k = "1" } }, "shop")
    world.apply(configmap("settings", "2"))
    world.expect(ConfigMap, "settings", { data = { k = "2" } }, "shop")
  end)

  it("waits for a source that is not there yet", function()
    world.apply(namespace("shop", "default/settings"))
    world.expect(ConfigMap, "settings", false, "shop")
    world.apply(configmap("settings", "1"))
    world.expect(ConfigMap, "settings", { data = { k = "1" } }, "shop")
  end)

  it("puts a copy right that is changed or deleted", function()
    world.apply { configmap("settings", "1"), namespace("shop", "default/settings") }
    world.patch(ConfigMap, "settings", { data = { k = "mine" } }, nil, "shop")
    world.expect(ConfigMap, "settings", { data = { k = "1" } }, "shop")
    world.delete(ConfigMap, "settings", "shop")
    world.expect(ConfigMap, "settings", { data = { k = "1" } }, "shop")
  end)

  it("has no key that the source has not, whoever put it there", function()
    world.apply { configmap("settings", "1"), namespace("shop", "default/settings") }
    world.patch(ConfigMap, "settings", { data = { mine = "1" }, binaryData = { mine2 = "MQ==" } }, nil, "shop")
    assert.same({ k = "1" }, world.get(ConfigMap, "settings", "shop").data)
    assert.same({}, world.get(ConfigMap, "settings", "shop").binaryData or {})
    world.patch(ConfigMap, "settings", { data = { more = "2" } })
    assert.same({ k = "1", more = "2" }, world.get(ConfigMap, "settings", "shop").data)
    world.patch(ConfigMap, "settings", { data = { more = moonloop.null } })
    assert.same({ k = "1" }, world.get(ConfigMap, "settings", "shop").data)
  end)

  it("leaves a ConfigMap of the name alone that somebody else made", function()
    local theirs = configmap("settings", "theirs")
    theirs.metadata.namespace = "shop"
    world.apply { namespace "shop", theirs }
    world.apply { configmap("settings", "1"), namespace("shop", "default/settings") }
    world.expect(ConfigMap, "settings", { data = { k = "theirs" } }, "shop")
    assert.is_nil(world.get(ConfigMap, "settings", "shop").metadata.ownerReferences)
    world.advance "1s"
    assert.matches("exists and is controlled by nothing", world.events(Namespace, "shop")[1].note)
  end)

  it("makes nothing in a namespace that asks for nothing, for itself, or for what is no name", function()
    world.apply { configmap("settings", "1"), namespace "quiet", namespace("odd", "settings") }
    world.patch(Namespace, "default", { metadata = { annotations = {
      ["copier.moonloop.dev/from"] = "default/settings",
    } } })
    world.expect(ConfigMap, "settings", false, "quiet")
    world.expect(ConfigMap, "settings", false, "odd")
    assert.equal(0, #world.requests("patch", "/configmaps"))
  end)
end)
