local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local validate = require "cluster.apiserver.schema.validate"

local null = host.json.null


-- Returns the errors of a value, each as "path: message".
local function told(schema, value, options)
  local list = {}
  for i, err in ipairs(validate(schema, value, options)) do
    list[i] = err.path .. ": " .. field.body(err)
  end
  return list
end


local function in_object(property)
  return { type = "object", properties = { a = property } }
end


describe("a schema", function()
  for _, case in ipairs {
    { "a string", { type = "string" }, 5, 'Invalid value: "integer": a in body must be of type string: "integer"' },
    { "null", { type = "string" }, null, 'Invalid value: "null": a in body must be of type string: "null"' },
    { "a format of another type", { type = "string", format = "date" }, 5,
      'Invalid value: "int64": a in body must be of type date: "int64"' },
    { "an integer or a string", { ["x-kubernetes-int-or-string"] = true }, true,
      'Invalid value: "boolean": a in body must be of type integer,string: "boolean"' },
    { "a long string", { type = "string", maxLength = 2 }, "abc", "Too long: may not be more than 2 bytes" },
    { "a short string", { type = "string", minLength = 2 }, "é",
      'Invalid value: "é": a in body should be at least 2 chars long' },
    { "a pattern", { type = "string", pattern = "^b" }, "ab", "Invalid value: \"ab\": a in body should match '^b'" },
    { "a choice", { type = "string", enum = { "x", "y" } }, "z",
      'Unsupported value: "z": supported values: "x", "y"' },
    { "a minimum", { type = "integer", minimum = 1 }, 0,
      "Invalid value: 0: a in body should be greater than or equal to 1" },
    { "an exclusive maximum", { type = "integer", maximum = 3, exclusiveMaximum = true }, 3,
      "Invalid value: 3: a in body should be less than 3" },
    { "a maximum with a fraction", { type = "number", maximum = 1.5 }, 1.75,
      "Invalid value: 1.75: a in body should be less than or equal to 1.5" },
    { "a multiple", { type = "integer", multipleOf = 3 }, 4, "Invalid value: 4: a in body should be a multiple of 3" },
    { "few items", { type = "array", minItems = 1, items = { type = "string" } }, host.json.array {},
      "Invalid value: 0: a in body should have at least 1 items" },
    { "many items", { type = "array", maxItems = 1, items = { type = "string" } }, { "a", "b" },
      "Too many: 2: must have at most 1 item" },
    { "few keys", { type = "object", minProperties = 1 }, {},
      "Invalid value: 0: a in body should have at least 1 properties" },
    { "many keys", { type = "object", maxProperties = 1 }, { b = 1, c = 2 }, "Too many: 2: must have at most 1 item" },
  } do
    it("refuses what breaks the rule of " .. case[1], function()
      assert.same({ "a: " .. case[4] }, told(in_object(case[2]), { a = case[3] }))
    end)
  end

  for _, case in ipairs {
    { "a whole number as an integer", { type = "integer" }, 2.0 },
    { "an integer as a number", { type = "number" }, 2 },
    { "null where it may be", { type = "string", nullable = true }, null },
    { "a format nobody knows", { type = "string", format = "whatever" }, "x" },
    { "a length in characters", { type = "string", maxLength = 2 }, "éé" },
    { "what it says nothing of", {}, { b = { 1, "x", true } } },
  } do
    it("takes " .. case[1], function()
      assert.same({}, told(in_object(case[2]), { a = case[3] }))
    end)
  end

  it("names the place of an item", function()
    local schema = in_object { type = "array", items = in_object { type = "string" } }
    assert.same({ 'a[1].a: Invalid value: "integer": a[1].a in body must be of type string: "integer"' },
      told(schema, { a = { { a = "x" }, { a = 1 } } }))
  end)

  it("tells several errors in the order of the keys", function()
    local schema = { type = "object", properties = {}, required = { "z" } }
    for _, name in ipairs { "d", "c", "b", "a" } do
      schema.properties[name] = { type = "string" }
    end
    local list = validate(schema, { a = 1, b = 1, c = 1, d = 1 })
    local paths = {}
    for i, err in ipairs(list) do
      paths[i] = err.path
    end
    assert.same({ "a", "b", "c", "d", "z" }, paths)
  end)

  it("says where the root of a part is", function()
    assert.same({ 'status.a: Invalid value: "integer": a in body must be of type string: "integer"' },
      told(in_object { type = "string" }, { a = 1 }, { root = "status" }))
  end)
end)


describe("alternatives of a schema", function()
  local either = {
    type = "object", properties = { kind = { type = "string" }, a = { type = "integer" }, b = { type = "integer" } },
    oneOf = {
      { required = { "kind", "a" }, properties = { kind = { enum = { "a" } }, a = { minimum = 1 } } },
      { required = { "kind", "b" }, properties = { kind = { enum = { "b" } }, b = { minimum = 1 } } },
    },
  }

  it("tell of the one that comes closest", function()
    assert.same({
      '<nil>: Invalid value: "": "" must validate one and only one schema (oneOf). Found none valid',
      "b: Invalid value: 0: b in body should be greater than or equal to 1",
    }, told(either, { kind = "b", b = 0 }))
  end)

  it("may not hold together", function()
    local schema = { oneOf = { { required = { "a" } }, { required = { "b" } } } }
    assert.same({ '<nil>: Invalid value: "": "" must validate one and only one schema (oneOf). '
      .. "Found 2 valid alternatives" }, told(schema, { a = 1, b = 1 }))
  end)

  it("are told once when all have to hold", function()
    local schema = { allOf = { { required = { "a" } }, { required = { "a" } } } }
    assert.same({ "a: Required value",
      '<nil>: Invalid value: "": "" must validate all the schemas (allOf). None validated' }, told(schema, {}))
  end)

  it("that must not hold have no errors of their own", function()
    assert.same({ '<nil>: Invalid value: "": "" must not validate the schema (not)' },
      told({ ["not"] = { required = { "a" } } }, { a = 1 }))
  end)
end)


describe("what was wrong before", function()
  local schema = {
    type = "object",
    properties = {
      a = { type = "integer" },
      list = {
        type = "array", ["x-kubernetes-list-type"] = "map", ["x-kubernetes-list-map-keys"] = { "name" },
        items = { type = "object", properties = { name = { type = "string" }, v = { type = "integer" } } },
      },
    },
  }

  it("may stay as it is", function()
    assert.same({}, told(schema, { a = "x", b = 1 }, { old = { a = "x" } }))
  end)

  it("may not change", function()
    assert.equal(1, #told(schema, { a = "y" }, { old = { a = "x" } }))
  end)

  it("is known by its keys in a list that is a map", function()
    local old = { list = { { name = "p", v = "x" } } }
    assert.same({}, told(schema, { list = { { name = "o" }, { name = "p", v = "x" } } }, { old = old }))
    assert.equal(1, #told(schema, { list = { { name = "q", v = "x" } } }, { old = old }))
  end)
end)
