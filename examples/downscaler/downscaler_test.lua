local moonloop = require "moonloop"
local testing = require "moonloop.testing"
local time = require "moonloop.time"

local Deployment = moonloop.kind("apps/v1", "Deployment")
local HOURS, REPLICAS = "downscaler.moonloop.dev/hours", "downscaler.moonloop.dev/replicas"
local BERLIN = "Europe/Berlin"

describe("downscaler", function()
  local world

  -- A world whose clocks in Berlin show that time.
  local function begin(date)
    world = testing.world { now = time.instant(date, BERLIN) }
  end

  local function apply(hours, replicas)
    world.apply {
      apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "shop", annotations = { [HOURS] = hours } },
      spec = {
        replicas = replicas, selector = { matchLabels = { app = "shop" } },
        template = {
          metadata = { labels = { app = "shop" } }, spec = { containers = { { name = "c", image = "shop" } } },
        },
      },
    }
  end

  local function expect(replicas, remembered)
    world.expect(Deployment, "shop", { spec = { replicas = replicas } })
    assert.equal(remembered, world.get(Deployment, "shop").metadata.annotations[REPLICAS])
  end

  it("scales down in the evening and up in the morning, also over the weekend of summer time", function()
    begin { year = 2026, month = 3, day = 27, hour = 17 } -- a Friday; clocks go forward on Sunday
    apply("mon-fri 8-18 " .. BERLIN, 3)
    expect(3)
    world.advance "59m"
    expect(3)
    world.advance "1m"
    expect(0, "3")
    world.advance "60h" -- until 7:00 on Monday, as Sunday had 23 hours
    assert.equal("2026-03-30T07:00:00+02:00", time.format(world.now(), BERLIN))
    expect(0, "3")
    world.advance "1h"
    expect(3)
  end)

  it("is back as soon as nobody asks any more", function()
    begin { year = 2026, month = 3, day = 28 }
    apply("mon-fri 8-18 " .. BERLIN, 2)
    expect(0, "2")
    world.patch(Deployment, "shop", { metadata = { annotations = { [HOURS] = moonloop.null } } })
    world.advance "1s"
    expect(2)
  end)

  it("takes what somebody has scaled down for good as it is", function()
    begin { year = 2026, month = 3, day = 27, hour = 17 }
    apply("mon-fri 8-18 " .. BERLIN, 0)
    world.advance "3h"
    expect(0)
    world.advance "72h"
    expect(0)
  end)

  it("leaves a Deployment alone whose hours are none, and says why", function()
    for hours, why in pairs {
      ["always"] = 'expected days, hours and a zone, as in "mon-fri 8-18 Europe/Berlin"',
      ["mon-fri 8-24 Europe/Berlin"] = "hour: end of range (24) above maximum (23): 24",
      ["mon-fri 8-18 Europe/Brelin"] = "unknown time zone Europe/Brelin: use a name of the IANA database",
    } do
      begin { year = 2026, month = 3, day = 28 }
      apply(hours, 1)
      expect(1)
      world.advance "1s"
      local notes = {}
      for _, event in ipairs(world.events(Deployment, "shop")) do
        notes[event.reason] = event.note
      end
      assert.matches(why, notes.BadHours, 1, true)
    end
  end)
end)
