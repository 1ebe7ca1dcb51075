--- JSON as the server's Lua has it: cluster/host/lua_json.c.
local host = require "cluster.host"

local json = host.json


describe("host.json", function()
  it("has objects of any width, also in each other", function()
    local inner, outer = {}, {}
    for i = 1, 200000 do
      inner[("k%06d"):format(i)] = i
    end
    for i = 1, 3000 do
      outer[("k%04d"):format(i)] = i
    end
    outer.k1500 = inner
    local text = json.encode(outer)
    assert.same({ 1, 200000, 3000 }, { json.decode(text).k0001, json.decode(text).k1500.k200000,
      json.decode(text).k3000 })
    assert.truthy(text:find('^{"k0001":1,"k0002":2,') and text:find('"k1500":{"k000001":1,"k000002":2,', 1, true))
    assert.truthy(text:find(',"k199999":199999,"k200000":200000},"k1501":1501,', 1, true))
  end)

  describe("decode", function()
    local values = {
      { "null", json.null },
      { "true", true },
      { " false\n", false },
      { "0", 0 },
      { "-0", 0 },
      { "9223372036854775807", math.maxinteger },
      { "-9223372036854775808", math.mininteger },
      { "9223372036854775808", 9223372036854775808.0 },
      { "-9223372036854775809", -9223372036854775808.0 },
      { "1.0", 1.0 },
      { "1e3", 1000.0 },
      { "0.1", 0.1 },
      { "5e-324", 5e-324 },
      { '"\\u00e9\\ud83d\\ude00\\u0000"', "é😀\0" },
      { '"\\/\\b\\f\\n\\r\\t\\"\\\\"', "/\b\f\n\r\t\"\\" },
    }
    for _, case in ipairs(values) do
      it("reads " .. case[1], function()
        local value = json.decode(case[1])
        assert.equal(case[2], value)
        assert.equal(math.type(case[2]), math.type(value))
      end)
    end

    it("keeps [] and {} apart, and gives objects no metatable", function()
      local value = json.decode '{"list":[],"map":{},"full":[1],"deep":[[]]}'
      assert.is_true(json.is_array(value.list))
      assert.is_false(json.is_array(value.map))
      assert.is_true(json.is_array(value.deep[1]))
      assert.is_nil(getmetatable(value))
      assert.equal(getmetatable(value.list), getmetatable(value.full))
    end)

    it("lets the last of duplicate keys count", function()
      assert.same({ a = 2 }, json.decode '{"a":1,"a":2}')
    end)

    local bad = {
      [""] = "at byte", ["{"] = "at byte", ["[1,]"] = "at byte", ['{"a" 1}'] = "at byte", ["01"] = "at byte",
      ["nul"] = "at byte", ["1 2"] = "at byte", ["NaN"] = "at byte", ['"\\ud800"'] = "at byte", ['"\xff"'] = "at byte",
      ['"a'] = "at byte", ['{a:1}'] = "at byte", ["// x"] = "at byte", ["1e999"] = "too large",
    }
    for text, part in pairs(bad) do
      it(("refuses %q"):format(text), function()
        local value, message = json.decode(text)
        assert.is_nil(value)
        assert.is_truthy(message:find(part, 1, true), message)
      end)
    end

    it("goes 10000 levels deep and not one deeper", function()
      local function nested(n)
        return ("["):rep(n) .. ("]"):rep(n), ('{"a":'):rep(n) .. "1" .. ("}"):rep(n)
      end
      for _, text in ipairs { nested(10000) } do
        assert.equal(text, json.encode(assert(json.decode(text))))
      end
      for _, text in ipairs { nested(10001) } do
        local value, message = json.decode(text)
        assert.is_nil(value)
        assert.is_truthy(message:find "deep", message)
      end
    end)

    it("takes an object of 10000 keys and an array of 10000 elements", function()
      local object, list = {}, {}
      for i = 1, 10000 do
        object["key" .. i], list[i] = i, i
      end
      assert.same(object, json.decode(json.encode(object)))
      assert.same(list, json.decode(json.encode(list)))
    end)

    it("gives tables of its own each time", function()
      local text = '{"a":{}}'
      assert.not_equal(json.decode(text).a, json.decode(text).a)
    end)
  end)


  describe("decode_strict", function()
    local cases = {
      { '{"a":1,"b":{"a":1}}', {} },
      { '{"a":1,"a":2}', { "a" } },
      { '{"a":{"b":1,"c":2,"b":3}}', { "a.b" } },
      { '{"spec":{"containers":[{"name":"a"},{"name":"b","name":"c"}]}}', { "spec.containers[1].name" } },
      { '[[{"a":1,"a":1}]]', { "[0][0].a" } },
      { '{"a":{"x":1,"x":2},"a":{}}', { "a.x", "a" } },
    }
    for _, case in ipairs(cases) do
      it("finds what comes twice in " .. case[1], function()
        local value, duplicates = json.decode_strict(case[1])
        assert.same(json.decode(case[1]), value)
        assert.same(case[2], duplicates)
      end)
    end

    it("finds a key that was read long before", function()
      local members = {}
      for i = 1, 500 do
        members[i] = ('"key%d":%d'):format(i, i)
      end
      members[501] = '"key1":0'
      local _, duplicates = json.decode_strict("{" .. table.concat(members, ",") .. "}")
      assert.same({ "key1" }, duplicates)
    end)

    it("stops at 100", function()
      local _, duplicates = json.decode_strict("{" .. ('"a":1,'):rep(500) .. '"b":1}')
      assert.is_true(#duplicates <= 100)
    end)

    it("returns nil and the message for what is no JSON", function()
      local value, message = json.decode_strict '{"a":1,"a"}'
      assert.is_nil(value)
      assert.equal("string", type(message))
    end)
  end)


  describe("encode", function()
    -- As Go's encoding/json prints a float64.
    local numbers = {
      { 1.0, "1" }, { -0.0, "-0" }, { 0.1, "0.1" }, { 1 / 3, "0.3333333333333333" }, { 1e20, "100000000000000000000" },
      { 1e21, "1e+21" }, { 123456789012345680000.0, "123456789012345680000" }, { 1e-6, "0.000001" },
      { 1e-7, "1e-7" }, { 1.5e-9, "1.5e-9" }, { 5e-324, "5e-324" }, { -12.75, "-12.75" }, { 1e15, "1000000000000000" },
      { 1.7976931348623157e308, "1.7976931348623157e+308" }, { 0.00123, "0.00123" }, { -1e-10, "-1e-10" },
      { 0.30000000000000004, "0.30000000000000004" }, { 2.5, "2.5" }, { 2.0 ^ 63, "9223372036854776000" },
      { math.maxinteger, "9223372036854775807" }, { math.mininteger, "-9223372036854775808" }, { 1e100, "1e+100" },
    }
    for _, case in ipairs(numbers) do
      it("writes " .. case[2], function()
        assert.equal(case[2], json.encode(case[1]))
      end)
    end

    it("sorts keys bytewise", function()
      assert.equal('{"":0,"A":1,"a":2,"a.":3,"a/":4,"aa":5,"b":6,"é":7}',
        json.encode { b = 6, a = 2, A = 1, aa = 5, ["a/"] = 4, ["a."] = 3, [""] = 0, ["é"] = 7 })
    end)

    it("sorts many keys", function()
      local object, want = {}, {}
      for i = 1, 200 do
        object[("k%03d"):format(i)] = i
        want[i] = ('"k%03d":%d'):format(i, i)
      end
      assert.equal("{" .. table.concat(want, ",") .. "}", json.encode(object))
    end)

    it("writes what decode reads, as it was", function()
      local text = '{"a":[],"b":{},"c":[null,true,false,1,1.5,"x\\n\\"\\\\"],"d":{"e":[{"f":[]}]}}'
      assert.equal(text, json.encode(json.decode(text)))
    end)

    it("takes a marked table for an array, and {} for an object", function()
      assert.equal("[]", json.encode(json.array {}))
      assert.equal("[]", json.encode(json.array()))
      assert.equal("{}", json.encode {})
      assert.equal("[1,2]", json.encode { 1, 2 })
    end)

    local cyclic = {}
    cyclic.a = { cyclic }
    local bad = {
      { "a function", { a = { print } }, "a[0]: a function" },
      { "a key that is no string", { a = { [true] = 1 } }, "a: an object with a key that is no string" },
      { "a hole", { a = { 1, nil, 3 } }, "a: an array with holes" },
      { "an array with a name in it", { 1, x = 2 }, "an array with holes" },
      { "infinity", { spec = { x = 1 / 0 } }, "spec.x: a number that is infinite" },
      { "not a number", { 0 / 0 }, "[0]: a number that is infinite" },
      { "a table in itself", cyclic, "contains itself" },
      { "a coroutine", { a = coroutine.create(print) }, "a: no value of JSON" },
    }
    for _, case in ipairs(bad) do
      it("raises for " .. case[1], function()
        local good, message = pcall(json.encode, case[2])
        assert.is_false(good)
        assert.is_truthy(message:find(case[3], 1, true), message)
      end)
    end

    it("works again after it has raised", function()
      pcall(json.encode, cyclic)
      assert.equal('{"a":1}', json.encode { a = 1 })
    end)
  end)


  it("copies deep, with the marks", function()
    local value = json.decode '{"a":[{"b":[]},{}],"c":null}'
    local copy = json.copy(value)
    assert.equal(json.encode(value), json.encode(copy))
    assert.not_equal(value.a, copy.a)
    assert.not_equal(value.a[1].b, copy.a[1].b)
    copy.a[1].b[1] = 1
    assert.equal(0, #value.a[1].b)
    assert.equal("x", json.copy "x")
  end)


  local pairs_of = {
    { "1", "1.0", true }, { "[]", "{}", false }, { "[]", "[]", true }, { "{}", "{}", true }, { "null", "null", true },
    { "null", "false", false }, { '{"a":1}', '{"a":1,"b":2}', false }, { '{"a":1,"b":2}', '{"b":2,"a":1}', true },
    { "[1,2]", "[2,1]", false }, { "[[[{}]]]", "[[[{}]]]", true }, { "[[[{}]]]", "[[[[]]]]", false },
    { '"1"', "1", false }, { '{"a":{"b":[1,{"c":null}]}}', '{"a":{"b":[1,{"c":null}]}}', true },
    { '{"a":{"b":[1,{"c":null}]},"d":1}', '{"a":{"b":[1,{"c":0}]},"d":1}', false }, { "[1]", "[1,2]", false },
  }
  for _, case in ipairs(pairs_of) do
    it(("says that %s and %s are %s"):format(case[1], case[2], case[3] and "equal" or "different"), function()
      local a, b = json.decode(case[1]), json.decode(case[2])
      assert.equal(case[3], json.equal(a, b))
      assert.equal(case[3], json.equal(b, a))
    end)
  end

  it("tells arrays", function()
    assert.is_true(json.is_array { 1 })
    assert.is_true(json.is_array(json.array()))
    assert.is_false(json.is_array {})
    assert.is_false(json.is_array "x")
    assert.is_false(json.is_array(nil))
  end)
end)
