-- The parts of rules in CRDs: names, paths, comparisons with an old value, costs.
local correlation = require "cluster.apiserver.crd.rules.correlation"
local cost = require "cluster.apiserver.crd.rules.cost"
local escape = require "cluster.apiserver.crd.rules.escape"
local follow = require("cluster.apiserver.crd.rules.path").follow
local host = require "cluster.host"
local validator = require "cluster.apiserver.crd.rules.validator"

local array = host.json.array


describe("names of properties in rules", function()
  for _, case in ipairs {
    { "a", "a" }, { "_a9", "_a9" }, { "a-b", "a__dash__b" }, { "a.b/c", "a__dot__b__slash__c" },
    { "a__b", "a__underscores__b" }, { "___", "__underscores___" }, { "namespace", "__namespace__" },
    { "in", "__in__" }, { "int", "int" }, { "", nil }, { "9", nil }, { "a b", nil }, { "ä", nil }, { "a\0b", nil },
  } do
    it(("are identifiers: %q"):format(case[1]), function()
      assert.equal(case[2], escape(case[1]))
    end)
  end
end)


describe("a path to a field", function()
  local schema = { properties = {
    spec = { properties = { ["a.b"] = { type = "string" }, m = { additionalProperties = { type = "integer" } } } },
    ["it's"] = { type = "boolean" },
  } }

  for _, case in ipairs {
    { ".spec.m.k", "spec.m[k]", "integer" }, { ".spec['a.b']", "spec.a.b", "string" },
    { "['spec']['m']['x/y']", "spec.m[x/y]", "integer" }, { [=[['it\'s']]=], "it's", "boolean" },
  } do
    it("leads there: " .. case[1], function()
      local path, found = follow(case[1], schema)
      assert.equal(case[2], path)
      assert.equal(case[3], found.type)
    end)
  end

  for _, case in ipairs {
    { "spec", "expected [ or . but got: spec" }, { ".spec.", "unexpected end of JSON path" },
    { ".nope", "does not refer to a valid field" }, { ".spec.m.k.x", "does not refer to a valid field" },
    { ".spec['a", "expected single quoted string but got 'a" }, { ".spec['a.b'", "unexpected end of JSON path" },
    { ".spec[0]", "expected single quoted string but got 0" }, { ".spec['a.b'x", "expected ] but got x" },
    { [=[['\q']]=], [[invalid string literal: invalid escape char \q]] },
  } do
    it("leads nowhere: " .. case[1], function()
      local path, why = follow(case[1], schema)
      assert.is_nil(path)
      assert.equal(case[2], why)
    end)
  end

  it("has no brackets where they are refused", function()
    assert.equal("array notation is not allowed", select(2, follow("['spec']", schema, true)))
  end)
end)


describe("what is as it was", function()
  local INTEGER = { type = "integer" }
  local item = { type = "object", properties = { n = { type = "string" }, v = INTEGER } }
  local schema = { type = "object", properties = {
    a = INTEGER, b = INTEGER,
    named = { type = "array", ["x-kubernetes-list-type"] = "map", ["x-kubernetes-list-map-keys"] = array { "n" },
      items = item },
    list = { type = "array", items = item }, map = { type = "object", additionalProperties = INTEGER },
    free = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true },
  } }

  local function unchanged(new, old, ...)
    local way = correlation.root(new, old, schema)
    for _, step in ipairs { ... } do
      way = type(step) == "number" and way:index(step) or way:key(step)
    end
    return way:is_unchanged()
  end

  it("is compared value by value", function()
    assert.is_true(unchanged({ a = 1, b = 2 }, { a = 1, b = 3 }, "a"))
    assert.is_false(unchanged({ a = 1, b = 2 }, { a = 1, b = 3 }, "b"))
    assert.is_false(unchanged({ a = 1 }, { a = 1.0 }, "a"))
    assert.is_false(unchanged({ a = 1 }, {}, "a"))
    assert.is_false(unchanged({ a = 1 }, nil, "a"))
  end)

  it("is found by its key in a list of type map, wherever it stands", function()
    local old = { named = array { { n = "x", v = 1 }, { n = "y", v = 2 } } }
    local new = { named = array { { n = "y", v = 2 }, { n = "x", v = 3 } } }
    assert.is_true(unchanged(new, old, "named", 1))
    assert.is_false(unchanged(new, old, "named", 2, "v"))
    assert.is_true(unchanged({ named = array { old.named[2], old.named[1] } }, old, "named"))
  end)

  it("is told by the list itself where items have no key", function()
    local old = { list = array { { v = 1 } } }
    assert.is_true(unchanged({ list = array { { v = 1 } } }, old, "list", 1, "v"))
    assert.is_false(unchanged({ list = array { { v = 1 }, { v = 2 } } }, old, "list", 1, "v"))
  end)

  it("is nothing that no schema describes", function()
    assert.is_false(unchanged({ free = { x = 1 } }, { free = { x = 1 } }, "free"))
    assert.is_true(unchanged({ free = {} }, { free = {} }, "free"))
  end)

  it("is not what an object calls itself", function()
    local root = { type = "object", properties = { kind = { type = "string" }, map = schema.properties.map } }
    assert.is_false(correlation.root({ kind = "A" }, { kind = "A" }, root):key("kind"):is_unchanged())
    local way = correlation.root({ map = { kind = 1 } }, { map = { kind = 1 } }, root):key("map"):key("kind")
    assert.is_true(way:is_unchanged())
  end)
end)


describe("costs of rules", function()
  it("are in bounds, or too high by a factor", function()
    local function told(sum)
      local err = cost.check_one("estimated rule cost", sum, "p")
      return err and err.detail:match "factor of (%S+)"
    end
    assert.is_nil(told(1e7))
    assert.equal("1.000000x", told(1e7 + 1))
    assert.equal("1.499000x", told(1.499e7))
    assert.equal("1.5x", told(1.5e7))
    assert.equal("99.9x", told(9.99e8))
    assert.equal("more", told(1.01e9))
    assert.equal("more", told(2.0 ^ 80))
  end)

  it("are added up, and the four highest are named", function()
    local total, errors = cost.total(), {}
    for i, sum in ipairs { 2e7, 5e5, 4e7, 3e7, 2e7, 1e7 } do
      cost.add(total, "p" .. i, sum)
    end
    cost.check_all(total, "all", errors)
    local paths = {}
    for i, err in ipairs(errors) do
      paths[i] = err.path
    end
    assert.same({ "p3", "p4", "p1", "p5", "all" }, paths)
    assert.matches("exceeds budget by factor of 1.205000x", errors[5].detail, 1, true)
  end)

  it("count for as many values as the schemas around them allow", function()
    assert.equal(1.0, cost.factor { type = "object" })
    assert.equal(3.0, cost.factor { type = "object", additionalProperties = {}, maxProperties = 3 })
    assert.equal(0.0, cost.factor { type = "array", maxItems = -3 })
    assert.is_nil(cost.factor { type = "array" })
    local compiled = { cardinality = 7, program = { cost = { min = 1, max = 10 } } }
    assert.equal(30.0, cost.of_rule(compiled, 3.0))
    assert.equal(70.0, cost.of_rule(compiled, nil))
  end)
end)


describe("a judgement", function()
  local item = { type = "integer", ["x-kubernetes-validations"] = array { { rule = "self > 1 && self < 3" } } }
  local judge = validator.compile { type = "array", items = item }

  it("tells of each value that does not keep a rule", function()
    local errors = judge(array { 2, 3, 2, 1 }, { root = "list" })
    assert.equal(2, #errors)
    assert.equal("list[1]", errors[1].path)
    assert.equal("list[3]", errors[2].path)
  end)

  it("ends when all is spent", function()
    local errors, _, left = judge(array { 2, 2, 2, 2 }, { root = "list", budget = 9 })
    assert.equal("validation failed due to running out of cost budget, no further validation rules will be run",
      errors[1].detail)
    assert.equal("list[2]", errors[1].path)
    assert.equal(1, #errors)
    assert.is_true(left < 0)
  end)

  it("is none without rules", function()
    assert.is_nil(validator.compile { type = "array", items = { type = "integer" } })
  end)
end)
