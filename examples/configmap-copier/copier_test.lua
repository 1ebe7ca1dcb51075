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
