--- Random expressions: none may end in an error of ours, and what they give has the type that was found for them.
local cel = require "cluster.cel"
local functions = require("cluster.cel.libraries").functions()
local host = require "cluster.host"

local types = cel.types

local COUNT = 1500
local DEPTH = 4
local LIMIT = 100000

local LEAVES = {
  "1", "0", "-1", "9223372036854775807", "-9223372036854775808", "2u", "18446744073709551615u", "1.5", "'a'", "'é'",
  "b'a'", "true", "false", "null", "[]", "[1]", "['a', 'b']", "{}", "{'a': 1}", "{1: 2}", "self", "self.n", "self.s",
  "self.l", "self.m", "self.d", "self.at", "self.zz", "any", "any.a", "opt", "int", "duration('1s')", "'%s %d'",
  "timestamp('2020-01-01T00:00:00Z')", "optional.none()", "ip('::1')", "quantity('1')", "cidr('10.0.0.0/8')", "'('",
  "semver('1.0.0')", "url('https://a/')", "format.date()", "self.?s", "any.?a", "0.0 / 0.0", "1e308",
}
local OPERATORS = { "+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "in", "&&", "||" }
local LOOPS = {
  "all", "exists", "exists_one", "map", "filter", "transformList", "transformMap", "transformMapEntry", "optMap",
  "optFlatMap", "sortBy",
}

-- A generator of its own: the same expressions on every machine.
local seed = 20260401


local function random(n)
  seed = (seed * 6364136223846793005 + 1442695040888963407)
  return (seed >> 33) % n + 1
end


local function pick(list)
  return list[random(#list)]
end


local NAMES = {}
for name in pairs(functions) do
  if name:find "^%a" then
    NAMES[#NAMES + 1] = name
  end
end
table.sort(NAMES)


local expression


local function arguments(depth)
  local list = {}
  for i = 1, random(4) - 1 do
    list[i] = expression(depth)
  end
  return table.concat(list, ", ")
end


local MAKE = {
  function(depth)
    return ("(%s %s %s)"):format(expression(depth), pick(OPERATORS), expression(depth))
  end,
  function(depth)
    return ("%s(%s)"):format(pick { "!", "-", "has" }, expression(depth))
  end,
  function(depth)
    return expression(depth) .. "." .. pick { "a", "n", "?a", "?n" }
  end,
  function(depth)
    return ("%s[%s%s]"):format(expression(depth), pick { "", "?" }, expression(depth))
  end,
  function(depth)
    return ("(%s ? %s : %s)"):format(expression(depth), expression(depth), expression(depth))
  end,
  function(depth)
    return ("[%s, %s]"):format(expression(depth), expression(depth))
  end,
  function(depth)
    return ("{%s: %s}"):format(expression(depth), expression(depth))
  end,
  function(depth)
    local loop = pick(LOOPS)
    local two = loop:find "^transform" or random(5) == 1
    return ("%s.%s(v, %s%s)"):format(expression(depth), loop, two and "w, " or "",
      pick { "v", "v == v", "true", expression(depth) })
  end,
  function(depth)
    return ("%s(%s)"):format(pick(NAMES), arguments(depth))
  end,
  function(depth)
    return ("%s.%s(%s)"):format(expression(depth), pick(NAMES):gsub("^.*%.", ""), arguments(depth))
  end,
}


function expression(depth)
  if depth == 0 or random(5) == 1 then
    return pick(LEAVES)
  end
  return pick(MAKE)(depth - 1)
end


describe("a random expression", function()
  local self_type = types.object("self", {
    n = { type = types.int }, s = { type = types.string }, l = { type = types.list(types.string) },
    m = { type = types.map(types.string, types.int) }, d = { type = types.dyn }, at = { type = types.timestamp },
  })
  local variables = { self = self_type, any = types.dyn, opt = types.optional(types.string) }
  local object = {
    n = 5, s = "hé", l = host.json.array { "a", "b" }, m = { a = 1 }, at = "2024-01-01T00:00:00Z",
    d = { q = host.json.array { 1, 2.5, "z" } },
  }
  local bindings = {
    self = cel.from_json(object, self_type), any = cel.from_json { a = host.json.array { 1 } },
    opt = cel.values.optional "v",
  }

  local function check(env, text)
    local program, issues = env:compile(text)
    if not program then
      return assert.is_string(tostring(issues))
    end
    local value, err = program:run(bindings, LIMIT)
    if value == nil then
      assert.is_string(err.message, text)
      return assert.is_nil(err.bug, text)
    end
    cel.to_json(value)
    if not env.unchecked then
      assert.is_true(program.cost.min <= program.cost.max, text)
    end
    if not env.unchecked and program.type.kind ~= "dyn" and value ~= host.json.null then
      assert.equal(program.type.name, cel.values.type_name(value), text)
    end
  end

  it("ends well", function()
    local envs = { cel.env { variables = variables }, cel.env { variables = variables, unchecked = true } }
    for _ = 1, COUNT do
      check(pick(envs), expression(DEPTH))
    end
  end)
end)
