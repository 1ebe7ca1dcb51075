local sandbox = require "sandbox"

describe("moonloop.time", function()
  it("counts seconds from a date in UTC", function()
    local cases = {
      { "year = 1970, month = 1, day = 1", 0 },
      { "year = 1970, month = 1, day = 1, hour = 0, min = 0, sec = 1", 1 },
      { "year = 2000, month = 2, day = 29, hour = 12, min = 30, sec = 15", 951827415 },
      { "year = 2026, month = 7, day = 3, hour = 10, min = 2, sec = 0", 1783072920 },
      { "year = 1969, month = 12, day = 31, hour = 23, min = 59, sec = 59", -1 },
      { "year = 1, month = 1, day = 1", -62135596800 },
      { "year = 9999, month = 12, day = 31, hour = 23, min = 59, sec = 59", 253402300799 },
      { "year = 1900, month = 3, day = 1", -2203891200 },
      { "year = '2026', month = '07', day = '03', hour = '10', min = '02', sec = '00'", 1783072920 },
    }
    for _, case in ipairs(cases) do
      assert.equal(case[2], sandbox.run("return time.utc { " .. case[1] .. " }"))
    end
  end)

  it("refuses a date that is none, and says which field", function()
    local cases = {
      { "year = 2026, month = 2, day = 29", "day is 29; it goes from 1 to 28" },
      { "year = 1900, month = 2, day = 29", "day is 29; it goes from 1 to 28" },
      { "year = 2026, month = 13, day = 1", "month is 13; it goes from 1 to 12" },
      { "year = 2026, month = 4, day = 31", "day is 31; it goes from 1 to 30" },
      { "year = 2026, month = 4, day = 1, hour = 24", "hour is 24; it goes from 0 to 23" },
      { "year = 2026, month = 4, day = 1, sec = 60", "sec is 60; it goes from 0 to 59" },
      { "year = 0, month = 4, day = 1", "year is 0; it goes from 1 to 9999" },
      { "year = 2026, month = 1.5, day = 1", "month is not a whole number" },
      { "year = 2026, month = 'x', day = 1", "month is not a whole number" },
      { "year = 2026, day = 1", "month is not a whole number" },
      { "year = 2026, month = '-1', day = 1", "month is not a whole number" },
    }
    for _, case in ipairs(cases) do
      local seconds, why = sandbox.run("return time.utc { " .. case[1] .. " }")
      assert.is_nil(seconds)
      assert.equal(case[2], why)
    end
  end)

  it("reads and writes RFC 3339", function()
    local function parsed(text)
      return sandbox.run(("return time.parse %q"):format(text))
    end
    assert.equal(1783072920, parsed "2026-07-03T10:02:00Z")
    assert.equal("integer", math.type(parsed "2026-07-03T10:02:00Z"))
    assert.equal(1783072920, parsed "2026-07-03t12:02:00+02:00")
    assert.equal(1783072920.25, parsed "2026-07-03T10:02:00.25Z")
    assert.equal("2026-07-03T10:02:00Z", sandbox.run "return time.format(1783072920.9)")
    local count = sandbox.run [[
      local count = 0
      for seconds = -62135596800, 253402300799, 86400 * 997 + 12345 do
        assert(time.parse(time.format(seconds)) == seconds, seconds)
        count = count + 1
      end
      return count
    ]]
    assert.equal(3663, count)
  end)

  it("refuses what is no RFC 3339", function()
    for _, text in ipairs {
      "", "now", "2026-07-03", "2026-07-03 10:02:00Z", "2026-07-03T10:02:00", "2026-07-03T10:02Z",
      "2026-07-03T10:02:00+0200", "2026-07-03T10:02:00.Z", "2026-07-03T25:02:00Z",
      "2026-07-03T10:02:00+24:00", "2026-07-03T10:02:00Zx", "x2026-07-03T10:02:00Z",
    } do
      local seconds, why = sandbox.run(("return time.parse %q"):format(text))
      assert.is_nil(seconds, text)
      assert.is_string(why)
    end
  end)

  it("reads durations", function()
    local cases = {
      ["5m30s"] = 330, ["1h"] = 3600, ["1.5h"] = 5400, ["250ms"] = 0.25, ["0s"] = 0, ["1h1m1s"] = 3661,
    }
    local function duration(text)
      return sandbox.run(("return time.duration %q"):format(text))
    end
    for text, seconds in pairs(cases) do
      assert.equal(seconds, (duration(text)))
    end
    assert.equal("integer", math.type(duration "5m"))
    for _, text in ipairs { "", "5", "m", "5 m", "-5m", "5d", "5m30", "1e3s", "999999999999h" } do
      assert.is_nil(duration(text), text)
    end
  end)

  local function next_of(expression, after)
    local text, why = sandbox.run(("local at, why = time.cron(%q, time.parse %q) return at and time.format(at), why")
      :format(expression, after))
    return text or why
  end

  it("finds the next instant of a cron expression", function()
    for _, case in ipairs {
      { "* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z" },
      { "* * * * *", "2026-01-01T00:00:59.9Z", "2026-01-01T00:01:00Z" },
      { "0 3 * * *", "2026-01-01T02:59:59Z", "2026-01-01T03:00:00Z" },
      { "0 3 * * *", "2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z" },
      { "*/15 9-17 * * mon-fri", "2026-01-02T17:50:00Z", "2026-01-05T09:00:00Z" },
      { "5,35 6-16/4 * JAN,Jul *", "2026-01-31T18:00:00Z", "2026-07-01T06:05:00Z" },
      { "0 0 13 * fri", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z" },
      { "0 0 13 * *", "2026-01-01T00:00:00Z", "2026-01-13T00:00:00Z" },
      { "0 0 * * 7", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z" },
      { "0 0 * * 0", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z" },
      { "0 0 * * 6-7", "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z" },
      { "0 0 31 * *", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z" },
      { "0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z" },
      { "@hourly", "2026-12-31T23:00:00Z", "2027-01-01T00:00:00Z" },
      { "@monthly", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z" },
      { "@every 90s", "2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z" },
    } do
      assert.equal(case[3], next_of(case[1], case[2]), case[1])
    end
  end)

  it("says what is wrong with a cron expression, and that one never comes", function()
    for expression, why in pairs {
      ["61 * * * *"] = "minute: end of range (61) above maximum (59): 61",
      ["* 24 * * *"] = "hour: end of range (24) above maximum (23): 24",
      ["* * 0 * *"] = "day: beginning of range (0) below minimum (1): 0",
      ["* * * 13 *"] = "month: end of range (13) above maximum (12): 13",
      ["* * * * 8"] = "weekday: end of range (8) above maximum (7): 8",
      ["* * * foo *"] = 'month: failed to parse int from foo: strconv.Atoi: parsing "foo": invalid syntax',
      ["*/0 * * * *"] = "minute: step of range should be a positive number: */0",
      ["* * * *"] = "expected exactly 5 fields, found 4: [* * * *]",
      [""] = "empty spec string",
      ["@often"] = "unrecognized descriptor: @often",
      ["TZ=Europe/Berlin 0 3 * * *"] = "TZ=: name the zone behind the instant, as in "
        .. 'time.cron("0 3 * * *", after, "Europe/Berlin")',
      [("0,"):rep(130) .. "0 * * * *"] = "an expression has at most 256 bytes",
      ["0 0 30 feb *"] = "'0 0 30 feb *' never comes",
      ["0 0 31 4,6,9,11 *"] = "'0 0 31 4,6,9,11 *' never comes",
    } do
      assert.equal(why, next_of(expression, "2026-01-01T00:00:00Z"))
    end
    assert.equal("'@yearly' never comes", next_of("@yearly", "9999-12-31T00:00:00Z"))
  end)

  it("raises for an argument of another type", function()
    local cases = {
      ["time.parse(5)"] = "time.parse%(text%): expected a string, got number",
      ["time.format 'x'"] = "expected seconds since 1970",
      ["time.duration(5)"] = "expected a string",
      ["time.utc()"] = "expected a table",
      ["time.cron(5, 0)"] = "time.cron%(expression, after %[, zone%]%): expected an expression like "
        .. '"0 3 %* %* %*", got number',
      ["time.cron('@daily')"] = "expected an instant, seconds since 1970 in the years 1 to 9999",
      ["time.cron('@daily', 0 / 0)"] = "expected an instant, seconds since 1970 in the years 1 to 9999",
    }
    for call, message in pairs(cases) do
      assert.matches("^t%.lua:%d+: .*" .. message, sandbox.refusal(sandbox.run, call))
    end
  end)
end)
