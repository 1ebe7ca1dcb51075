--- Cells of a pod: its status column is a summary of all its containers.
--- Rules: kubernetes/pkg/printers/internalversion/printers.go (printPod).
local age = require "cluster.apiserver.tables.age"
local host = require "cluster.host"
local text = require "cluster.apiserver.tables.text"


local function row_condition(reason, message)
  return host.json.array { { type = "Completed", status = "True", reason = reason, message = message } }
end


local ROW_CONDITIONS = {
  Succeeded = row_condition("Succeeded", "The pod has completed successfully."),
  Failed = row_condition("Failed", "The pod failed."),
}


-- How a container ended, in a word; `prefix` stands before it.
local function ending(terminated, prefix)
  if terminated.reason and terminated.reason ~= "" then
    return prefix .. terminated.reason
  elseif (terminated.signal or 0) ~= 0 then
    return ("%sSignal:%d"):format(prefix, terminated.signal)
  end
  return ("%sExitCode:%d"):format(prefix, terminated.exitCode or 0)
end


-- Adds a container's restarts to a count; `at` becomes when the last container ended before it was restarted.
local function count_restarts(count, container)
  count.number = count.number + (container.restartCount or 0)
  local before = container.lastState and container.lastState.terminated
  if before and (before.finishedAt or "") > count.at then
    count.at = before.finishedAt
  end
end


-- Init containers that run beside the others.
local function sidecars_of(spec)
  local set, count = {}, 0
  for _, container in ipairs(spec.initContainers or {}) do
    if container.restartPolicy == "Always" then
      set[container.name] = true
      count = count + 1
    end
  end
  return set, count
end


-- Why initialization is not over because of this container, or nil. `number` of them have ended before.
local function unfinished(container, number, total)
  local state = container.state or {}
  local waiting = state.waiting and state.waiting.reason or ""
  if state.terminated then
    return ending(state.terminated, "Init:")
  elseif waiting ~= "" and waiting ~= "PodInitializing" then
    return "Init:" .. waiting
  end
  return ("Init:%d/%d"):format(number, total)
end


-- Reads the statuses of init containers. `view` collects restarts, those of sidecars apart, and how many are ready.
local function read_init(pod, view)
  local total = #(pod.spec.initContainers or {})
  for i, container in ipairs(pod.status.initContainerStatuses or {}) do
    local is_sidecar = view.sidecars[container.name]
    count_restarts(view.restarts, container)
    if is_sidecar then
      count_restarts(view.sidecar_restarts, container)
    end
    local ended = container.state and container.state.terminated
    if not (ended and (ended.exitCode or 0) == 0) then
      if not (is_sidecar and container.started) then
        view.reason = unfinished(container, i - 1, total)
        return true
      end
      view.ready = view.ready + (container.ready and 1 or 0)
    end
  end
  return false
end


-- The last container that waits or has ended names the reason.
local function read_container(container, view)
  local state = container.state or {}
  if state.waiting and (state.waiting.reason or "") ~= "" then
    view.reason = state.waiting.reason
  elseif state.terminated then
    view.reason = ending(state.terminated, "")
    if (state.terminated.exitCode or 0) ~= 0 then
      view.failure = view.reason
    end
  elseif container.ready and state.running then
    view.running = true
    view.ready = view.ready + 1
  end
end


local function read_containers(pod, view)
  view.restarts = view.sidecar_restarts
  local statuses = pod.status.containerStatuses or {}
  for i = #statuses, 1, -1 do
    count_restarts(view.restarts, statuses[i])
    read_container(statuses[i], view)
  end
  if view.reason ~= "Completed" then
    return
  end
  if view.running and text.condition(pod.status.conditions, "Ready") == "True" then
    view.reason = "Running"
  elseif view.failure then
    view.reason = view.failure
  elseif view.running then
    view.reason = "NotReady"
  end
end


local function first_reason(status)
  local _, scheduled = text.condition(status.conditions, "PodScheduled")
  if scheduled and scheduled.reason == "SchedulingGated" then
    return "SchedulingGated"
  end
  return status.reason and status.reason ~= "" and status.reason or status.phase or ""
end


local function view_of(pod)
  local status = pod.status
  local sidecars, count = sidecars_of(pod.spec)
  local view = {
    reason = first_reason(status), ready = 0, total = #(pod.spec.containers or {}) + count, sidecars = sidecars,
    restarts = { number = 0, at = "" }, sidecar_restarts = { number = 0, at = "" },
  }
  if not read_init(pod, view) or text.condition(status.conditions, "Initialized") == "True" then
    read_containers(pod, view)
  end
  if pod.metadata.deletionTimestamp then
    if status.reason == "NodeLost" then
      view.reason = "Unknown"
    elseif status.phase ~= "Succeeded" and status.phase ~= "Failed" then
      view.reason = "Terminating"
    end
  end
  return view
end


local function restarts_text(restarts, now)
  if restarts.number ~= 0 and restarts.at ~= "" then
    return ("%d (%s ago)"):format(restarts.number, age.since(restarts.at, now))
  end
  return tostring(restarts.number)
end


local function gates(pod)
  local list = pod.spec.readinessGates or {}
  if #list == 0 then
    return "<none>"
  end
  local open = 0
  for _, gate in ipairs(list) do
    open = open + (text.condition(pod.status.conditions, gate.conditionType) == "True" and 1 or 0)
  end
  return ("%d/%d"):format(open, #list)
end


local function or_none(value)
  return value and value ~= "" and value or "<none>"
end


--- @return table cells in the order of kinds.lua, table|nil conditions of the row
return function(pod, now)
  pod.status = pod.status or {}
  local status, view = pod.status, view_of(pod)
  local first_ip = (status.podIPs or {})[1]
  return {
    pod.metadata.name, ("%d/%d"):format(view.ready, view.total), view.reason, restarts_text(view.restarts, now),
    age.of(pod, now), or_none(first_ip and first_ip.ip), or_none(pod.spec.nodeName),
    or_none(status.nominatedNodeName), gates(pod),
  }, ROW_CONDITIONS[status.phase]
end
