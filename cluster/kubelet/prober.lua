--- Startup, liveness and readiness of a running container.
---
--- Rules: kubernetes/pkg/kubelet/prober, kuberuntime/kuberuntime_container.go (setTerminationGracePeriod). Until the
--- startup probe has succeeded the others wait.
local host = require "cluster.host"

local M = {}

local KINDS = { { "startupProbe", "Startup" }, { "livenessProbe", "Liveness" }, { "readinessProbe", "Readiness" } }


local function set_ready(record, callbacks, ready)
  if record.ready ~= ready then
    record.ready = ready
    callbacks.changed()
  end
end


-- Acts on a probe that has succeeded or failed often enough in a row.
local function verdict(record, callbacks, probe, kind, ok)
  if kind == "Readiness" then
    set_ready(record, callbacks, ok)
  elseif kind == "Startup" and ok then
    record.started = true
    M.stop(record)
    M.start(record, callbacks)
    callbacks.changed()
  elseif not ok then
    M.stop(record)
    callbacks.kill(("failed %s probe, will be restarted"):format(kind:lower()), probe.terminationGracePeriodSeconds)
  end
end


-- One probe: asks, counts, and asks again.
local function run(record, callbacks, probe, kind)
  local period, count, last = probe.periodSeconds or 10, 0, nil
  local timers = record.probe_timers
  local ask

  local function answered(ok, message)
    if record.probe_timers ~= timers or not timers[kind] then
      return -- stopped meanwhile
    end
    count = last == ok and count + 1 or 1
    last = ok
    if not ok then
      callbacks.unhealthy(kind, message)
    end
    timers[kind] = host.after(period, ask)
    if count == (ok and probe.successThreshold or probe.failureThreshold or (ok and 1 or 3)) then
      verdict(record, callbacks, probe, kind, ok)
    end
  end

  function ask()
    record.handle:probe(probe, answered)
  end
  timers[kind] = host.after(probe.initialDelaySeconds or 0, ask)
end


--- Begins to probe a container that has started.
--- @param callbacks table { changed = fn(), unhealthy = fn(kind, message), kill = fn(why, seconds) }; seconds: that the
---   probe gives the container to end, or nil
function M.start(record, callbacks)
  local spec = record.spec
  record.probe_timers = {}
  record.started = record.started or spec.startupProbe == nil
  record.ready = record.started and spec.readinessProbe == nil
  for _, entry in ipairs(KINDS) do
    local probe, is_startup = spec[entry[1]], entry[1] == "startupProbe"
    if probe and is_startup == not record.started then
      run(record, callbacks, probe, entry[2])
    end
  end
end


--- Probes a container that is told to end for its readiness only: it may serve until it has ended.
function M.stop_killing(record)
  local timers = record.probe_timers or {}
  for _, kind in ipairs { "Startup", "Liveness" } do
    if timers[kind] then
      timers[kind]:stop()
      timers[kind] = nil
    end
  end
end


--- Probes no more.
function M.stop(record)
  for _, timer in pairs(record.probe_timers or {}) do
    timer:stop()
  end
  record.probe_timers = nil
end


return M
