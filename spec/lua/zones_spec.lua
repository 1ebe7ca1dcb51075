-- Time zones: moonloop.zone and its rules, and the functions of moonloop.time that take a zone.
local sandbox = require "sandbox"
local zone = require "moonloop.zone"
local zone_rule = require "moonloop.zone_rule"

local FOLDER = "/usr/share/zoneinfo/"


local function bytes_of(name)
  local file = assert(io.open(FOLDER .. name, "rb"))
  local bytes = file:read "a"
  file:close()
  return bytes
end


-- Runs statements with the cases of each zone of the table, a list of lines, and returns how many cases there were.
local function with_table(statements)
  local zones, count = {}, 0
  for line in io.lines "spec/lua/zone_instants.txt" do
    local name = line:match "^zone (.*)$"
    if name then
      zones[#zones + 1] = { name = name }
    elseif not line:find "^#" then
      table.insert(zones[#zones], line)
    end
  end
  for _, cases in ipairs(zones) do
    count = count + sandbox.run(("local zone, count = %q, 0 for line in (%q):gmatch '[^\\n]+' do %s end return count")
      :format(cases.name, table.concat(cases, "\n"), statements))
  end
  return count, #zones
end


-- The answers of Go's package time and of robfig/cron: `make cron-instants` makes them anew, as after a change of the
-- machine's tzdata that concerns one of them.
describe("The times of forty zones are those of Kubernetes' own libraries:", function()
  it("instants as clocks show them, and back", function()
    local cases, zones = with_table [[
      local at, text, name, offset, weekday = line:match "^at (%S+) (%S+) (%S+) (%S+) (%S+)$"
      if at then
        at, count = math.tointeger(at), count + 1
        local fields = time.fields(at, zone)
        assert(time.format(at, zone) == text, line)
        assert(fields.abbreviation == name and fields.offset == tonumber(offset), line)
        assert(fields.weekday == tonumber(weekday), line)
        assert(time.instant(fields, zone) == at, line)
      end
    ]]
    assert.same({ 800, 40 }, { cases, zones })
  end)

  it("times of clocks, also those that come twice or not at all", function()
    local cases = with_table [[
      local text, how, first, second = line:match "^wall (%S+) (%S+) (%S+) ?(%S*)$"
      if text then
        count = count + 1
        local year, month, day, hour, min, sec = text:match "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)$"
        local date = { year = year, month = month, day = day, hour = hour, min = min, sec = sec }
        local at, said = time.instant(date, zone)
        assert(at == tonumber(first), line)
        assert(said == ({ twice = "repeated", skipped = "skipped" })[how], line)
        date.later = true
        assert(time.instant(date, zone) == tonumber(second ~= "" and second or first), line)
      end
    ]]
    assert.equal(630, cases)
  end)

  it("schedules, forwards and backwards", function()
    local cases = with_table [[
      local at, next, last, expression = line:match "^cron (%S+) (%S+) (%S+) (.*)$"
      if at then
        at, count = math.tointeger(at), count + 1
        assert(time.cron(expression, at, zone) == tonumber(next), line)
        assert(time.cron_before(expression, at, zone) == tonumber(last), line)
      end
    ]]
    assert.equal(570, cases)
  end)
end)


describe("time.zone", function()
  it("is the name of a zone that there is", function()
    assert.equal("Europe/Berlin", sandbox.run "return time.zone 'Europe/Berlin'")
    assert.equal("UTC", sandbox.run "return time.zone 'UTC'")
  end)

  it("refuses all other names, which read no other file", function()
    for _, name in ipairs {
      "", "Europe/Brelin", "Europe", "europe/berlin ", "/etc/passwd", "../../../etc/passwd", "Europe/../Europe/Berlin",
      "Europe//Berlin", "Europe/Berlin/", "Europe/Berlin\0", "zone.tab", "CET\n", ("A"):rep(65), "+02:00", "24:00",
    } do
      local found, why = sandbox.run(("return time.zone(%q)"):format(name))
      assert.is_nil(found, name)
      assert.equal("unknown time zone " .. name .. ': use a name of the IANA database, such as "Europe/Berlin"', why)
    end
  end)

  it("has the message of the functions that take a zone", function()
    for _, call in ipairs { "time.instant({ year = 2026, month = 1, day = 1 }, 'Mars/Base')",
      "time.cron('@daily', 0, 'Mars/Base')", "time.cron_before('@daily', 0, 'Mars/Base')" } do
      local found, why = sandbox.run("return " .. call)
      assert.is_nil(found)
      assert.matches("^unknown time zone Mars/Base: use a name", why)
    end
    for _, call in ipairs { "time.fields(0, 'Mars/Base')", "time.format(0, 'Mars/Base')" } do
      assert.matches("^t%.lua:1: time%.%l+%(seconds %[, zone%]%): unknown time zone Mars/Base: use a name",
        sandbox.refusal(sandbox.run, call))
    end
  end)
end)


describe("A time of a zone", function()
  it("is refused when no clock counts so", function()
    for date, why in pairs {
      ["year = 2026, month = 3, day = 29, hour = 24"] = "hour is 24; it goes from 0 to 23",
      ["year = 2026, month = 2, day = 29"] = "day is 29; it goes from 1 to 28",
      ["year = 2026, month = 3"] = "day is not a whole number",
    } do
      assert.same({ nil, why }, { sandbox.run(("return time.instant({ %s }, 'Europe/Berlin')"):format(date)) })
    end
  end)

  it("follows the rule behind the table", function()
    assert.equal("2400-07-01T02:00:00+02:00", sandbox.run [[
      return time.format(time.parse "2400-07-01T00:00:00Z", "Europe/Berlin") ]])
  end)

  it("is one of UTC without a zone", function()
    assert.same({ 1970, 4, 0, "UTC" }, { sandbox.run [[
      local at = time.fields(0.5)
      return at.year, at.weekday, at.offset, at.abbreviation ]] })
  end)

  it("raises for an argument of another type", function()
    for call, message in pairs {
      ["time.zone()"] = 'time.zone%(name%): zone: expected a name like "Europe/Berlin", got nil',
      ["time.fields('x')"] = "expected seconds since 1970 in the years 1 to 9999",
      ["time.fields(0, 5)"] = 'zone: expected a name like "Europe/Berlin", got number',
      ["time.format(0, {})"] = 'zone: expected a name like "Europe/Berlin", got table',
      ["time.instant(5, 'UTC')"] = "expected a table",
      ["time.instant({})"] = 'zone: expected a name like "Europe/Berlin", got nil',
      ["time.cron('@daily', 0, 5)"] = 'zone: expected a name like "Europe/Berlin", got number',
      ["time.cron_before(5, 0)"] = 'expected an expression like "0 3 %* %* %*", got number',
      ["time.cron_before('@daily')"] = "expected an instant, seconds since 1970 in the years 1 to 9999",
    } do
      assert.matches("^t%.lua:1: .*" .. message, sandbox.refusal(sandbox.run, call))
    end
  end)
end)


describe("A schedule backwards", function()
  local function before(expression, instant)
    local text, why = sandbox.run(([[
      local at, why = time.cron_before(%q, time.parse %q)
      return at and time.format(at), why ]]):format(expression, instant))
    return text or why
  end

  it("has its last time", function()
    for _, case in ipairs {
      { "* * * * *", "2026-01-01T00:00:00Z", "2025-12-31T23:59:00Z" },
      { "* * * * *", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00Z" },
      { "0 3 * * *", "2026-01-01T03:00:00Z", "2025-12-31T03:00:00Z" },
      { "0 3 * * *", "2026-01-01T03:00:01Z", "2026-01-01T03:00:00Z" },
      { "0 0 29 2 *", "2104-02-29T00:00:00Z", "2096-02-29T00:00:00Z" },
      { "0 0 13 * fri", "2026-01-02T00:00:00Z", "2025-12-26T00:00:00Z" },
      { "@every 90s", "2026-01-01T00:00:00Z", "2025-12-31T23:58:30Z" },
      { "0 0 30 feb *", "2026-01-01T00:00:00Z", "'0 0 30 feb *' never came" },
      { "@yearly", "0001-01-01T00:00:00Z", "'@yearly' never came" },
      { "61 * * * *", "2026-01-01T00:00:00Z", "minute: end of range (61) above maximum (59): 61" },
    } do
      assert.equal(case[3], before(case[1], case[2]), case[1])
    end
  end)
end)


describe("A file of a zone", function()
  it("is refused when anything of it is missing", function()
    for _, name in ipairs { "Europe/Berlin", "America/New_York", "Etc/GMT+5" } do
      local bytes = bytes_of(name)
      assert.is_table(zone.read(bytes))
      for length = 0, #bytes - 1 do
        local found, why = zone.read(bytes:sub(1, length))
        assert.is_nil(found, ("%s, %d bytes"):format(name, length))
        assert.is_truthy(why:find "^it is no file" or why:find "^its table or its rule is damaged")
      end
    end
  end)

  -- A file that is read anyway answers each question.
  it("raises nothing, whatever its bytes are", function()
    local bytes, refused = bytes_of "Europe/Berlin", 0
    for at = 1, #bytes do
      for _, byte in ipairs { 0, 255 } do
        local found = zone.read(bytes:sub(1, at - 1) .. string.char(byte) .. bytes:sub(at + 1))
        refused = refused + (found and 0 or 1)
        for _, instant in ipairs { -62135596800, -2000000000, 0, 1774746000, 253402300799 } do
          assert.is_true(not found or math.type(zone.at(found, instant)) == "integer")
        end
      end
    end
    assert.is_true(refused > 200)
  end)

  it("of version 1 is read, and one of leap seconds is not", function()
    local function header(version, leaps, times, types, chars)
      return "TZif" .. version .. ("\0"):rep(15) .. string.pack(">I4I4I4I4I4I4", 0, 0, leaps, times, types, chars)
    end
    local block = string.pack(">i4B", 1000, 1) .. string.pack(">i4BBi4BB", 3600, 0, 0, 7200, 1, 2) .. "A\0B\0"
    local found = assert(zone.read(header("\0", 0, 1, 2, 4) .. block))
    assert.same({ 3600, "A" }, { zone.at(found, 999) })
    assert.same({ 7200, "B" }, { zone.at(found, 1000) })
    local none, why = zone.read(header("\0", 1, 1, 2, 4) .. block .. ("\0"):rep(8))
    assert.is_nil(none)
    assert.equal("it counts leap seconds, which instants of Kubernetes do not have", why)
    assert.is_nil(zone.read(header("5", 0, 1, 2, 4) .. block))
  end)

  it("is read once, and forgotten when there are many", function()
    local read = {}
    local find = zone.finder(function(name)
      read[name] = (read[name] or 0) + 1
      return bytes_of "Europe/Berlin"
    end)
    assert.equal(find "A", find "A")
    for i = 1, 32 do
      assert.is_table(find("B" .. i))
    end
    assert.is_table(find "A")
    assert.same({ 2, 1 }, { read.A, read.B32 })
  end)

  it("that is damaged is told with its name", function()
    local found, why = zone.finder(function() return "TZif" end)("A/B")
    assert.is_nil(found)
    assert.equal("time zone A/B: it is no file of time zones (TZif), or not all of one; install tzdata anew", why)
  end)
end)


describe("The rule of a zone", function()
  local function offset(rule, instant)
    return (zone_rule.at(assert(zone_rule.read(rule)), sandbox.run(("return time.parse %q"):format(instant))))
  end

  it("tells summer from winter", function()
    local berlin, sydney = "CET-1CEST,M3.5.0,M10.5.0/3", "AEST-10AEDT,M10.1.0,M4.1.0/3"
    assert.equal(3600, offset(berlin, "2050-03-27T00:59:59Z"))
    assert.equal(7200, offset(berlin, "2050-03-27T01:00:00Z"))
    assert.equal(7200, offset(berlin, "2050-10-30T00:59:59Z"))
    assert.equal(3600, offset(berlin, "2050-10-30T01:00:00Z"))
    assert.equal(39600, offset(sydney, "2050-01-01T00:00:00Z"))
    assert.equal(36000, offset(sydney, "2050-07-01T00:00:00Z"))
    assert.equal(-18000, offset("EST5", "2050-07-01T00:00:00Z"))
    assert.equal(19800, offset("<+0530>-5:30", "2050-07-01T00:00:00Z"))
    assert.equal(-14400, offset("EST5EDT,J60,J300", "2048-03-01T12:00:00Z"))
    assert.equal(-18000, offset("EST5EDT,J60,J300", "2048-02-29T12:00:00Z"))
    assert.equal(-14400, offset("EST5EDT,59,299", "2048-02-29T12:00:00Z"))
    assert.equal(-10800, offset("<-03>3<-02>,M3.5.0/-2,M10.5.0/-1", "2050-03-27T00:59:59Z"))
    assert.equal(-7200, offset("<-03>3<-02>,M3.5.0/-2,M10.5.0/-1", "2050-03-27T01:00:00Z"))
    for _, instant in ipairs { "2050-01-01T00:00:00Z", "2050-12-31T23:59:59Z", "2051-01-01T04:00:00Z" } do
      assert.equal(-14400, offset("XXX3EDT4,0/0,J365/23", instant))
    end
  end)

  it("is none with anything else in it", function()
    for _, text in ipairs {
      "", "nonsense", "CE-1", "CET", "CET-25", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0",
      "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,J0,J300", "CET-1CEST,J1,J366",
      "CET-1CEST,1,366",
      "CET-1CEST,M3.5.0/168,M10.5.0", "CET-1CEST,M3.5.0/2:60,M10.5.0", "CET-1CEST,M3.5.0,M10.5.0,", "<C\n>1",
    } do
      assert.is_nil(zone_rule.read(text), text)
    end
  end)
end)
