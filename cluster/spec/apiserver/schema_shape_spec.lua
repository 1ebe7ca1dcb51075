local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"
local schema = require "cluster.apiserver.schema"

local null = host.json.null

local TEXT = { type = "string" }


local function with(property)
  return {
    type = "object",
    properties = {
      apiVersion = TEXT, kind = TEXT, metadata = builtin.of("", "v1", "ObjectMeta"),
      spec = { type = "object", properties = { a = property } },
    },
  }
end


describe("pruning", function()
  for _, case in ipairs {
    { "unknown fields", TEXT, { a = "x", b = 1 }, { a = "x" }, { "spec.b" } },
    { "unknown fields of items", { type = "array", items = { type = "object", properties = { p = TEXT } } },
      { a = { { p = "x", q = 1 } } }, { a = { { p = "x" } } }, { "spec.a[0].q" } },
    { "what stands where a scalar should", TEXT, { a = { b = { c = 1 } } }, { a = {} }, { "spec.a.b" } },
    { "nothing of maps", { type = "object", additionalProperties = TEXT }, { a = { b = "x" } },
      { a = { b = "x" } }, {} },
    { "nothing where it is to be preserved, but what is described there",
      { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true,
        properties = { known = { type = "object", properties = { x = TEXT } } } },
      { a = { known = { x = "y", z = 1 }, other = { b = 1 } } }, { a = { known = { x = "y" }, other = { b = 1 } } },
      { "spec.a.known.z" } },
    { "embedded resources after all else",
      { type = "object", ["x-kubernetes-embedded-resource"] = true, properties = { spec = { type = "object" } } },
      { a = { apiVersion = "v1", kind = "K", metadata = { name = "x", bad = 1 }, other = 1 } },
      { a = { apiVersion = "v1", kind = "K", metadata = { name = "x" } } }, { "spec.a.other", "spec.a.metadata.bad" } },
  } do
    it("takes out " .. case[1], function()
      local object = { metadata = { name = "x" }, spec = case[3] }
      assert.same(case[5], schema.prune(with(case[2]), object))
      assert.same(case[4], object.spec)
    end)
  end

  it("tells of metadata first", function()
    local object = { extra = 1, metadata = { name = "x", zz = 1 }, spec = { b = 1 } }
    assert.same({ "metadata.zz", "extra", "spec.b" }, schema.prune(with(TEXT), object))
  end)

  it("knows the built-in kinds", function()
    local object = { metadata = {}, spec = { containers = { { name = "a", nmae = "b" } }, x = 1 } }
    assert.same({ "spec.containers[0].nmae", "spec.x" }, schema.prune(builtin.of("", "v1", "Pod"), object))
  end)
end)


describe("defaulting", function()
  local inner = { type = "object", properties = { x = { type = "string", default = "y" } } }

  for _, case in ipairs {
    { "fills in what is not there", { type = "integer", default = 7 }, {}, { a = 7 } },
    { "leaves what is there", { type = "integer", default = 7 }, { a = 1 }, { a = 1 } },
    { "fills in false", { type = "boolean", default = false }, {}, { a = false } },
    { "replaces null", { type = "integer", default = 7 }, { a = null }, { a = 7 } },
    { "takes out null without a default", TEXT, { a = null }, {} },
    { "leaves null where it may be", { type = "string", nullable = true, default = "x" }, { a = null }, { a = null } },
    { "makes no objects", inner, {}, {} },
    { "goes into objects", inner, { a = {} }, { a = { x = "y" } } },
    { "goes into defaults", { type = "object", default = {}, properties = inner.properties }, {}, { a = { x = "y" } } },
    { "goes into items", { type = "array", items = inner }, { a = { {}, { x = "z" } } },
      { a = { { x = "y" }, { x = "z" } } } },
    { "takes null out of maps", { type = "object", additionalProperties = TEXT }, { a = { b = null, c = "x" } },
      { a = { c = "x" } } },
  } do
    it(case[1], function()
      local object = { spec = case[3] }
      schema.default(with(case[2]), object)
      assert.same(case[4], object.spec)
    end)
  end

  it("gives each object a default of its own", function()
    local of = { type = "object", properties = { spec = { type = "object", default = { list = { 1 } } } } }
    local first, second = {}, {}
    schema.default(of, first)
    schema.default(of, second)
    first.spec.list[1] = 2
    assert.same({ 1 }, second.spec.list)
  end)
end)


describe("metadata of custom kinds", function()
  for _, case in ipairs {
    { "no object", 5, "json: cannot unmarshal number into Go value of type v1.ObjectMeta" },
    { "no string", { name = 5 }, "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string" },
    { "no map", { labels = host.json.array {} },
      "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string" },
    { "no time", { creationTimestamp = "y" },
      'parsing time "y" as "2006-01-02T15:04:05Z07:00": cannot parse "y" as "2006"' },
  } do
    it("is refused when it is " .. case[1], function()
      assert.equal(case[3], schema.decode(with(TEXT), { metadata = case[2] }))
    end)
  end

  it("is refused in embedded resources", function()
    local embedded = { type = "object", ["x-kubernetes-embedded-resource"] = true }
    assert.equal("spec.a.apiVersion: Invalid value: 5: must be a string",
      schema.decode(with(embedded), { metadata = {}, spec = { a = { apiVersion = 5 } } }))
  end)
end)
