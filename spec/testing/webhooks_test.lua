-- The webhooks of a script: what the API server of a world makes of their answers.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Widget = moonloop.kind("example.com/v1", "Widget")
local Alpha = moonloop.kind("example.com/v1alpha1", "Widget")

local function widget(name, spec, version)
  return {
    apiVersion = version or Widget.apiVersion, kind = "Widget", metadata = { name = name }, spec = spec,
  }
end


describe("the webhooks of a script", function()
  local world

  before_each(function()
    world = testing.world { scripts = "spec/testing/webhooks/widget.lua", crds = "spec/testing/webhooks/crds" }
  end)

  local function refused(object)
    local ok, why = pcall(world.apply, object)
    assert.is_false(ok)
    return tostring(why)
  end

  it("fill in what is missing", function()
    world.apply(widget("a", { shape = "round" }))
    world.expect(Widget, "a", { spec = { size = 3, shape = "round" }, metadata = { labels = { app = "widget" } } })
  end)

  it("leave alone what is there", function()
    world.apply(widget("a", { size = 5, deep = { list = moonloop.array(), map = {}, number = 1.5 } }))
    local spec = world.get(Widget, "a").spec
    assert.same({ size = 5, deep = { list = {}, map = {}, number = 1.5 } }, spec)
  end)

  it("refuse with a text, with a field, with a list of fields", function()
    assert.equal('admission webhook "validate.widget.moonloop.dev" denied the request: a widget without a shape',
      refused(widget("a", { shape = "none" })))
    assert.matches("denied the request: spec.shape: is odd$", refused(widget("a", { shape = "odd" })))
    assert.matches("denied the request: spec.size: 11 is more than 10$", refused(widget("a", { size = 11 })))
    assert.is_nil(world.get(Widget, "a"))
  end)

  it("see the object before the change", function()
    world.apply(widget("a", { shape = "round" }))
    local why = refused(widget("a", { shape = "square", size = 12 }))
    assert.matches("[spec.size: 12 is more than 10, spec.shape: cannot be changed]", why, 1, true)
    world.expect(Widget, "a", { spec = { shape = "round" } })
  end)

  it("read watched kinds from the cache", function()
    world.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "limit" }, data = { most = "20" } }
    world.apply(widget("a", { size = 20 }))
    assert.matches("21 is more than 20", refused(widget("b", { size = 21 })))
  end)

  it("cannot write or wait", function()
    assert.matches("widget.lua:%d+: ctx.create.*a watch function or a webhook cannot wait",
      refused(widget("a", { trick = "validate-write" })))
  end)

  it("that fail are failures of the call, with their line", function()
    assert.matches('failed calling webhook "validate.widget.moonloop.dev": .*widget.lua:%d+: boom',
      refused(widget("a", { trick = "validate-raise" })))
    assert.matches("widget.lua:%d+: used more than %d+ ms of CPU time",
      refused(widget("a", { trick = "validate-loop" })))
    assert.matches("widget.lua:%d+: validate returned a number; expected nothing",
      refused(widget("a", { trick = "validate-number" })))
    assert.matches("widget.lua:%d+: default returned a number; expected the object",
      refused(widget("a", { trick = "default-number" })))
    assert.matches('widget.lua: default returned an object with another metadata.name: .*another',
      refused(widget("a", { trick = "default-rename" })))
  end)

  it("warn", function()
    world.apply(widget("a", { trick = "validate-warn" }))
    assert.is_table(world.get(Widget, "a"))
  end)

  it("let an object go that they would refuse", function()
    world.apply(widget("a", {}))
    world.patch(Widget, "a", { metadata = { finalizers = { "example.com/wait" } } })
    world.delete(Widget, "a")
    world.patch(Widget, "a", { spec = { shape = "none" }, metadata = { finalizers = moonloop.null } })
    assert.is_nil(world.get(Widget, "a"))
  end)

  it("convert to the version that is reconciled, and back", function()
    world.apply(widget("a", { width = 7 }, Alpha.apiVersion))
    world.expect(Widget, "a", { spec = { size = 7 }, status = { size = 7 } })
    world.patch(Widget, "a", { spec = { color = "red" } })
    world.expect(Alpha, "a", { spec = { width = 7 }, metadata = { annotations = { ["example.com/color"] = "red" } } })
    assert.is_nil(world.get(Alpha, "a").spec.color)
    world.patch(Alpha, "a", { spec = { width = 8 } })
    world.expect(Widget, "a", { spec = { size = 8, color = "red" } })
  end)

  it("keep all of an object that goes to another version and back", function()
    world.round_trip(widget("a", { size = 1, color = "red", list = moonloop.array(), map = {}, number = 1.0 }))
    world.round_trip(widget("a", { width = 1, list = { 1, 2 } }, Alpha.apiVersion))
  end)

  it("whose conversion loses a field are found by a round trip", function()
    local ok, why = pcall(world.round_trip, widget("a", { size = 1, trick = "from-lose" }))
    assert.is_false(ok)
    assert.matches("Widget is another one after it was example.com/v1alpha1", tostring(why), 1, true)
    assert.matches("spec.size", tostring(why), 1, true)
  end)

  it("whose conversion makes another object, or raises, are named", function()
    for trick, message in pairs {
      ["from-rename"] = 'widget.lua: convert.v1alpha1.from returned an object with another metadata.name: "another" '
        .. 'instead of "a"',
      ["from-uid"] = 'widget.lua: convert.v1alpha1.from returned an object with another metadata.uid: "another" '
        .. "instead of nothing",
      ["from-raise"] = "boom",
    } do
      local ok, why = pcall(world.round_trip, widget("a", { size = 1, trick = trick }))
      assert.is_false(ok)
      assert.matches(message, tostring(why), 1, true)
    end
    assert.matches("conversion webhook for example.com/v1alpha1, Kind=Widget failed: default/a: widget.lua:%d+: boom",
      refused(widget("a", { width = 1, trick = "to-raise" }, Alpha.apiVersion)))
  end)

  it("end with the script that has them", function()
    world.restart()
    world.apply(widget("a", { shape = "round" }))
    world.expect(Widget, "a", { spec = { size = 3 } })
  end)
end)
