local sandbox = require "sandbox"

local function conditions_of(text)
  local came = sandbox.reconcile(("return { conditions = %s }"):format(text))
  return came.status and came.status.conditions, came.message
end


describe("Conditions that reconcile returns", function()
  it("become status.conditions, by type, with what was left out", function()
    assert.same({
      { type = "Available", status = "True", reason = "AllRunning", message = "3 of 3" },
      { type = "Progressing", status = "Unknown", reason = "Progressing", message = "" },
      { type = "Ready", status = "False", reason = "Ready", message = "" },
      { type = "example.com/x.y-z", status = "True", reason = "X", message = "" },
    }, conditions_of [[{
      Ready = { status = false },
      ["example.com/x.y-z"] = { status = "True", reason = "X" },
      Progressing = { status = "Unknown" },
      Available = { status = true, reason = "AllRunning", message = "3 of 3" },
    }]])
  end)

  it("stand beside a status", function()
    local came = sandbox.reconcile "return { status = { n = 1 }, conditions = { A = { status = true } } }"
    assert.equal(1, came.status.n)
    assert.equal("A", came.status.conditions[1].type)
    assert.is_nil(sandbox.reconcile("return { conditions = {} }").status)
    assert.same({ n = 1 }, sandbox.reconcile("return { status = { n = 1 }, conditions = {} }").status)
  end)

  it("leave the script's own table alone", function()
    assert.is_nil(sandbox.run [[
      local status = { n = 1 }
      result.check("x:1", { status = status, conditions = { A = { status = true } } })
      return status.conditions
    ]])
  end)

  it("stand beside a verdict", function()
    for _, call in ipairs { "ctx.invalid('spec.x', 'no', %s)", "ctx.terminal('no', %s)" } do
      local came = sandbox.reconcile("return "
        .. call:format "{ status = { n = 1 }, conditions = { A = { status = false } } }")
      assert.equal("no", came.message)
      assert.equal(1, came.status.n)
      assert.equal("False", came.status.conditions[1].status)
      assert.is_nil(sandbox.reconcile("return " .. call:format "nil").status)
      assert.is_nil(sandbox.reconcile("return " .. call:format "{}").status)
      for beside, message in pairs {
        ["5"] = "expected a table, got a number",
        ["{ requeue_after = 1 }"] = "unknown field 'requeue_after'; the fields are status, conditions",
        ["{ state = {} }"] = "unknown field 'state'; did you mean 'status'%?",
        ["{ status = 1 }"] = "status: expected a table, got a number",
        ["{ conditions = { A = {} } }"] = "conditions%.A: status: expected true",
      } do
        came = sandbox.reconcile("return " .. call:format(beside))
        assert.equal("error", came.outcome)
        assert.matches("^t%.lua:%d+: ctx%.%a+%(.*%[, { status =, conditions = }%]%): " .. message, came.message)
      end
    end
  end)

  local LONG = "('x'):rep(40000)"

  local WRONG = {
    { "5", "conditions: expected a table of conditions by their type, as in .*; got a number" },
    { "moonloop.null", "conditions: expected a table of conditions" },
    { "{ { type = 'Ready' } }", "conditions: '1' is no type of a condition, as in { Ready = " },
    { "{ ['not ready'] = { status = true } }", "'not ready' is no type" },
    { "{ ['-a'] = { status = true } }", "'%-a' is no type" },
    { "{ ['a-'] = { status = true } }", "'a%-' is no type" },
    { "{ ['a/b/c'] = { status = true } }", "'a/b/c' is no type" },
    { "{ ['A.com/b'] = { status = true } }", "'A%.com/b' is no type" },
    { "{ ['a..b/c'] = { status = true } }", "'a%.%.b/c' is no type" },
    { "{ ['/c'] = { status = true } }", "'/c' is no type" },
    { "{ [('a'):rep(317)] = { status = true } }", "is no type" },
    { "{ Reconciled = { status = true } }", "conditions%.Reconciled: the host says this one" },
    { "{ Ready = true }", "conditions%.Ready: expected { status =, reason =, message = }, got a boolean" },
    { "{ Ready = { stauts = true } }", "conditions%.Ready: unknown field 'stauts'; did you mean 'status'%?" },
    { "{ Ready = { status = true, lastTransitionTime = 'x' } }", "the fields are status, reason, message" },
    { "{ Ready = { } }", 'conditions%.Ready: status: expected true, false or "Unknown", got nothing' },
    { "{ Ready = { status = 'true' } }", "got 'true'; did you mean 'True'%?" },
    { "{ Ready = { status = 1 } }", "got a number" },
    { "{ Ready = { status = true, reason = 'not one word' } }", "reason: 'not one word' is no reason: one word" },
    { "{ Ready = { status = true, reason = '' } }", "reason: '' is no reason" },
    { "{ Ready = { status = true, reason = 'a:' } }", "reason: 'a:' is no reason" },
    { "{ Ready = { status = true, reason = 5 } }", "reason: expected a string, got a number" },
    { "{ Ready = { status = true, reason = " .. LONG .. " } }", "is no reason" },
    { "{ ['a/b'] = { status = true } }", "conditions%.a/b: reason: needed, as the type is no reason" },
    { "{ Ready = { status = true, message = " .. LONG .. " } }", "message: 40000 characters; at most 32768" },
    { "{ Ready = { status = true, message = {} } }", "message: expected a string, got a table" },
  }

  it("are refused by name when they are none", function()
    for _, case in ipairs(WRONG) do
      local list, message = conditions_of(case[1])
      assert.is_nil(list)
      assert.matches("^t%.lua:%d+: reconcile returned a table with a mistake: .*" .. case[2], message)
    end
    assert.matches("conditions and status%.conditions: one of them, not both", sandbox.reconcile(
      "return { status = { conditions = {} }, conditions = { A = { status = true } } }").message)
  end)

  it("may have the longest that the API takes", function()
    assert.equal(316, #conditions_of("{ [('a'):rep(316)] = { status = true } }")[1].type)
    assert.equal(1024, #conditions_of("{ A = { status = true, reason = ('r'):rep(1024) } }")[1].reason)
    assert.equal(65536, #conditions_of("{ A = { status = true, message = ('é'):rep(32768) } }")[1].message)
  end)

  it("go when they are null", function()
    assert.is_true(sandbox.run [[
      local _, status = result.check("x:1", { conditions = { A = moonloop.null } })
      return status.conditions[1].type == "A" and moonloop.is_null(status.conditions[1].status)
    ]])
  end)
end)
