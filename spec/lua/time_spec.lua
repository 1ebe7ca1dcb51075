local time = require "moonloop.time"

describe("moonloop.time", function()
  it("counts seconds from a date in UTC", function()
    local cases = {
      { { 1970, 1, 1 }, 0 },
      { { 1970, 1, 1, 0, 0, 1 }, 1 },
      { { 2000, 2, 29, 12, 30, 15 }, 951827415 },
      { { 2026, 7, 3, 10, 2, 0 }, 1783072920 },
      { { 1969, 12, 31, 23, 59, 59 }, -1 },
      { { 1, 1, 1 }, -62135596800 },
      { { 9999, 12, 31, 23, 59, 59 }, 253402300799 },
      { { 1900, 3, 1 }, -2203891200 },
      { { "2026", "07", "03", "10", "02", "00" }, 1783072920 },
    }
    for _, case in ipairs(cases) do
      local d = case[1]
      local date = { year = d[1], month = d[2], day = d[3], hour = d[4], min = d[5], sec = d[6] }
      assert.equal(case[2], time.utc(date))
    end
  end)

  it("refuses a date that is none, and says which field", function()
    local cases = {
      { { year = 2026, month = 2, day = 29 }, "day is 29; it goes from 1 to 28" },
      { { year = 1900, month = 2, day = 29 }, "day is 29; it goes from 1 to 28" },
      { { year = 2026, month = 13, day = 1 }, "month is 13; it goes from 1 to 12" },
      { { year = 2026, month = 4, day = 31 }, "day is 31; it goes from 1 to 30" },
      { { year = 2026, month = 4, day = 1, hour = 24 }, "hour is 24; it goes from 0 to 23" },
      { { year = 2026, month = 4, day = 1, sec = 60 }, "sec is 60; it goes from 0 to 59" },
      { { year = 0, month = 4, day = 1 }, "year is 0; it goes from 1 to 9999" },
      { { year = 2026, month = 1.5, day = 1 }, "month is not a whole number" },
      { { year = 2026, month = "x", day = 1 }, "month is not a whole number" },
      { { year = 2026, day = 1 }, "month is not a whole number" },
      { { year = 2026, month = "-1", day = 1 }, "month is not a whole number" },
    }
    for _, case in ipairs(cases) do
      local seconds, why = time.utc(case[1])
      assert.is_nil(seconds)
      assert.equal(case[2], why)
    end
  end)

  it("reads and writes RFC 3339", function()
    assert.equal(1783072920, time.parse "2026-07-03T10:02:00Z")
    assert.equal("integer", math.type(time.parse "2026-07-03T10:02:00Z"))
    assert.equal(1783072920, time.parse "2026-07-03t12:02:00+02:00")
    assert.equal(1783072920.25, time.parse "2026-07-03T10:02:00.25Z")
    assert.equal("2026-07-03T10:02:00Z", time.format(1783072920.9))
    for seconds = -62135596800, 253402300799, 86400 * 997 + 12345 do
      assert.equal(seconds, time.parse(time.format(seconds)))
    end
  end)

  it("refuses what is no RFC 3339", function()
    for _, text in ipairs {
      "", "now", "2026-07-03", "2026-07-03 10:02:00Z", "2026-07-03T10:02:00", "2026-07-03T10:02Z",
      "2026-07-03T10:02:00+0200", "2026-07-03T10:02:00.Z", "2026-07-03T25:02:00Z",
      "2026-07-03T10:02:00+24:00", "2026-07-03T10:02:00Zx", "x2026-07-03T10:02:00Z",
    } do
      local seconds, why = time.parse(text)
      assert.is_nil(seconds, text)
      assert.is_string(why)
    end
  end)

  it("reads durations", function()
    local cases = {
      ["5m30s"] = 330, ["1h"] = 3600, ["1.5h"] = 5400, ["250ms"] = 0.25, ["0s"] = 0, ["1h1m1s"] = 3661,
    }
    for text, seconds in pairs(cases) do
      assert.equal(seconds, time.duration(text))
    end
    assert.equal("integer", math.type(time.duration "5m"))
    for _, text in ipairs { "", "5", "m", "5 m", "-5m", "5d", "5m30", "1e3s", "999999999999h" } do
      assert.is_nil(time.duration(text), text)
    end
  end)

  it("raises for an argument of another type", function()
    assert.error_matches(function() time.parse(5) end, "time.parse%(text%): expected a string, got number")
    assert.error_matches(function() time.format "x" end, "expected seconds since 1970")
    assert.error_matches(function() time.duration(5) end, "expected a string")
    assert.error_matches(function() time.utc() end, "expected a table")
  end)
end)
