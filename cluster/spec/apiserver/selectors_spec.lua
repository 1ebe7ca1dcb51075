local fields = require "cluster.apiserver.selector.fields"
local labels = require "cluster.apiserver.selector.labels"


describe("label selectors", function()
  local LABELS = { app = "web", tier = "2", empty = "" }
  for _, case in ipairs {
    { "", true }, { " ", true }, { "app", true }, { "!app", false }, { "none", false }, { "!none", true },
    { "app=web", true }, { "app==web", true }, { "app = web", true }, { "app=db", false }, { "app!=db", true },
    { "none!=x", true }, { "app in (web, db)", true }, { "app in (db)", false }, { "app notin (db)", true },
    { "none notin (db)", true }, { "none in (db)", false }, { "tier>1", true }, { "tier>2", false }, { "tier<3", true },
    { "app>1", false }, { "app=web,tier=2", true }, { "app=web,tier=3", false }, { "empty=", true },
    { "empty in ()", true },
    { "app in (web),!none,tier", true }, { "in in (in)", false }, { "none=", false },
  } do
    it(("%q %s"):format(case[1], case[2] and "matches" or "does not match"), function()
      local requirements = assert(labels.parse(case[1]))
      assert.equal(case[2], labels.match(requirements, LABELS))
    end)
  end

  it("matches nothing but absence without labels", function()
    assert.is_true(labels.match(labels.parse "!a", nil))
    assert.is_false(labels.match(labels.parse "a", nil))
  end)

  for _, case in ipairs {
    { "app in", "unable to parse requirement: found '' expected: '('" },
    { "a=b=c", "found '=', expected: ',' or 'end of string'" },
    { ",", "found ',', expected: !, identifier, or 'end of string'" },
    { "a,", "found '', expected: identifier after ','" },
    { "tier>x", 'unable to parse requirement: values[0]: Invalid value: "x": for \'Gt\', \'Lt\' operators, the '
      .. "value must be an integer" },
  } do
    it(("refuses %q"):format(case[1]), function()
      local parsed, why = labels.parse(case[1])
      assert.is_nil(parsed)
      assert.equal(case[2], why)
    end)
  end
end)


describe("field selectors", function()
  local ENTRY = { name = "a", namespace = "n", fields = { ["status.phase"] = "Running", ["spec.x"] = "a,b" } }
  for _, case in ipairs {
    { "", true }, { "metadata.name=a", true }, { "metadata.name==a", true }, { "metadata.name!=a", false },
    { "metadata.namespace=n,status.phase!=Failed", true }, { "status.phase=Failed", false }, { "spec.x=a\\,b", true },
    { "unknown=", true },
  } do
    it(("%q %s"):format(case[1], case[2] and "matches" or "does not match"), function()
      assert.equal(case[2], fields.match(assert(fields.parse(case[1])), ENTRY, ENTRY.fields))
    end)
  end

  for _, case in ipairs {
    { "name", "invalid selector: 'name'; can't understand 'name'" },
    { "a=b=c", "invalid field selector: unescaped character in value: =" },
    { "a=\\x", "invalid field selector: invalid escape sequence: \\x" },
    { "a=\\", "invalid field selector: invalid escape sequence: \\" },
  } do
    it(("refuses %q"):format(case[1]), function()
      local parsed, why = fields.parse(case[1])
      assert.is_nil(parsed)
      assert.equal(case[2], why)
    end)
  end

  it("knows the one name that can match", function()
    assert.equal("a", fields.exact(fields.parse "status.phase=x,metadata.name=a", "metadata.name"))
    assert.is_nil(fields.exact(fields.parse "metadata.name!=a", "metadata.name"))
  end)
end)
