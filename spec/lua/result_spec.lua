local sandbox = require "sandbox"

describe("moonloop.result", function()
  it("reads what reconcile may return", function()
    local cases = {
      [""] = { outcome = "ok" },
      ["return nil"] = { outcome = "ok" },
      ["return { status = { phase = 'A' }, requeue_after = '1m' }"] = {
        outcome = "ok", status = { phase = "A" }, requeue_after = 60,
      },
      ["return { requeue_at = 12 }"] = { outcome = "ok", requeue_at = 12 },
      ["return ctx.invalid('spec.x', 'no')"] = { outcome = "invalid", field = "spec.x", message = "no" },
      ["return ctx.terminal 'no'"] = { outcome = "terminal", message = "no" },
    }
    for statements, came in pairs(cases) do
      assert.same(came, sandbox.reconcile(statements))
    end
  end)

  it("gives the host what it reads", function()
    local cases = {
      ["result.check 'x:1: r'"] = { "ok" },
      ["result.check('x:1: r', nil)"] = { "ok" },
      ["result.check('x:1: r', { status = { phase = 'A' }, requeue_after = '1m' })"] = { "ok", { phase = "A" }, 60 },
      ["result.check('x:1: r', { requeue_at = 12 })"] = { "ok", nil, nil, 12 },
      ["result.check('x:1: r', result.invalid('spec.x', 'no'))"] = { "invalid", nil, nil, nil, "spec.x", "no" },
      ["result.check('x:1: r', result.terminal 'no')"] = { "terminal", nil, nil, nil, nil, "no" },
    }
    for call, values in pairs(cases) do
      assert.same(values, { sandbox.run("return " .. call) })
    end
  end)

  it("refuses everything else", function()
    local cases = {
      { "5", "a number; expected nothing" },
      { "true", "a boolean" },
      { "nil, 'why'", "nil and 'why'; raise a failure" },
      { "{}, {}", "more than one value" },
      { "{ phase = 'x' }", "unknown field 'phase'" },
      { "{ status = 5 }", "status: expected a table, got a number" },
      { "{ requeue_after = {} }", "requeue_after: expected a number of seconds, got a table" },
      { "{ requeue_after = 0 / 0 }", "out of range" },
      { "{ requeue_at = 1, requeue_after = 1 }", "one of them, not both" },
      { "{ outcome = 'ok' }", "unknown field 'outcome'" },
    }
    for _, case in ipairs(cases) do
      local came = sandbox.reconcile("return " .. case[1])
      assert.equal("error", came.outcome)
      assert.matches("^t%.lua:%d+: reconcile returned .*" .. case[2], came.message)
      assert.matches("^x:1: r returned .*" .. case[2],
        sandbox.refusal(sandbox.run, "result.check('x:1: r', " .. case[1] .. ")"))
    end
  end)
end)
