local sandbox = require "sandbox"

-- Runs an expression, and returns its JSON.
local function json_of(expression)
  return (sandbox.run('return require("cjson").encode(' .. expression .. ")"))
end


-- Runs assertions on `at`, the object that a reconcile was given.
local function reconcile(statements)
  local came = sandbox.reconcile(statements)
  assert.equal("ok", came.outcome, came.message)
end


local function refusal(call)
  return (sandbox.refusal(sandbox.run, "return " .. call):gsub("^.-: ", "", 1))
end


describe("moonloop.copy", function()
  it("copies all levels, and keeps lists, null and numbers", function()
    assert.equal('{"a":[],"b":null,"c":[1,{"d":1.5}],"e":true,"f":9007199254740993}', json_of [[moonloop.copy {
      a = moonloop.array(), b = moonloop.null, c = { 1, { d = 1.5 } }, e = true, f = 9007199254740993 }]])
    assert.is_true(sandbox.run [[
      local inner = { 1 }
      local given = { a = inner, kind = Pod }
      local copy = moonloop.copy(given)
      copy.a[1] = 2
      return inner[1] == 1 and copy.a ~= inner and copy.kind == Pod and moonloop.copy "x" == "x"
    ]])
  end)

  it("makes a plain table of an object that was read, of which each field may be changed", function()
    reconcile [[
      local copy = moonloop.copy(at)
      assert(copy.metadata.name == at.metadata.name and moonloop.equal(copy, at))
      assert(copy.none == nil and copy.metadata.labels == nil) -- a plain table has no fields that are absent
      copy.metadata.name, copy.metadata.labels, copy.spec = "other", { a = "b" }, { x = 1 }
      assert(at.metadata.name ~= "other" and at.metadata.labels.a == nil and not moonloop.equal(copy, at))
      copy.status = { phase = "New" }
      assert(at.status.phase ~= "New")
    ]]
  end)

  it("leaves metatables behind, and calls nothing of them", function()
    assert.is_true(sandbox.run [[
      local hostile = setmetatable({ a = 1 }, { __index = error, __pairs = error, __len = error, __newindex = error })
      local copy = moonloop.copy(hostile)
      return getmetatable(copy) == nil and copy.a == 1 and copy.b == nil
    ]])
  end)

  it("refuses a table inside itself, and more than it may hold", function()
    assert.equal("moonloop.copy(value): more than 128 levels of tables; is one of them inside itself?",
      refusal "(function() local t = {} t.t = t return moonloop.copy(t) end)()")
    assert.equal("moonloop.copy(value): more than 50000 values",
      refusal "(function() local t = {} for i = 1, 20 do t = { t, t } end return moonloop.copy(t) end)()")
    assert.is_true(sandbox.run [[
      local t, at = {}, nil
      at = t
      for _ = 1, 127 do at.t = {} at = at.t end
      return type(moonloop.copy(t)) == "table"
    ]])
  end)
end)


describe("moonloop.merge", function()
  local function merged(a, b)
    return json_of(("moonloop.merge(%s, %s)"):format(a, b))
  end

  it("merges maps, lets b win, and changes neither", function()
    assert.equal('{"a":1,"b":{"c":3,"d":4,"e":5},"f":[9]}',
      merged("{ a = 1, b = { c = 2, d = 4 }, f = { 1, 2 } }", "{ b = { c = 3, e = 5 }, f = { 9 } }"))
    assert.is_true(sandbox.run [[
      local a, b = { x = { y = 1 }, l = { { z = 1 } } }, { x = { w = { v = 1 } } }
      local m = moonloop.merge(a, b)
      m.x.y, m.x.w.v, m.l[1].z, m.x.n = 2, 2, 2, 2
      return a.x.y == 1 and b.x.w.v == 1 and a.l[1].z == 1 and a.x.n == nil
    ]])
  end)

  it("removes the fields that are null", function()
    assert.equal('{"b":{}}', merged("{ a = 1, b = { c = 2 } }", "{ a = moonloop.null, b = { c = moonloop.null } }"))
    assert.equal('{"a":{"b":1}}', merged("{}", "{ a = { b = 1, c = moonloop.null } }"))
  end)

  it("merges the lists of Kubernetes by their keys", function()
    assert.equal('{"containers":[{"env":[{"name":"A","value":"2"},{"name":"B","value":"1"},{"name":"C","value":"3"}],'
      .. '"image":"x","name":"a"},{"name":"b"},{"name":"c"}]}', merged(
      "{ containers = { { name = 'a', image = 'x', "
        .. "env = { { name = 'A', value = '1' }, { name = 'B', value = '1' } } }, { name = 'b' } } }",
      "{ containers = { { name = 'c' }, { name = 'a', env = { { name = 'A', value = '2' }, "
        .. "{ name = 'C', value = '3' } } } } }"))
    assert.equal('{"volumeMounts":[{"mountPath":"/a","name":"w"},{"mountPath":"/b","name":"v"}]}', merged(
      "{ volumeMounts = { { mountPath = '/a', name = 'v' } } }",
      "{ volumeMounts = { { mountPath = '/b', name = 'v' }, { mountPath = '/a', name = 'w' } } }"))
    assert.equal('{"finalizers":["a","b","c"]}', merged(
      "{ finalizers = { 'a', 'b' } }", "{ finalizers = { 'b', 'c' } }"))
  end)

  it("tells ports apart by their protocol as well, and those of a Service by their port", function()
    assert.equal('{"ports":[{"containerPort":53,"name":"dns"},{"containerPort":53,"protocol":"UDP"}]}', merged(
      "{ ports = { { containerPort = 53 }, { containerPort = 53, protocol = 'UDP' } } }",
      "{ ports = { { containerPort = 53, protocol = 'TCP', name = 'dns' } } }"):gsub(',"protocol":"TCP"', ""))
    assert.equal('{"spec":{"ports":[{"port":80,"targetPort":81},{"port":90}]}}', merged(
      "{ spec = { ports = { { port = 80 } } } }",
      "{ spec = { ports = { { port = 80, targetPort = 81 }, { port = 90 } } } }"))
  end)

  it("replaces all other lists", function()
    for field, items in pairs {
      args = { "{ 'a', 'b' }", "{ 'c' }", '["c"]' },
      tolerations = { "{ { key = 'a' } }", "{ { key = 'a', operator = 'Exists' } }",
        '[{"key":"a","operator":"Exists"}]' },
      rules = { "{ { name = 'a', x = 1 } }", "{ { name = 'a' } }", '[{"name":"a"}]' },
      containers = { "{ { name = 'a', image = 'x' } }", "{ { name = 'a' }, { image = 'y' } }",
        '[{"name":"a"},{"image":"y"}]' },
      volumes = { "{ { name = 'a' } }", "{ 'text' }", '["text"]' },
    } do
      assert.equal(('{"%s":%s}'):format(field, items[3]),
        merged(("{ %s = %s }"):format(field, items[1]), ("{ %s = %s }"):format(field, items[2])))
    end
    assert.equal('{"ingress":[{"ports":[{"port":443}]}]}', merged( -- of a NetworkPolicy: a union would open more
      "{ ingress = { { ports = { { port = 80 } } } } }", "{ ingress = { { ports = { { port = 443 } } } } }"))
    assert.equal('{"args":[]}', merged("{ args = { 'a' } }", "{ args = {} }"))
    assert.equal('{"env":[{"name":"A"}]}', merged("{ env = { { name = 'A' } } }", "{ env = {} }"))
    assert.equal('{"a":{"b":1}}', merged("{ a = { 1 } }", "{ a = { b = 1 } }"))
  end)

  it("takes an item out of a list, and replaces a list or a map, by $patch", function()
    assert.equal('{"containers":[{"name":"b"}]}', merged("{ containers = { { name = 'a' }, { name = 'b' } } }",
      "{ containers = { { name = 'a', ['$patch'] = 'delete' }, { name = 'none', ['$patch'] = 'delete' } } }"))
    assert.equal('{"containers":[{"name":"c"}]}', merged("{ containers = { { name = 'a' } } }",
      "{ containers = { { ['$patch'] = 'replace' }, { name = 'c' } } }"))
    assert.equal('{"limits":{"cpu":"1"}}', merged("{ limits = { memory = '1Gi' } }",
      "{ limits = { cpu = '1', ['$patch'] = 'replace' } }"))
  end)

  it("merges over an object that was read", function()
    reconcile [[
      local other = moonloop.merge(at, { metadata = { name = "other" }, spec = { x = 1 } })
      assert(other.metadata.name == "other" and other.spec.x == 1 and at.metadata.name ~= "other")
      assert(other.metadata.namespace == at.metadata.namespace)
    ]]
  end)

  it("refuses whatever is no object, other directives, and tables inside themselves", function()
    for call, why in pairs {
      ["moonloop.merge(nil, {})"] = "moonloop.merge(a, b): a: expected a table, got nil",
      ["moonloop.merge({}, 'x')"] = "moonloop.merge(a, b): b: expected a table, got a string",
      ["moonloop.merge({}, Pod)"] = "moonloop.merge(a, b): b: expected a table, got the kind v1/Pod",
      ["moonloop.merge({}, { a = { ['$patch'] = 'delete' } })"] =
        "moonloop.merge(a, b): \"$patch\": expected \"replace\" in a map, got 'delete'",
      ["moonloop.merge({}, { env = { { name = 'A', ['$patch'] = 'merge' } } })"] =
        "moonloop.merge(a, b): \"$patch\": expected \"delete\" in an item of a list, got 'merge'",
      ["moonloop.merge({}, { env = { { name = 'A', ['$patch'] = 'replace' } } })"] =
        'moonloop.merge(a, b): an item with ["$patch"] = "replace" replaces the whole list, and has no other field',
      ["(function() local t = {} t.t = t return moonloop.merge({}, t) end)()"] =
        "moonloop.merge(a, b): more than 128 levels of tables; is one of them inside itself?",
    } do
      assert.equal(why, refusal(call))
    end
  end)
end)


describe("moonloop.equal", function()
  local function is_equal(a, b)
    local one = sandbox.run(("return moonloop.equal(%s, %s)"):format(a, b))
    assert.equal(one, (sandbox.run(("return moonloop.equal(%s, %s)"):format(b, a))))
    return one
  end

  it("compares tables by their contents", function()
    for _, case in ipairs {
      { "{ a = { 1, { b = 2 } } }", "{ a = { 1, { b = 2 } } }", true }, { "{ a = 1 }", "{ a = 1, b = 1 }", false },
      { "{ 1, 2 }", "{ 2, 1 }", false }, { "{ 1 }", "{ 1, 2 }", false }, { "{}", "moonloop.array()", true },
      { "{ a = moonloop.null }", "{}", false }, { "{ a = moonloop.null }", "{ a = moonloop.null }", true },
      { "{}", "nil", false }, { "1", "1.0", true }, { "true", "'true'", false }, { "Pod", "Pod", true },
      { "Pod", "At", false }, { "0 / 0", "'1'", false }, { "1 / 0", "'1'", false }, { "nil", "nil", true },
      { "{ a = {} }", "{ a = 'x' }", false }, { "{ [1] = 'a' }", "{ ['1'] = 'a' }", false },
    } do
      assert.equal(case[3], is_equal(case[1], case[2]), case[1] .. " " .. case[2])
    end
  end)

  it("compares amounts, and numbers with their texts, by value", function()
    for _, case in ipairs {
      { "'1000m'", "'1'", true }, { "'1Gi'", "'1024Mi'", true }, { "'1Gi'", "'1G'", false },
      { "{ limits = { cpu = 1 } }", "{ limits = { cpu = '1000m' } }", true }, { "0.5", "'500m'", true },
      { "{ targetPort = 80 }", "{ targetPort = '80' }", true }, { "80", "'http'", false },
      { "'1.0'", "'1'", false }, { "'1e3'", "'1000'", false }, { "'25%'", "'25'", false }, { "'a'", "'b'", false },
      { "'1'", "1.0", true }, { "'x1m'", "'x1000u'", false },
    } do
      assert.equal(case[3], is_equal(case[1], case[2]), case[1] .. " " .. case[2])
    end
  end)

  it("takes the texts of labels, data, arguments and variables for texts", function()
    for _, field in ipairs { "metadata = { labels = { v = %s } }", "data = { v = %s }", "stringData = { v = %s }",
      "spec = { selector = { v = %s } }", "selector = { matchLabels = { v = %s } }", "nodeSelector = { v = %s }",
      "args = { %s }", "env = { { name = 'A', value = %s } }", "metadata = { annotations = { v = %s } }",
      "selector = { matchExpressions = { x = { v = %s } } }" } do
      assert.is_false(is_equal("{ " .. field:format "'1000m'" .. " }", "{ " .. field:format "'1'" .. " }"), field)
      assert.is_false(is_equal("{ " .. field:format "1" .. " }", "{ " .. field:format "'1'" .. " }"), field)
    end
  end)

  it("refuses tables inside themselves", function()
    assert.equal("moonloop.equal(a, b): more than 128 levels of tables; is one of them inside itself?",
      refusal "(function() local t, u = {}, {} t.t, u.t = t, u return moonloop.equal(t, u) end)()")
  end)
end)
