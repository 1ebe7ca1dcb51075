local decode_warnings = require "cluster.apiserver.verbs.decode_warnings"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local metadata = require "cluster.apiserver.metadata"
local names = require "cluster.names"
local syntax = require "cluster.apiserver.syntax"
local yaml = require "cluster.apiserver.verbs.yaml"


describe("names", function()
  for _, case in ipairs {
    { "label", "a-1", true }, { "label", "A", false }, { "label", "a.b", false }, { "label", "-a", false },
    { "label", "a-", false }, { "label", ("a"):rep(63), true }, { "label", ("a"):rep(64), false },
    { "label", "", false },
    { "label_1035", "a1", true }, { "label_1035", "1a", false }, { "subdomain", "a.b-c.d", true },
    { "subdomain", "a..b", false }, { "subdomain", "a.-b", false }, { "subdomain", "a-.b", false },
    { "subdomain", ("a"):rep(253), true }, { "subdomain", ("a"):rep(254), false }, { "qualified", "a", true },
    { "qualified", "example.com/Name_1.x", true }, { "qualified", "Example.com/a", false },
    { "qualified", "a/b/c", false },
    { "qualified", "/a", false }, { "qualified", "a/", false }, { "qualified", "-a", false },
    { "label_value", "", true },
    { "label_value", "a_B.c", true }, { "label_value", "a b", false }, { "label_value", ("a"):rep(64), false },
    { "path_segment", "a:b", true }, { "path_segment", "a/b", false }, { "path_segment", "..", false },
  } do
    local check, text, good = table.unpack(case)
    it(("%s: %q is %s"):format(check, text, good and "good" or "bad"), function()
      assert.equal(good, names[check](text) == nil)
      assert.equal(good, names[check](text) == nil, "the second time")
    end)
  end

  it("may be prefixes that end with a dash", function()
    assert.is_nil(names.name_is_subdomain("a-", true))
    assert.is_table(names.name_is_subdomain("a-", false))
  end)
end)


describe("metadata", function()
  local RES = { namespaced = true, builtin = true, group = "" }

  local function errors_of(meta)
    local list = {}
    for i, err in ipairs(metadata.validate(meta, RES, names.name_is_subdomain)) do
      list[i] = err.path .. ": " .. field.body(err)
    end
    return list
  end

  for _, case in ipairs {
    { { name = "a", namespace = "b" } },
    { { namespace = "b" }, "metadata.name: Required value: name or generateName is required" },
    { { name = "a" }, "metadata.namespace: Required value" },
    { { name = "a", namespace = "b", generation = -1 },
      "metadata.generation: Invalid value: -1: must be greater than or equal to 0" },
    { { name = "a", namespace = "b", finalizers = { "plain" } },
      'metadata.finalizers[0]: Invalid value: "plain": name is neither a standard finalizer name nor is it fully '
      .. "qualified" },
    { { name = "a", namespace = "b", finalizers = { "orphan", "foregroundDeletion" } },
      'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion '
      .. "cannot be both set" },
    { { name = "a", namespace = "b", annotations = { a = ("x"):rep(262145) } },
      "metadata.annotations: Too long: may not be more than 262144 bytes" },
  } do
    it("is checked: " .. (case[2] or "nothing to say"):sub(1, 60), function()
      assert.same({ case[2] }, errors_of(case[1]))
    end)
  end

  it("loses what says nothing", function()
    local object = { metadata = {
      name = "a", uid = "", labels = {}, finalizers = host.json.array {}, creationTimestamp = host.json.null,
      generation = 0,
      annotations = { a = "" },
    } }
    metadata.normalize(object)
    assert.same({ name = "a", annotations = { a = "" } }, object.metadata)
  end)

  it("keeps what may not change", function()
    local old = { name = "a", namespace = "b", uid = "u", resourceVersion = "1", creationTimestamp = "t" }
    local new = { name = "a", namespace = "b", uid = "v", resourceVersion = "1", creationTimestamp = "t" }
    local found = metadata.validate_update(new, old)
    assert.same({ "metadata.uid", 1 }, { found[1].path, #found })
    old.deletionTimestamp, new.deletionTimestamp, new.uid = "t", "t", "u"
    new.finalizers = { "example.com/new" }
    assert.equal('no new finalizers can be added if the object is being deleted, found new finalizers '
      .. '[]string{"example.com/new"}', metadata.validate_update(new, old)[1].detail)
  end)
end)


describe("what is wrong with a text", function()
  for text, want in pairs {
    [""] = "unexpected end of JSON input", ["{"] = "unexpected end of JSON input",
    ["{a"] = "invalid character 'a' looking for beginning of object key string",
    ['{"a"}'] = "invalid character '}' after object key", ["[1"] = "unexpected end of JSON input",
    ["[1 2]"] = "invalid character '2' after array element", ["nul"] = "unexpected end of JSON input",
    ["{} x"] = "invalid character 'x' after top-level value", ["\129"] = "invalid character '\\u0081' looking for "
      .. "beginning of value",
  } do
    it(("is told as JSON: %q"):format(text), function()
      assert.equal(want, syntax.describe(text))
    end)
  end

  for text, want in pairs {
    ["a: [b\nc: d"] = "yaml: line 1: did not find expected ',' or ']'",
    ["}"] = "yaml: did not find expected node content",
    ["a: b: c"] = "yaml: mapping values are not allowed in this context",
    ["a: b\n c: d\n- e"] = "yaml: line 2: mapping values are not allowed in this context",
  } do
    it(("is told as YAML: %q"):format(text), function()
      local value, why = yaml.decode(text)
      assert.same({ nil, want }, { value, why })
    end)
  end

  it("is found in the order of the text for built-in kinds, else by sort", function()
    local text = '{"z":1,"metadata":{"b":[{"x":1}],"name":"a","name":"a"},"a":"\\"{"}'
    local duplicates, unknown = { "metadata.name" }, { "a", "metadata.b[0].x", "z" }
    assert.same({ 'unknown field "z"', 'unknown field "metadata.b[0].x"', 'duplicate field "metadata.name"',
      'unknown field "a"' }, decode_warnings({ builtin = true }, text, duplicates, unknown))
    assert.same({ 'duplicate field "metadata.name"', 'unknown field "a"', 'unknown field "metadata.b[0].x"',
      'unknown field "z"' }, decode_warnings({}, text, duplicates, unknown))
    assert.same({}, decode_warnings({ builtin = true }, text, {}, {}))
  end)
end)
