--- Values from JSON, costs and limits of the language: cluster/cel/{json,costs,estimate,frame}.lua.
local cel = require "cluster.cel"
local host = require "cluster.host"

local types = cel.types
local null = host.json.null


describe("cel.from_json", function()
  local port = types.object("port", { port = { type = types.int }, protocol = { type = types.string } })
  local self_type = types.object("self", {
    replicas = { type = types.int }, ratio = { type = types.double }, at = { type = types.timestamp },
    wait = { type = types.duration }, data = { type = types.bytes }, ports = { type = types.list(port) },
    labels = { type = types.map(types.string, types.string) }, any = { type = types.dyn },
    __namespace__ = { type = types.string, key = "namespace" },
  })
  local env = cel.env { variables = { self = self_type } }

  local function run(text, self)
    local program, issues = env:compile(text)
    assert(program, tostring(issues))
    local value, err = program:run { self = assert(cel.from_json(self, self_type)) }
    return value, err and err.message
  end

  local object = {
    replicas = 3, ratio = 2, at = "2024-01-02T03:04:05Z", wait = "1h", data = "YWJj", namespace = "prod",
    ports = host.json.array { { port = 80, protocol = "TCP" }, { port = 53, protocol = "UDP" } },
    labels = { a = "x", b = "y" }, any = { list = host.json.array { 1, "two", 3.5 } },
  }

  it("reads JSON as its type says", function()
    for _, text in ipairs {
      "self.replicas == 3", "self.ratio == 2.0", "self.at.getFullYear() == 2024", "self.wait == duration('60m')",
      "self.data == b'abc'", "self.ports[1].port == 53", "self.ports.exists(p, p.protocol == 'UDP')",
      "self.labels.all(k, self.labels[k] in ['x', 'y'])", "self.any.list[1] == 'two'", "self.any.list.size() == 3",
      "self.__namespace__ == 'prod'", "has(self.__namespace__)", "self == self", "self.ports[0] != self.ports[1]",
      "self.labels == {'a': 'x', 'b': 'y'}", "self.labels.transformList(k, v, k + v) == ['ax', 'by']",
    } do
      assert.equal(true, (run(text, object)), text)
    end
  end)

  it("has no field that is not there, or null", function()
    assert.equal(false, (run("has(self.replicas)", {})))
    assert.equal(false, (run("has(self.replicas)", { replicas = null })))
    assert.equal("no such key: replicas", select(2, run("self.replicas == 1", { replicas = null })))
    assert.equal("no such key: port", select(2, run("self.ports[0].port == 1", { ports = host.json.array { {} } })))
  end)

  it("says what does not fit its type", function()
    assert.equal("invalid data, expected int, got string", select(2, run("self.replicas == 1", { replicas = "1" })))
    assert.equal("invalid data, got null for schema with nullable=false",
      select(2, run("self.labels.a == ''", { labels = { a = null } })))
    local value, message = cel.from_json("a", types.list(types.int))
    assert.is_nil(value)
    assert.equal("invalid data, expected an array for the provided schema with type=array", message)
  end)

  it("takes null where the type does", function()
    local accepting = types.sized(types.string, 10)
    accepting.accepts_null = true
    assert.equal(null, (cel.from_json(null, accepting)))
  end)

  it("lets a schema say how lists are equal and joined", function()
    local set = types.list(types.int)
    set.equal = function(a, b)
      return #a.items == #b.items
    end
    set.join = function(a)
      return a
    end
    local lists = cel.env { variables = { a = set, b = set } }
    local bindings = {
      a = cel.from_json(host.json.array { 1, 2 }, set), b = cel.from_json(host.json.array { 3, 4 }, set),
    }
    assert.equal(true, (lists:compile("a == b"):run(bindings)))
    assert.equal(2, (lists:compile("size(a + b)"):run(bindings)))
  end)

  it("comes back as JSON", function()
    local mixed = cel.env { mixed_literals = true }
    local value = mixed:compile("{'a': [1, 2.5, 'x', null, timestamp('2020-01-01T00:00:00Z')], 'b': b'abc'}"):run()
    assert.same({ a = { 1, 2.5, "x", null, "2020-01-01T00:00:00Z" }, b = "YWJj" }, cel.to_json(value))
  end)
end)


describe("the cost of a run", function()
  local list = types.list(types.string)
  local env = cel.env { variables = { self = list } }

  local function cost_of(text)
    local self = cel.from_json(host.json.array { "a", "b" }, list)
    local _, err, cost = env:compile(text):run { self = self }
    assert.is_nil(err)
    return cost
  end

  it("is counted as cel-go counts it", function()
    for text, cost in pairs {
      ["1 + 2"] = 1, ["self"] = 1, ["self[0]"] = 2, ["self.size() > 1"] = 3, ["'a' in self"] = 3,
      ["'a' in ['a', 'b']"] = 0,
      ["[self]"] = 11, ["[1, 2]"] = 0, ["{'a': self}"] = 31, ["self.all(x, true)"] = 8, ["self.map(x, x)"] = 28,
      ["true || self.all(x, true)"] = 0, ["'abc'.startsWith('a')"] = 1, ["'12345678901'.contains('123')"] = 2,
    } do
      assert.equal(cost, cost_of(text), text)
    end
  end)

  it("ends a run that exceeds its limit", function()
    local value, err, cost = env:compile("[1, 2, 3].all(x, [1, 2, 3].all(y, x > y || true))"):run({}, 20)
    assert.is_nil(value)
    assert.same({ message = "operation cancelled: actual cost limit exceeded", exceeded = true }, err)
    assert.is_true(cost > 20)
  end)

  it("ends a call before it makes what is too large", function()
    for _, text in ipairs {
      "lists.range(1000000000).size() > 0", "lists.range(100000).distinct().size() > 0",
      "'" .. ("a"):rep(5000) .. "'.replace('', '" .. ("b"):rep(5000) .. "').size() > 0",
    } do
      local value, err = env:compile(text):run()
      assert.is_nil(value, text)
      assert.is_true(err.exceeded, text)
    end
  end)

  it("ends a run that compares too much", function()
    local long = host.json.array {}
    for i = 1, 3000 do
      long[i] = host.json.array { i }
    end
    local of = types.list(types.list(types.int))
    local nested = cel.env { variables = { self = of, other = of } }
    local bindings = { self = cel.from_json(long, of), other = cel.from_json(long, of) }
    local value, err = nested:compile("self.all(x, self == other)"):run(bindings)
    assert.is_nil(value)
    assert.equal("operation interrupted", err.message)
  end)

  it("ends a run that matches too much", function()
    local loop = "lists.range(100000).exists(x, ('%s' + string(x)).matches('(x+x+)+[yz]'))"
    local _, err = env:compile(loop:format(("x"):rep(400))):run {}
    assert.equal("operation cancelled: actual cost limit exceeded", err.message)
  end)

  it("needs no more for a pattern that is ambiguous", function()
    local value, err = env:compile(("'%s'.matches('(x+x+)+[yz]')"):format(("x"):rep(10000))):run {}
    assert.is_nil(err)
    assert.is_false(value)
  end)

  it("ends a run that writes a small value which is large to write", function()
    local text = "{'a': 1}" .. (".transformMap(k, v, [v, v])"):rep(30)
    local _, err = env:compile(("'%%s'.format([%s])"):format(text)):run()
    assert.equal("operation interrupted", err.message)
  end)
end)


describe("the estimate of costs", function()
  local text = types.sized(types.string, 40)
  local self_type = types.object("self", {
    name = { type = types.sized(types.string, 12) }, count = { type = types.int },
    list = { type = types.sized(types.list(text), 10) }, map = { type = types.sized(types.map(types.string, text), 5) },
  })
  local env = cel.env { variables = { self = self_type } }

  it("says how much a rule costs at most", function()
    for expression, cost in pairs {
      ["true"] = { min = 0, max = 0 },
      ["self.count > 5"] = { min = 3, max = 3 },
      ["self.name == 'abc'"] = { min = 3, max = 3 },
      ["has(self.name)"] = { min = 1, max = 1 },
      ["self.list.all(x, x.startsWith('ab'))"] = { min = 3, max = 53 },
      ["self.list.all(x, self.list.all(y, x == y))"] = { min = 3, max = 963 },
      ["self.map.all(k, self.map[k] != '')"] = { min = 3, max = 38 },
      ["self.name.contains(self.name)"] = { min = 4, max = 8 },
      ["self.count > 0 && self.list.size() > 0"] = { min = 3, max = 7 },
    } do
      assert.same(cost, assert(env:compile(expression)).cost, expression)
    end
  end)

  it("is without bounds where a size is", function()
    local program = cel.env { variables = { self = types.list(types.string) } }:compile "self.all(x, x == 'a')"
    assert.equal(math.maxinteger, program.cost.max)
  end)
end)


describe("a constant that cannot be made", function()
  it("is told when the expression is compiled", function()
    for text, message in pairs {
      ["1 + int('a') > 0"] = "type conversion error from 'string' to 'int'",
      ["'a'.find('a**') == ''"] = "error parsing regexp: invalid nested repetition operator: `**`",
    } do
      assert.equal(message, cel.env():compile(text).failed)
    end
    assert.is_nil(cel.env():compile("int('1') > 0").failed)
  end)
end)


describe("an expression that is too much", function()
  local env = cel.env()

  local function refused(text)
    local program, issues = env:compile(text)
    assert.is_nil(program)
    return tostring(issues)
  end

  it("is refused", function()
    local deep = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"
    assert.equal(deep, refused(("("):rep(300) .. "1" .. (")"):rep(300)))
    assert.equal(deep, refused("1" .. (" + 1"):rep(300)))
    assert.equal(deep, refused("a" .. (".b"):rep(300)))
    assert.equal(deep, refused(("true ? true : "):rep(300) .. "true"))
    assert.equal("ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000",
      refused(("1"):rep(100001)))
  end)

  it("has no type that doubles with each step", function()
    local text = refused("[1]" .. (".map(a, {a: a})"):rep(60))
    assert.matches("the type of this expression has more than 1000 parts", text, 1, true)
  end)

  it("lists a hundred mistakes and counts the rest", function()
    local text = refused("[" .. ("x,"):rep(150) .. "]")
    assert.matches("50 more errors were truncated$", text)
  end)
end)
