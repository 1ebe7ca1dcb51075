local result = require "moonloop.result"

describe("moonloop.result", function()
  it("reads what reconcile may return", function()
    assert.same({ "ok" }, { result.check "x:1" })
    assert.same({ "ok" }, { result.check("x:1", nil) })
    local returned = { status = { phase = "A" }, requeue_after = "1m" }
    assert.same({ "ok", { phase = "A" }, 60 }, { result.check("x:1", returned) })
    assert.same({ "ok", nil, nil, 12 }, { result.check("x:1", { requeue_at = 12 }) })
    assert.same(
      { "invalid", nil, nil, nil, "spec.x", "no" },
      { result.check("x:1", result.invalid("spec.x", "no")) }
    )
    assert.same({ "terminal", nil, nil, nil, nil, "no" }, { result.check("x:1", result.terminal "no") })
  end)

  it("refuses everything else", function()
    local cases = {
      { { 5 }, "reconcile returned a number; expected nothing" },
      { { true }, "a boolean" },
      { { nil, "why" }, "nil and 'why'; what went wrong is raised" },
      { { {}, {} }, "more than one value" },
      { { { phase = "x" } }, "unknown field 'phase'" },
      { { { status = 5 } }, "status: expected a table, got a number" },
      { { { requeue_after = {} } }, "requeue_after: expected a number of seconds, got a table" },
      { { { requeue_after = 0 / 0 } }, "out of range" },
      { { { requeue_at = 1, requeue_after = 1 } }, "one of them, not both" },
      { { { outcome = "ok" } }, "unknown field 'outcome'" },
    }
    for _, case in ipairs(cases) do
      assert.error_matches(function()
        result.check("x:1", table.unpack(case[1], 1, 2))
      end, case[2])
    end
  end)
end)
