-- Time zones: moonloop.zone and its rules.
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
