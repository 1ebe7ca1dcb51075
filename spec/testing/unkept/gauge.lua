-- A script whose writes the server takes and changes, as its object's mode says: for unkept_test.lua.
local moonloop = require "moonloop"

local Gauge = moonloop.kind("example.com/v1", "Gauge")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Deployment = moonloop.kind("apps/v1", "Deployment")

-- Names that the schemas do not have. They are computed: a script with such a name in its text does not load.
local PHSE, COLOUR, TYPO = ("PHSE"):lower(), ("COLOUR"):lower(), ("TYPO"):lower()

local modes = {}

function modes.misspelt()
  return { status = { phase = "FINE", [PHSE] = "FINE" } }
end

-- Another value each time.
function modes.clock(gauge)
  return { status = { phase = "FINE", ticks = gauge.spec.tick } }
end

function modes.inner()
  return { status = { phase = "FINE", marks = { { at = 1, [COLOUR] = "blue", color = "blue" } } } }
end

-- The server adds colors, and a unit.
function modes.defaults()
  return { status = { phase = "FINE", unit = moonloop.null, marks = { { at = 1 }, { at = 2 } } } }
end

-- A field that changed is written, together with one that is not kept.
function modes.both(gauge)
  return { status = { phase = "FINE", [PHSE] = "FINE", tick = gauge.spec.tick } }
end

function modes.conditions()
  return { status = { phase = "FINE" }, conditions = { Ready = { status = true } } }
end

local function deployment(name, typo)
  return {
    apiVersion = "apps/v1", kind = "Deployment", metadata = { name = name },
    spec = { replicas = 0, selector = { matchLabels = { app = name } }, template = {
      metadata = { labels = { app = name } },
      spec = { containers = {
        { name = "c", image = "i", resources = { requests = { cpu = "1000m" } }, [TYPO] = typo },
      } },
    } },
  }
end

function modes.patch(gauge, ctx)
  local owned = ctx.ensure { apiVersion = "v1", kind = "ConfigMap", metadata = { name = gauge.metadata.name } }
  ctx.patch(owned, { data = { a = "b" }, [TYPO] = "c" })
  ctx.patch(gauge, { spec = { [TYPO] = 1 } })
  ctx.patch(ctx.ensure(deployment(gauge.metadata.name .. "-d")), { spec = { paused = moonloop.null, template = {
    spec = { nodeSelector = moonloop.null, dnsPolicy = moonloop.null },
  } } })
  return { status = { phase = "FINE" } }
end

function modes.ensure(gauge, ctx)
  ctx.ensure(deployment(gauge.metadata.name, "x"))
  return { status = { phase = "FINE" } }
end

function modes.apply(gauge, ctx)
  ctx.apply(deployment(gauge.metadata.name))
  return { status = { phase = "FINE" } }
end

function modes.children(gauge)
  return { status = { phase = "FINE" }, children = { deployment(gauge.metadata.name) } }
end

return moonloop.controller {
  name = "gauges",
  reconciles = Gauge,
  owns = { ConfigMap, Deployment },
  wakes = "all",

  reconcile = function(gauge, ctx)
    return modes[gauge.spec.mode](gauge, ctx)
  end,
}
