local sandbox = require "sandbox"

local function run(statements)
  return sandbox.run("local labels = require 'moonloop.labels' " .. statements)
end


describe("labels.match", function()
  local LABELS = '{ app = "web", tier = "front", ["example.com/size"] = "12", empty = "" }'

  it("selects as kubectl does by a string", function()
    for selector, selects in pairs {
      [""] = true, ["app=web"] = true, ["app==web"] = true, ["app!=web"] = false, ["app=db"] = false,
      ["other!=x"] = true,
      ["app in (web, db)"] = true, ["app in (db)"] = false, ["app notin (db,api)"] = true, ["app notin (web)"] = false,
      ["other notin (web)"] = true, ["app"] = true, ["other"] = false, ["!other"] = true, ["!app"] = false,
      ["app=web,tier in (front),!old"] = true, ["app=web,old"] = false, ["example.com/size>11"] = true,
      ["example.com/size<12"] = false, ["empty="] = true, ["app="] = false,
    } do
      assert.equal(selects, run(("return labels.match(%q, %s)"):format(selector, LABELS)), selector)
    end
  end)

  it("selects by a LabelSelector", function()
    for selector, selects in pairs {
      ["{}"] = true, ["{ matchLabels = {} }"] = true, ['{ matchLabels = { app = "web" } }'] = true,
      ['{ matchLabels = { app = "web", tier = "back" } }'] = false, ['{ matchLabels = { empty = "" } }'] = true,
      ['{ matchExpressions = { { key = "app", operator = "In", values = { "db", "web" } } } }'] = true,
      ['{ matchExpressions = { { key = "app", operator = "In", values = { "" } } } }'] = false,
      ['{ matchExpressions = { { key = "empty", operator = "In", values = { "" } } } }'] = true,
      ['{ matchExpressions = { { key = "app", operator = "NotIn", values = { "web" } } } }'] = false,
      ['{ matchExpressions = { { key = "other", operator = "NotIn", values = { "web" } } } }'] = true,
      ['{ matchExpressions = { { key = "example.com/size", operator = "Exists" } } }'] = true,
      ['{ matchExpressions = { { key = "app", operator = "DoesNotExist" } } }'] = false,
      ['{ matchLabels = { app = "web" }, matchExpressions = { { key = "old", operator = "Exists" } } }'] = false,
      ['{ matchExpressions = { { key = "app", operator = "Exists", values = {} } } }'] = true,
    } do
      assert.equal(selects, run(("return labels.match(%s, %s)"):format(selector, LABELS)), selector)
    end
    assert.is_false(run "return labels.match('app', nil)")
  end)

  it("says what is wrong with a selector", function()
    for selector, why in pairs {
      ['"app in"'] = "'app in': expected requirements like",
      ['"a b"'] = "'a b': expected requirements like",
      ['"app=web,"'] = "expected requirements like",
      ['"app=a b"'] = "expected requirements like",
      ['"-app=x"'] = "'-app=x': no label has the name '-app'",
      ['("a,"):rep(3000)'] = "a selector has at most 4096 bytes",
      ['{ matchlabels = {} }'] = "unknown field 'matchlabels'; did you mean 'matchLabels'?",
      ['{ app = "web" }'] = "unknown field 'app'; the fields are matchLabels, matchExpressions",
      ['{ matchLabels = { app = "x,!y" } }'] = "matchLabels: no label has the name 'app' with such a value",
      ['{ matchLabels = { ["!app"] = "" } }'] = "matchLabels: no label has the name '!app' with such a value",
      ['{ matchLabels = { app = 5 } }'] = "matchLabels: no label has the name 'app' with such a value",
      ['{ matchLabels = "app=web" }'] = "matchLabels: expected labels, got a string",
      ['{ matchExpressions = { key = "app", operator = "Exists" } }'] = "matchExpressions: expected a list",
      ['{ matchExpressions = { "app" } }'] =
        "matchExpressions[1]: expected { key =, operator =, values = }, got a string",
      ['{ matchExpressions = { { key = "app", operator = "in" } } }'] =
        "matchExpressions[1].operator: expected In, NotIn, Exists or DoesNotExist",
      ['{ matchExpressions = { { key = "app", operator = "In" } } }'] =
        "matchExpressions[1].values: expected a list of one or more",
      ['{ matchExpressions = { { key = "app", operator = "In", values = { "a", "b,c" } } } }'] =
        "matchExpressions[1].values: no label has the value 'b,c'",
      ['{ matchExpressions = { { key = "app", operator = "Exists", values = { "a" } } } }'] =
        "matchExpressions[1].values: Exists has none",
      ['{ matchExpressions = { { key = "a in (b)", operator = "Exists" } } }'] =
        "matchExpressions[1].key: no label has the name 'a in (b)'",
      ['{ matchExpressions = { { kee = "app", operator = "Exists" } } }'] =
        "matchExpressions[1]: unknown field 'kee'; did you mean 'key'?",
    } do
      local selects, said = run(("return labels.match(%s, %s)"):format(selector, LABELS))
      assert.is_nil(selects)
      assert.truthy(said:find(why, 1, true), selector .. ": " .. said)
    end
  end)

  it("raises for what is no selector and for labels that are none", function()
    local selector = 'expected a selector, as in "app=web" or { matchLabels = { app = "web" } }, got '
    for call, message in pairs {
      ["labels.match(nil, {})"] = selector .. "nil",
      ["labels.match(5, {})"] = selector .. "a number",
      ["labels.match('app', 5)"] = "labels: expected those of an object, got a number",
      ["labels.match('app', { app = 5 })"] = "labels: 'app' is no label; names and values are strings",
      ["labels.match('app', { 'app' })"] = "labels: '1' is no label; names and values are strings",
    } do
      assert.equal("t.lua:1: labels.match(selector, labels): " .. message, sandbox.refusal(run, call))
    end
  end)
end)
