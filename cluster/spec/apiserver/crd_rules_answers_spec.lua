-- The server's answers about rules in CRDs: to rules that are wrong, and to objects that break them.
local host = require "cluster.host"
local hostlua = require "hostlua"
local testrules = require "testrules"
local testserver = require "testserver"

local array = host.json.array
local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
local THINGS = "/apis/e.com/v1/namespaces/default/things"
local AT = "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0]."


local function with_rules(schema, ...)
  local copy = host.json.copy(schema)
  copy["x-kubernetes-validations"] = array { ... }
  return copy
end


local INTEGER = { type = "integer" }
local TEXTS = { type = "array", maxItems = 100, items = { type = "string", maxLength = 100 } }


describe("a rule that is wrong", function()
  local world

  -- The cause that the CRD is refused for: its path and message; "" when it is accepted.
  local function refused(schema, ...)
    local code, answer = world:call("POST", CRDS .. "?dryRun=All",
      testrules.crd(testrules.schema(with_rules(schema, ...))))
    if code == 201 then
      return ""
    end
    assert.equal(422, code)
    assert.equal("Invalid", answer.reason)
    return answer.details.causes[1].field, answer.details.causes[1].message
  end

  setup(function() world = testserver.new() end)

  for _, case in ipairs {
    { "names what is not there", { type = "object" }, { rule = "self.a > 1" }, "rule", "undefined field 'a'" },
    { "does not end", INTEGER, { rule = "self >" }, "rule", "compilation failed: ERROR: <input>:1:7: Syntax error" },
    { "says a number", INTEGER, { rule = "self + 1" }, "rule", "cel expression must evaluate to a bool" },
    { "compares what cannot be compared", INTEGER, { rule = "self == 'a'" }, "rule", "found no matching overload" },
    { "says nothing", INTEGER, { rule = " " }, "rule", "Required value: rule is not specified" },
    { "has a message of two lines", INTEGER, { rule = "true", message = "a\nb" }, "message",
      'Invalid value: "a\\nb": must not contain line breaks' },
    { "has no message and two lines", INTEGER, { rule = "self\n> 1" }, "message",
      "Required value: message must be specified if rule contains line breaks" },
    { "has a message that is a number", INTEGER, { rule = "true", messageExpression = "self" }, "messageExpression",
      "messageExpression must evaluate to a string" },
    { "has an unknown reason", INTEGER, { rule = "true", reason = "Nope" }, "reason",
      'Unsupported value: "Nope": supported values: "FieldValueDuplicate"' },
    { "is about a field that is not there", INTEGER, { rule = "true", fieldPath = ".a" }, "fieldPath",
      'Invalid value: ".a": must be a valid path' },
    { "may lack an old value that it does not ask for", INTEGER, { rule = "self > 1", optionalOldSelf = true },
      "optionalOldSelf", "Invalid value: true: may not be set if oldSelf is not used in rule" },
    { "is too expensive", { type = "array", items = INTEGER },
      { rule = "self.all(x, self.all(y, self.all(z, x + y == z)))" }, "rule",
      "Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding "
        .. "maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)" },
    { "shows itself as Go does", INTEGER, { rule = "self && 1 < 2" }, "rule",
      'Invalid value: {"Rule":"self \\u0026\\u0026 1 \\u003c 2","Message":"","MessageExpression":"","Reason":null,'
        .. '"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:1: ' },
  } do
    it(case[1], function()
      local path, message = refused(case[2], case[3])
      assert.equal(AT .. case[4], path)
      assert.matches(case[5], message, 1, true)
    end)
  end

  it("speaks of the old value of an item that has no key", function()
    local items = with_rules(INTEGER, { rule = "self == oldSelf" })
    local path, message = refused({ type = "array", maxItems = 3, items = items })
    assert.equal((AT:gsub("%.x%-kubernetes", ".items%0")), path:gsub("rule$", ""))
    assert.equal('Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema '
      .. "within spec.validation.openAPIV3Schema.properties[spec].properties[x]", message)
  end)

  it("is accepted when it is cheap enough", function()
    assert.equal("", refused(TEXTS, { rule = "self.all(x, x.size() < 5)" }))
  end)

  it("is too expensive together with others", function()
    local properties = {}
    for i = 1, 16 do
      properties["l" .. i] = with_rules({ type = "array", maxItems = 1000, items = INTEGER },
        { rule = "self.all(x, self.exists(y, y == x + " .. i .. "))" })
    end
    local path, message = refused({ type = "object", properties = properties })
    assert.matches("properties%[l1%]%.x%-kubernetes%-validations%[0%]%.rule$", path)
    assert.equal("Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
      message)
  end)

  it("is not kept by a default", function()
    local path, message = refused({ type = "integer", default = 1 }, { rule = "self > 1", message = "too little" })
    assert.equal("spec.validation.openAPIV3Schema.properties[spec].properties[x].default", path)
    assert.equal("Invalid value: 1: too little", message)
  end)
end)


describe("an object that does not keep a rule", function()
  local function cause(schema, value, ...)
    local world = testserver.new()
    world:must("POST", CRDS, testrules.crd(testrules.schema(with_rules(schema, ...))))
    hostlua.poll()
    local code, answer = world:call("POST", THINGS,
      { apiVersion = "e.com/v1", kind = "Thing", metadata = { name = "t" }, spec = { x = value } })
    assert.equal(422, code)
    local causes = answer.details.causes
    return causes[#causes].field, causes[#causes].reason, causes[#causes].message
  end

  local function told(expected, ...)
    local path, reason, message = cause(...)
    assert.same(expected, { path, reason, message })
  end

  it("is told the message, what messageExpression says, or the rule", function()
    told({ "spec.x", "FieldValueInvalid", "Invalid value: 1: failed rule: self > 1" }, INTEGER, 1,
      { rule = "self > 1 " })
    told({ "spec.x", "FieldValueInvalid", "Invalid value: 1: more" }, INTEGER, 1,
      { rule = "self > 1", message = " more" })
    told({ "spec.x", "FieldValueInvalid", "Invalid value: 1: not 1" }, INTEGER, 1,
      { rule = "self > 1", message = "more", messageExpression = "self == 1 ? 'not 1' : 'more'" })
    told({ "spec.x", "FieldValueInvalid", "Invalid value: 0: more" }, INTEGER, 0,
      { rule = "self > 1", message = "more", messageExpression = "1 / self == 1 ? 'one' : 'less'" })
  end)

  it("is told the reason and the field that the rule gives", function()
    told({ "spec.x", "FieldValueForbidden", "Forbidden: no" }, INTEGER, 1,
      { rule = "self > 1", message = "no", reason = "FieldValueForbidden" })
    told({ "spec.x.a", "FieldValueRequired", "Required value: a" },
      { type = "object", properties = { a = INTEGER } }, {},
      { rule = "has(self.a)", message = "a", reason = "FieldValueRequired", fieldPath = ".a" })
    told({ "spec.x", "FieldValueDuplicate", "Duplicate value: 1" }, INTEGER, 1,
      { rule = "self > 1", reason = "FieldValueDuplicate" })
  end)

  it("is told what went wrong", function()
    told({ "spec.x", "FieldValueInvalid", 'Invalid value: "integer": division by zero evaluating rule: 1 / self > 1' },
      INTEGER, 0, { rule = "1 / self > 1" })
    told({ "spec.x", "FieldValueInvalid", 'Invalid value: "object": no such key: a evaluating rule: the a' },
      { type = "object", properties = { a = INTEGER } }, {}, { rule = "self.a > 1", message = "the a" })
  end)

  it("is not judged by rules when its schema says that it is wrong", function()
    told({ "<nil>", "FieldValueInvalid", "Invalid value: null: some validation rules were not checked because the "
      .. "object was invalid; correct the existing errors to complete validation" }, INTEGER, "x",
      { rule = "self > 1" })
  end)

  it("does not hold up the server", function()
    local values = array {}
    for i = 1, 1100 do
      values[i] = i
    end
    told({ "spec.x", "FieldValueInvalid", "Invalid value: \"array\": 'operation cancelled: actual cost limit "
      .. "exceeded': no further validation rules will be run due to call cost exceeds limit for rule: "
      .. "self.all(x, self.all(y, x + y > 0))" }, { type = "array", maxItems = 1100, items = INTEGER }, values,
      { rule = "self.all(x, self.all(y, x + y > 0))" }, { rule = "false" })
  end)
end)


describe("what was wrong before its rule", function()
  local world, object

  local function change(patch)
    return world:patch("merge", THINGS .. "/t", patch)
  end

  before_each(function()
    world = testserver.new()
    local open = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true }
    world:must("POST", CRDS, testrules.crd({ type = "object", properties = { spec = open } }))
    hostlua.poll()
    world:must("POST", THINGS, { apiVersion = "e.com/v1", kind = "Thing", metadata = { name = "t" },
      spec = { x = { a = 1 }, wrong = "text" } })
    local crd = world:must("GET", CRDS .. "/things.e.com")
    local made = testrules.schema { type = "object", properties = { a = with_rules(INTEGER, { rule = "self > 1" }) } }
    made.properties.spec.properties.y = INTEGER
    made.properties.spec.properties.wrong = with_rules(INTEGER, { rule = "self > 5" })
    crd.spec.versions[1].schema.openAPIV3Schema = made
    world:must("PUT", CRDS .. "/things.e.com", crd)
    hostlua.poll()
  end)

  it("may stay, with a warning", function()
    local code, _, reply = change { spec = { y = 1, wrong = host.json.null } }
    assert.equal(200, code)
    assert.equal('299 - "spec.x.a: Invalid value: 1: failed rule: self > 1"', reply.headers.Warning)
  end)

  it("may not change to what is wrong as well", function()
    local code
    code, object = change { spec = { x = { a = 0 }, wrong = host.json.null } }
    assert.equal(422, code)
    assert.equal("Invalid value: 0: failed rule: self > 1", object.details.causes[1].message)
  end)

  it("is no number, though its rule counts on one", function()
    local code
    code, object = change { spec = { y = 1 } }
    assert.equal(422, code)
    assert.equal('Invalid value: "integer": invalid data, expected int, got string evaluating rule: self > 5',
      object.details.causes[1].message)
  end)
end)


describe("the status of an object", function()
  it("is judged by rules, with the rest of it", function()
    local world = testserver.new()
    local schema = { type = "object", properties = {
      spec = { type = "object", properties = { a = INTEGER } },
      status = with_rules({ type = "object", properties = { n = INTEGER } },
        { rule = "!has(oldSelf.n) || self.n >= oldSelf.n" }),
    } }
    schema["x-kubernetes-validations"] = array { { rule = "!has(self.status) || self.status.n <= self.spec.a" } }
    world:must("POST", CRDS, testrules.crd(schema, { status = {} }))
    hostlua.poll()
    world:must("POST", THINGS, { apiVersion = "e.com/v1", kind = "Thing", metadata = { name = "t" }, spec = { a = 5 } })
    local function status(n)
      local code, answer = world:patch("merge", THINGS .. "/t/status", { status = { n = n } })
      return code == 200 and "" or answer.message
    end
    assert.equal("", status(3))
    assert.matches("status: Invalid value: failed rule: !has%(oldSelf%.n%)", status(2))
    assert.matches("<nil>: Invalid value: failed rule: !has%(self%.status%)", status(6))
    assert.equal("", status(5))
  end)
end)
