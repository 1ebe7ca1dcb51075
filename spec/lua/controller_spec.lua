local sandbox = require "sandbox"

describe("moonloop.controller", function()
  local DECLARE = [[
    local part = moonloop.kind("v1", "Pod", { labels = "app=web", metadata_only = true })
    local function f() end
    local function declare(fields)
      local declared = { name = "at", reconciles = At, reconcile = f }
      for key, value in pairs(fields) do
        declared[key] = value
      end
      return moonloop.controller(declared)
    end
  ]]

  local function load(statements)
    return sandbox.load(DECLARE .. statements)
  end

  local function declare(fields)
    return load("return declare { " .. fields .. " }")
  end

  -- The kinds that it has in one role.
  local function kinds(declaration, use)
    local list = {}
    for _, kind in ipairs(declaration.kinds) do
      if kind.use == use then
        list[#list + 1] = kind
      end
    end
    return list
  end

  local AT = { use = "reconciles", apiVersion = "example.com/v1", kind = "At" }

  it("gives what was declared, with defaults", function()
    assert.same({
      name = "at",
      max_concurrent = 1000,
      kinds = { AT, { use = "owns", apiVersion = "v1", kind = "Pod" } },
    }, declare "owns = { Pod }")
  end)

  it("names the field that is wrong", function()
    local cases = {
      { "own = {}", "unknown field 'own'; did you mean 'owns'%?" },
      { "reconcle = 1", "did you mean 'reconcile'%?" },
      { "zzz = 1", "the fields are name, formerly, reconciles" },
      { "name = 'No'", "name: 'No' is no DNS label" },
      { "name = ('x'):rep(64)", "is no DNS label" },
      { "owns = Pod", "owns: expected a list of kinds, got the kind v1/Pod" },
      { "owns = { At }", "example.com/v1/At is in reconciles and in owns" },
      { "uses = { 5 }", "uses%[1%]: expected kinds, got a number" },
      { "watches = { Pod }", "watches%[1%]: expected moonloop.watch%(Kind, function%)" },
      { "metrics = 5", "metrics: expected a table of metrics by their names, got a number" },
      { "metrics = { ['a b'] = {} }", "metrics: 'a b' is no name of a metric" },
      { "metrics = { a = 5 }", "metrics: a: expected a table" },
      { "metrics = { a = { type = 'gage', help = 'x' } }", 'metrics: a: type: expected "counter", "gauge" or' },
      { "metrics = { a = { type = 'gauge' } }", "metrics: a: help: expected one line" },
      { "metrics = { a = { type = 'gauge', help = 'x\\ny' } }", "metrics: a: help: expected one line" },
      { "metrics = { a = { type = 'gauge', help = 'x', label = {} } }", "'label'; did you mean 'labels'" },
      { "metrics = { a = { type = 'gauge', help = 'x', labels = { 'le' } } }", "the label 'le' is the host's" },
      { "metrics = { a = { type = 'gauge', help = 'x', labels = { 'controller' } } }", "'controller' is the host's" },
      { "metrics = { a = { type = 'gauge', help = 'x', labels = { '__a' } } }", "'__a' is no name of a label" },
      { "metrics = { a = { type = 'gauge', help = 'x', labels = { 'l', 'l' } } }", "'l' is there twice" },
      { "metrics = { a = { type = 'gauge', help = 'x', buckets = { 1 } } }", "buckets: only a histogram has them" },
      { "metrics = { a = { type = 'gauge', help = 'x', sum = 1 } }", "sum: expected true or false, got a number" },
      { "metrics = { a = { type = 'counter', help = 'x', sum = true } }", "sum: only a gauge adds up over objects" },
      { "metrics = { a = { type = 'histogram', help = 'x', buckets = { 2, 1 } } }", "larger than the one before" },
      { "metrics = { a = { type = 'histogram', help = 'x', buckets = { 0 / 0 } } }", "buckets: expected numbers" },
      { "metrics = { a = { type = 'histogram', help = 'x' }, a_sum = { type = 'gauge', help = 'x' } }",
        "metrics: a_sum: the histogram 'a' has series of this name" },
      { "when = 'labels'", "when: expected function%(old, new%), or parts of the object, as in .*, got a string" },
      { "when = {}", "when: expected .*, got an empty list" },
      { "when = { 'generatoin' }", "when%[1%]: there is no part 'generatoin'; did you mean 'generation'%?" },
      { "when = { 'labels', 'xyzzy' }", "when%[2%]: there is no part 'xyzzy'; the parts are generation, labels" },
      { "when = { 'labels', true }", "when%[2%]: expected a part of the object, got a boolean" },
      { "when = { 'labels', x = 'y' }", "when: expected a list, found the key 'x'" },
      { "wen = { 'labels' }", "unknown field 'wen'; did you mean 'when'%?" },
      { "max_concurrent = 1.5", "max_concurrent: expected a whole number" },
      { "rollout = 5", "rollout: expected a mode, or a table as { max_deletes = 10 }, got a number" },
      { "rollout = { mode = 'careful' }", 'rollout: mode: expected "guarded", "canary", "plan" or "immediate", '
        .. "got 'careful'" },
      { "rollout = { mode = true }", "rollout: mode: expected .*, got a boolean" },
      { "rollout = 'immediat'", "rollout: mode: expected .*, got 'immediat'" },
      { "rollout = { max_delets = 5 }", "rollout: unknown field 'max_delets'; did you mean 'max_deletes'%?" },
      { "rollout = { max_deletes = '5' }", "rollout: max_deletes: expected a whole number from 0 to 1000000" },
      { "rollout = { max_deletes_percent = 101 }", "rollout: max_deletes_percent: expected a whole number from 0" },
      { "rollout = { max_failures_percent = -1 }", "rollout: max_failures_percent: expected a whole number from 0 to" },
      { "wakes = 'al'", 'wakes: expected "all" or nothing, got \'al\'; '
        .. "did you mean 'all'%?" },
      { "wakes = true", "got a boolean" },
      { "wake = 'all'", "did you mean 'wakes'%?" },
    }
    for _, case in ipairs(cases) do
      assert.matches("^t%.lua:%d+: moonloop%.controller: .*" .. case[2], sandbox.refusal(declare, case[1]))
    end
  end)

  it("takes what of a kind is watched", function()
    assert.same({ { use = "owns", apiVersion = "v1", kind = "Pod", labels = "app=web", metadata_only = true } },
      kinds(declare "owns = { part }", "owns"))
    assert.equal("app=web", sandbox.run(DECLARE .. "return part.labels"))
    for options, message in pairs {
      ["{ field = 'a=b' }"] = "unknown field 'field'; did you mean 'fields'%?",
      ["{ labels = 1 }"] = "labels: expected a selector in one string, got a number",
    } do
      assert.matches("^t%.lua:%d+: moonloop%.kind%(apiVersion, kind %[, selection%]%): " .. message,
        sandbox.refusal(load, "moonloop.kind('v1', 'Pod', " .. options .. ")"))
    end
    assert.matches("^t%.lua:%d+: .*v1/Pod is there twice with different selections",
      sandbox.refusal(declare, "owns = { Pod }, watches = { moonloop.watch(part, f) }"))
  end)

  it("takes parts for which changes count, and keeps a copy", function()
    local declared = load [[
      local parts = { "generation", "labels" }
      local controller = declare { when = parts }
      parts[1] = "status"
      return controller
    ]]
    assert.same({ "generation", "labels" }, kinds(declared, "reconciles")[1].when)
    assert.is_nil(kinds(declare "", "reconciles")[1].when)
    assert.same({ "labels" }, sandbox.run "return moonloop.watch(Pod, function() end, { 'labels' }).when")
    assert.same({ "labels" }, kinds(declare "watches = { moonloop.watch(Pod, f, { 'labels' }) }", "watches")[1].when)
    assert.matches("^t%.lua:%d+: moonloop.watch%(Kind, function%(object, ctx%) … end %[, when%]%): when%[1%]: there is "
      .. "no part 'label'; did you mean 'labels'%?", sandbox.refusal(load, "moonloop.watch(Pod, f, { 'label' })"))
  end)

  it("takes a function for which changes count", function()
    local script = DECLARE .. [[return declare { when = function(old, new)
      return old.metadata.name == "a" and new.metadata.name == "b"
    end }]]
    local a = { metadata = { name = "a", uid = "ua", resourceVersion = "1" } }
    local b = { metadata = { name = "b", uid = "ub", resourceVersion = "2" } }
    assert.equal("a function", kinds(sandbox.load(script), "reconciles")[1].when)
    assert.is_true(sandbox.counts(script, a, b))
    assert.is_false(sandbox.counts(script, b, a))
  end)

  it("lets a kind be owned and watched", function()
    assert.equal(1, #kinds(declare "owns = { Pod }, watches = { moonloop.watch(Pod, f) }", "watches"))
    assert.matches("^t%.lua:%d+: .*v1/Pod is in watches and in uses",
      sandbox.refusal(declare, "uses = { Pod }, watches = { moonloop.watch(Pod, f) }"))
  end)

  it("knows null and kinds", function()
    assert.is_true(sandbox.run "return moonloop.is_null(moonloop.null)")
    assert.is_false(sandbox.run "return moonloop.is_null(nil)")
    assert.equal("v1/Pod", sandbox.run "return tostring(Pod)")
    assert.is_true(sandbox.run "return moonloop.kind('v1', 'Pod') == Pod")
    assert.is_false(sandbox.run "return Pod == At")
    assert.matches("^t%.lua:%d+: .*expected an API version and a kind", sandbox.refusal(load, "moonloop.kind('v1')"))
  end)
end)
