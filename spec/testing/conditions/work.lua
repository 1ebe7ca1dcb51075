-- A script whose reconciles go wrong as their object's mode says: for conditions_test.lua.
local moonloop = require "moonloop"

local Work = moonloop.kind("example.com/v1", "Work")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local modes = {}

function modes.boom(_, ctx)
  error("boom at " .. ctx.now())
end

function modes.refused(_, ctx)
  assert(ctx.ensure { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "Upper" } })
end

function modes.applies(work, ctx)
  ctx.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = work.metadata.name } }
end

function modes.odd()
  return { status = { phase = "ODD" } }
end

function modes.invalid(_, ctx)
  return ctx.invalid("spec.mode", "not that one", { status = { phase = "BAD" } })
end

function modes.terminal(_, ctx)
  return ctx.terminal("never", { conditions = { Ready = { status = false, reason = "Never" } } })
end

return moonloop.controller {
  name = "work",
  reconciles = Work,
  owns = { ConfigMap },

  reconcile = function(work, ctx)
    local mode = modes[work.spec.mode]
    return mode and mode(work, ctx) or { status = { phase = "FINE" } }
  end,
}
