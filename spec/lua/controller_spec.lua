local moonloop = require "moonloop"

describe("moonloop.controller", function()
  local At = moonloop.kind("example.com/v1", "At")
  local Pod = moonloop.kind("v1", "Pod")

  local function declare(fields)
    local declared = { name = "at", reconciles = At, reconcile = function() end }
    for key, value in pairs(fields) do
      declared[key] = value
    end
    return moonloop.controller(declared)
  end

  it("gives what was declared, with defaults", function()
    local controller = declare { owns = { Pod } }
    assert.equal("at", controller.name)
    assert.equal(At, controller.reconciles)
    assert.same({ Pod }, controller.owns)
    assert.same({}, controller.uses)
    assert.equal(1000, controller.max_concurrent)
  end)

  it("names the field that is wrong", function()
    local cases = {
      { { own = {} }, "unknown field 'own'; did you mean 'owns'%?" },
      { { reconcle = 1 }, "did you mean 'reconcile'%?" },
      { { zzz = 1 }, "the fields are name, reconciles" },
      { { name = "No" }, "name: 'No' is no DNS label" },
      { { name = ("x"):rep(64) }, "is no DNS label" },
      { { owns = Pod }, "owns: expected a list of kinds, got the kind v1/Pod" },
      { { owns = { At } }, "example.com/v1/At is in reconciles and in owns" },
      { { uses = { 5 } }, "uses%[1%]: expected kinds, got a number" },
      { { watches = { Pod } }, "watches%[1%]: expected moonloop.watch%(Kind, function%)" },
      { { when = "labels" }, "when: expected function%(old, new%), or parts of the object, as in .*, got a string" },
      { { when = {} }, "when: expected .*, got an empty list" },
      { { when = { "generatoin" } }, "when%[1%]: there is no part 'generatoin'; did you mean 'generation'%?" },
      { { when = { "labels", "xyzzy" } }, "when%[2%]: there is no part 'xyzzy'; the parts are generation, labels" },
      { { when = { "labels", true } }, "when%[2%]: expected a part of the object, got a boolean" },
      { { when = { "labels", x = "y" } }, "when: expected a list, found the key 'x'" },
      { { wen = { "labels" } }, "unknown field 'wen'; did you mean 'when'%?" },
      { { max_concurrent = 1.5 }, "max_concurrent: expected a whole number" },
      { { wakes = "al" }, "wakes: expected \"all\", or nothing for the changes that matter, got 'al'" },
      { { wakes = "al" }, "did you mean 'all'?" },
      { { wakes = true }, "got a boolean" },
      { { wake = "all" }, "did you mean 'wakes'?" },
    }
    for _, case in ipairs(cases) do
      assert.error_matches(function()
        declare(case[1])
      end, case[2])
    end
  end)

  it("takes what of a kind is watched", function()
    local part = moonloop.kind("v1", "Pod", { labels = "app=web", metadata_only = true })
    assert.same({ part }, declare({ owns = { part } }).owns)
    assert.equal("app=web", part.labels)
    for options, message in pairs {
      [{ field = "a=b" }] = "unknown field 'field'; did you mean 'fields'%?",
      [{ labels = 1 }] = "labels: expected a selector in one string, got a number",
    } do
      assert.error_matches(function()
        moonloop.kind("v1", "Pod", options)
      end, message)
    end
    assert.error_matches(function()
      declare { owns = { Pod }, watches = { moonloop.watch(part, function() end) } }
    end, "v1/Pod is there twice with different selections")
  end)

  it("takes parts or a function for which changes count, and keeps a copy", function()
    local parts, judge = { "generation", "labels" }, function() return true end
    local controller = declare { when = parts }
    parts[1] = "status"
    assert.same({ "generation", "labels" }, controller.when)
    assert.equal(judge, declare({ when = judge }).when)
    assert.is_nil(declare({}).when)
    assert.same({ "labels" }, moonloop.watch(Pod, function() end, { "labels" }).when)
    assert.error_matches(function()
      moonloop.watch(Pod, function() end, { "label" })
    end, "moonloop.watch%(Kind, function, when%): when%[1%]: there is no part 'label'; did you mean 'labels'%?")
  end)

  it("lets a kind be owned and watched", function()
    local watch = moonloop.watch(Pod, function() end)
    assert.equal(1, #declare({ owns = { Pod }, watches = { watch } }).watches)
    assert.has_error(function()
      declare { uses = { Pod }, watches = { watch } }
    end)
  end)

  it("knows null and kinds", function()
    assert.is_true(moonloop.is_null(moonloop.null))
    assert.is_false(moonloop.is_null(nil))
    assert.equal("v1/Pod", tostring(Pod))
    assert.equal(moonloop.kind("v1", "Pod"), Pod)
    assert.has_error(function()
      moonloop.kind("v1")
    end)
  end)
end)
