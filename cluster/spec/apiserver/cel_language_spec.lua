--- The language: cluster/cel. Each table is expression → what it gives, as JSON; or the message of its error.
--- cel-spec's own cases run in `make conformance` (cluster/spec/cel/judge.lua).
local cel = require "cluster.cel"
local host = require "cluster.host"


local env = cel.env()


-- Returns the value of the expression, or { issues = message }, or { error = message }.
local function run(text, of)
  local program, issues = (of or env):compile(text)
  if not program then
    return { issues = tostring(issues) }
  end
  local value, err = program:run()
  if err then
    return { error = err.message }
  end
  return cel.to_json(value)
end


local function gives(cases)
  for text, expected in pairs(cases) do
    assert.same(expected, run(text), text)
  end
end


local function fails(cases)
  for text, message in pairs(cases) do
    assert.same({ error = message }, run(text), text)
  end
end


-- Expressions that are true.
local function holds(list)
  for _, text in ipairs(list) do
    assert.equal(true, run(text), text)
  end
end


describe("cel", function()
  it("reads literals of all forms", function()
    gives {
      ["0x1F"] = 31, ["-0x10"] = -16, ["-9223372036854775808"] = math.mininteger, ["1e3"] = 1000.0, [".5"] = 0.5,
      ["5u"] = 5, ["null"] = host.json.null, ["'a\\n\\x41\\u00e9\\U0001F600\\101'"] = "a\nAé😀A",
      ["r'a\\n'"] = "a\\n", ["'''it's\n\"two\" lines'''"] = "it's\n\"two\" lines", ['R"""\\"""'] = "\\",
      ["'a' // a comment"] = "a", ["size(b'\\xff\\377é')"] = 4,
    }
    holds { "18446744073709551615u > 9223372036854775807", "b'abc' == bytes('abc')" }
  end)

  it("computes with integers that do not wrap around", function()
    gives { ["7 / -2"] = -3, ["-7 % 3"] = -1, ["2 + 3 * 4 - 1"] = 13, ["-(3)"] = -3, ["--3"] = 3, ["10u / 4u"] = 2 }
    fails {
      ["9223372036854775807 + 1"] = "integer overflow",
      ["-9223372036854775808 - 1"] = "integer overflow",
      ["9223372036854775807 * 2"] = "integer overflow",
      ["-9223372036854775808 / -1"] = "integer overflow",
      ["-(-9223372036854775808)"] = "integer overflow",
      ["1 / 0"] = "division by zero",
      ["1u % 0u"] = "modulus by zero",
      ["0u - 1u"] = "unsigned integer overflow",
      ["18446744073709551615u + 1u"] = "unsigned integer overflow",
      ["int(9.3e18)"] = "integer overflow",
      ["uint(-1)"] = "unsigned integer overflow",
    }
  end)

  it("puts all numbers on one line", function()
    holds {
      "1 < 1.5", "2u > 1.5", "dyn(1) == 1.0", "dyn(1u) == 1", "dyn('1') != 1", "1 in [dyn(1.0)]", "dyn(2) in {2u: 'a'}",
      "{1: 'a'}[dyn(1u)] == 'a'", "0.0 / 0.0 != 0.0 / 0.0", "1.0 / 0.0 > 1e308", "-1 < 0u",
    }
  end)

  it("compares texts, bytes, bools, times, lists and maps", function()
    holds {
      "'a' < 'b'", "'a' < 'aa'", "false < true", "b'a' < b'b'", "duration('1s') < duration('1m')",
      "[1, 2] == [1, 2]", "[1] != [1, 2]", "{'a': 1} == {'a': 1}", "{'a': [1]} != {'a': [2]}", "null == null",
      "type(1) == int", "type([]) == list", "type(type(1)) == type", "type(null) == null_type",
      "type(timestamp('2020-01-01T00:00:00Z')) == google.protobuf.Timestamp",
    }
  end)

  it("lets && and || absorb what fails on either side", function()
    holds {
      "true || 1 / 0 > 0", "1 / 0 > 0 || true", "!(false && 1 / 0 > 0)", "!(1 / 0 > 0 && false)",
      "[1, 0].exists(x, 1 / x == 1)", "[0, 1].exists(x, 1 / x == 1)", "![0, 2].all(x, 1 / x == 1)",
    }
    fails {
      ["1 / 0 > 0 || false"] = "division by zero",
      ["true && 1 % 0 > 0"] = "modulus by zero",
      ["[0, 1].all(x, 1 / x == 1)"] = "division by zero",
      ["1 / 0 > 0 ? 1 : 2"] = "division by zero",
    }
  end)

  it("reads fields and elements", function()
    gives { ["{'a': {'b': 1}}.a.b"] = 1, ["{'a': 1}['a']"] = 1, ["[1, 2][1]"] = 2, ["{true: 1}[true]"] = 1 }
    holds { "has({'a': 1}.a)", "!has({'a': 1}.b)", "'a' in {'a': 1}", "!(3 in [1, 2])", "[[1], [2]][1][0] == 2" }
    fails {
      ["{'a': 1}.b"] = "no such key: b", ["[1][1]"] = "index out of bounds: 1", ["[1][-1]"] = "index out of bounds: -1",
      ["{1: 2}[3]"] = "no such key: 3",
    }
  end)

  it("loops over lists and maps", function()
    gives {
      ["[1, 2, 3].map(x, x * 2)"] = { 2, 4, 6 },
      ["[1, 2, 3].map(x, x > 1, x * 2)"] = { 4, 6 },
      ["[1, 2, 3].filter(x, x != 2)"] = { 1, 3 },
      ["{'b': 1, 'a': 2}.map(k, k)"] = { "b", "a" },
      ["[1, 2].transformList(i, v, i * 10 + v)"] = { 1, 12 },
      ["[1, 2].transformList(i, v, i > 0, v)"] = { 2 },
      ["{'a': 1, 'b': 2}.transformMap(k, v, v + 1)"] = { a = 2, b = 3 },
      ["{'a': 1, 'b': 2}.transformMap(k, v, k == 'b', v + 1)"] = { b = 3 },
      ["{'a': 'x'}.transformMapEntry(k, v, {v: k})"] = { x = "a" },
    }
    holds {
      "[1, 2].all(i, v, i < v)", "{'a': 1}.exists(k, v, k == 'a' && v == 1)", "[1, 2, 2].existsOne(i, v, v == 1)",
      "[1, 2].exists_one(x, x == 2)", "![2, 2].exists_one(x, x == 2)", "[].all(x, false)", "![].exists(x, true)",
      "[1, 2].all(x, [3, 4].all(y, x < y))", "[[1], [2]].map(x, x.map(x, x + 1)) == [[2], [3]]",
    }
    fails {
      ["{'a': 'x', 'b': 'x'}.transformMapEntry(k, v, {v: k})"] = "insert failed: key x already exists",
      ["[1, 0].map(x, 1 / x)"] = "division by zero",
    }
  end)

  it("has optional values", function()
    gives {
      ["{'a': 1}.?a.orValue(2)"] = 1, ["{'a': 1}.?b.orValue(2)"] = 2, ["[1][?3].orValue(7)"] = 7,
      ["{'a': {'b': 1}}.?a.?c.orValue(3)"] = 3, ["optional.of(1).optMap(x, x + 1).value()"] = 2,
      ["optional.none().or(optional.of(4)).value()"] = 4, ["[1, ?{'a': 2}.?a, ?{'a': 3}.?b]"] = { 1, 2 },
      ["{?'k': optional.of(1), ?'n': optional.none()}"] = { k = 1 },
      ["{'a': {'b': 1}}.?a.optFlatMap(x, x.?b).orValue(0)"] = 1, ["[5, 6].first().value()"] = 5,
      ["[].last().orValue(1)"] = 1, ["optional.unwrap([optional.of(1), optional.none()])"] = { 1 },
    }
    holds {
      "!optional.ofNonZeroValue('').hasValue()", "optional.of(null).hasValue()", "optional.none() == optional.none()",
      "optional.of(1) != optional.of(2)", "optional.of(1).or(optional.of(1 / 0)).value() == 1",
    }
    fails { ["optional.none().value()"] = "optional.none() dereference" }
  end)

  it("converts", function()
    gives {
      ["int('-12')"] = -12, ["int(3.9)"] = 3, ["int(-3.9)"] = -3, ["double('1.5')"] = 1.5, ["string(1.0)"] = "1",
      ["string(1e10)"] = "1e+10", ["string(0.0001)"] = "0.0001", ["string(123456.0)"] = "123456",
      ["string(18446744073709551615u)"] = "18446744073709551615", ["bool('T')"] = true, ["string(b'abc')"] = "abc",
      ["string(true)"] = "true", ["int(timestamp('1970-01-01T00:01:00Z'))"] = 60, ["size('é😀')"] = 2,
      ["string(duration('1h30m0.5s'))"] = "5400.5s", ["int(duration('1s'))"] = 1000000000,
    }
    fails {
      ["int('a')"] = "type conversion error from 'string' to 'int'",
      ["bool('yes')"] = "type conversion error from 'string' to 'bool'",
      ["string(b'\\xff')"] = "invalid UTF-8 in bytes, cannot convert to string",
      ["timestamp('x' + 'y')"] = "type conversion error from 'string' to 'google.protobuf.Timestamp'",
    }
  end)

  it("knows times and zones", function()
    holds {
      "timestamp('2024-02-29T23:59:59.5Z') + duration('500ms') == timestamp('2024-03-01T00:00:00Z')",
      "timestamp('2020-01-02T00:00:00Z') - timestamp('2020-01-01T00:00:00Z') == duration('24h')",
      "timestamp('2020-01-01T02:00:00+02:00') == timestamp('2020-01-01T00:00:00Z')",
      "string(timestamp('2020-01-01T00:00:00.120Z')) == '2020-01-01T00:00:00.12Z'",
      "duration('-1.5s').getMilliseconds() == -1500", "duration('90m').getHours() == 1",
    }
    gives {
      ["timestamp('2024-12-31T23:30:05.007Z').getFullYear()"] = 2024,
      ["timestamp('2024-12-31T23:30:05.007Z').getFullYear('+01:00')"] = 2025,
      ["timestamp('2024-12-31T23:30:05.007Z').getFullYear('Europe/Berlin')"] = 2025,
      ["timestamp('2050-07-01T00:00:00Z').getHours('America/New_York')"] = 20,
      ["timestamp('2024-12-31T23:30:05.007Z').getMonth()"] = 11,
      ["timestamp('2024-12-31T23:30:05.007Z').getDate()"] = 31,
      ["timestamp('2024-12-31T23:30:05.007Z').getDayOfMonth()"] = 30,
      ["timestamp('2024-12-31T23:30:05.007Z').getDayOfYear()"] = 365,
      ["timestamp('2024-12-31T23:30:05.007Z').getDayOfWeek()"] = 2,
      ["timestamp('2024-12-31T23:30:05.007Z').getMinutes('-02:30')"] = 0,
      ["timestamp('2024-12-31T23:30:05.007Z').getMilliseconds()"] = 7,
    }
    fails {
      ["timestamp('9999-12-31T23:59:59Z') + duration('1s')"] = "timestamp overflow",
      ["timestamp('2020-01-01T00:00:00Z').getHours('Nowhere/City')"] = "unknown time zone Nowhere/City",
    }
  end)

  it("matches texts", function()
    holds {
      "'hello'.contains('ell')", "'hello'.startsWith('he')", "'hello'.endsWith('lo')", "'abc'.matches('^a.c$')",
      "matches('abc', 'b')", "!'abc'.matches('^b')", "'a.b'.contains('.')",
    }
    assert.matches("^error parsing regexp: missing closing %)", run("'a'.matches('(' + 'b')").error)
  end)
end)


describe("cel's checker", function()
  local types = cel.types
  local object = types.object("thing", { name = { type = types.string }, size = { type = types.int } })
  local typed = cel.env { variables = { self = object, anything = types.dyn, ["a.b"] = types.int } }

  local function type_of(text)
    local program, issues = typed:compile(text)
    return program and types.format(program.type) or tostring(issues)
  end

  it("finds types", function()
    for text, type in pairs {
      ["self.name"] = "string", ["self.size + 1"] = "int", ["[self.name]"] = "list(string)",
      ["{'a': 1}"] = "map(string, int)",
      ["anything.b[0].c"] = "dyn", ["self.?name"] = "optional_type(string)", ["[]"] = "list(dyn)", ["a.b"] = "int",
      ["[1].map(x, [x])"] = "list(list(int))", ["true ? self : null"] = "thing", ["type(1)"] = "type(int)",
      ["ip('::1')"] = "net.IP", ["optional.none()"] = "optional_type(dyn)", ["anything + 1"] = "int",
    } do
      assert.equal(type, type_of(text), text)
    end
  end)

  it("says what is wrong, and where, as cel-go does", function()
    for text, message in pairs {
      ["self.foo"] = "ERROR: <input>:1:5: undefined field 'foo'\n | self.foo\n | ....^",
      ["foo"] = "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^",
      ["self.name + 1"] = "ERROR: <input>:1:11: found no matching overload for '_+_' applied to '(string, int)'\n"
        .. " | self.name + 1\n | ..........^",
      ["self.name.size(1)"] = "ERROR: <input>:1:15: found no matching overload for 'size' applied to 'string.(int)'\n"
        .. " | self.name.size(1)\n | ..............^",
      ["self.name == null"] = "ERROR: <input>:1:11: found no matching overload for '_==_' applied to "
        .. "'(string, null)'\n | self.name == null\n | ..........^",
      ["1 && true"] = "ERROR: <input>:1:1: expected type 'bool' but found 'int'\n | 1 && true\n | ^",
      ["[1, 'é', 2]"] = "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'é', 2]\n | ....^",
      ["self.size.x"] = "ERROR: <input>:1:10: type 'int' does not support field selection\n"
        .. " | self.size.x\n | .........^",
      ["self.size.all(x, true)"] = "ERROR: <input>:1:5: expression of type 'int' cannot be range of a comprehension "
        .. "(must be list, map, or dynamic)\n | self.size.all(x, true)\n | ....^",
      ["'é' + foo"] = "ERROR: <input>:1:7: undeclared reference to 'foo' (in container '')\n | 'é' + foo\n | .．....^",
      ["1 +\n  foo"] = "ERROR: <input>:2:3: undeclared reference to 'foo' (in container '')\n |   foo\n | ..^",
      ["has(self)"] = "ERROR: <input>:1:5: invalid argument to has() macro\n | has(self)\n | ....^",
      ["[1].map(1, 2)"] = "ERROR: <input>:1:9: argument is not an identifier\n | [1].map(1, 2)\n | ........^",
      ["for"] = "ERROR: <input>:1:1: reserved identifier: for\n | for\n | ^",
      ["99999999999999999999"] = "ERROR: <input>:1:1: invalid int literal\n | 99999999999999999999\n | ^",
      ["'\\ud800'"] = "ERROR: <input>:1:1: invalid unicode code point\n | '\\ud800'\n | ^",
      ["1 2 3"] = "ERROR: <input>:1:3: Syntax error: mismatched input '2' expecting <EOF>\n | 1 2 3\n | ..^",
      ["1 2"] = "ERROR: <input>:1:3: Syntax error: extraneous input '2' expecting <EOF>\n | 1 2\n | ..^",
      ["a.`b`"] = "ERROR: <input>:1:3: unsupported syntax: '`'\n | a.`b`\n | ..^",
      ["duration('1 day')"] = "ERROR: <input>:1:10: invalid duration argument\n | duration('1 day')\n | .........^",
      ["'a'.matches('[')"] = "ERROR: <input>:1:13: invalid matches argument\n | 'a'.matches('[')\n | ............^",
      ["'%d'.format(['a'])"] = "ERROR: <input>:1:14: error during formatting: decimal clause can only be used on "
        .. "integers, was given string\n | '%d'.format(['a'])\n | .............^",
    } do
      assert.equal(message, type_of(text), text)
    end
  end)
end)
