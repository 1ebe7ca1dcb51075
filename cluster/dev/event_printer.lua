--- Prints on standard output what happens to objects, one line for each relevant change: phases, conditions, deletions,
--- warnings, and what containers print.
local host = require "cluster.host"

local M = {}

-- Kinds whose changes are printed; beside them, all custom ones.
local BUILT_IN = { ["pods"] = true, ["jobs.batch"] = true, ["deployments.apps"] = true, ["statefulsets.apps"] = true }

-- The conditions that say most of a kind without phase; the first that there is counts.
local CONDITION_TYPES = { "Ready", "Available", "Complete", "Failed", "Reconciled" }

local LINES_MAX = 100 -- of one container in a second
-- Bytes of what is printed in one line; kubectl shows all of it.
local NAME_MAX, TEXT_MAX, PROBLEM_MAX = 600, 1000, 4000

local last_texts = {} -- uid → what was printed last
local container_lines = {} -- container → { lines = integer } of this second


-- At most so much of a text, and how much is left out.
local function cut(text, max)
  if #text <= max then
    return host.escape(text)
  end
  local stop = max
  while stop > max - 4 and text:byte(stop + 1) & 0xC0 == 0x80 do -- not within a character
    stop = stop - 1
  end
  return ("%s… (%d bytes more)"):format(host.escape(text:sub(1, stop)), #text - stop)
end


-- Prints one line; texts of objects, manifests and containers cannot begin another one.
local function print_line(what, text)
  local time = host.timestamp():match "T(.*)Z"
  io.stdout:write(("%s  %-28s %s\n"):format(time, cut(what, NAME_MAX), cut(text, TEXT_MAX)))
  io.stdout:flush()
end


local function name_of(res, object)
  local namespace = object.metadata.namespace
  local prefix = namespace and namespace ~= "default" and namespace .. "/" or ""
  return ("%s%s/%s"):format(prefix, res.singular, object.metadata.name)
end


--- An object was applied. @param verdict string "created", "configured" or "unchanged"
function M.print_applied(res, object, verdict)
  print_line(name_of(res, object), verdict)
end


--- Something in a manifest is wrong.
function M.problem(where, message)
  io.stderr:write(cut(where, NAME_MAX), ": ", cut(message, PROBLEM_MAX), "\n")
end


-- Counts a line of `what`. @return boolean whether it is to be printed; for those that are not, their number is printed
-- once a second
local function has_room(what)
  local second = container_lines[what]
  if not second then
    second = { lines = 0 }
    container_lines[what] = second
    host.after(1, function()
      container_lines[what] = nil
      if second.lines > LINES_MAX then
        print_line(what, ("| … %d lines more; see kubectl logs"):format(second.lines - LINES_MAX))
      end
    end)
  end
  second.lines = second.lines + 1
  return second.lines <= LINES_MAX
end


--- A container printed a line.
function M.container_line(pod, container, line)
  local what = #pod.spec.containers == 1 and pod.metadata.name or pod.metadata.name .. "/" .. container
  if has_room(what) then
    print_line(what, "| " .. line:match "^%S+ %u (.*)\n$")
  end
end


-- Objects of custom kinds may have anything anywhere.
local function text_in(value)
  return type(value) == "string" and value or nil
end


-- The tables in a list.
local function tables_in(value)
  local list = {}
  for _, item in ipairs(type(value) == "table" and value or list) do
    if type(item) == "table" then
      list[#list + 1] = item
    end
  end
  return list
end


local function condition_of(status)
  local by_type = {}
  for _, condition in ipairs(tables_in(status.conditions)) do
    if text_in(condition.type) and text_in(condition.status) then
      by_type[condition.type] = condition
    end
  end
  for _, type in ipairs(CONDITION_TYPES) do
    local condition = by_type[type]
    if condition and condition.status ~= "Unknown" then
      local why = condition.status ~= "True" and text_in(condition.message) or text_in(condition.reason)
      return ("%s=%s%s"):format(type, condition.status, why and " (" .. why .. ")" or "")
    end
  end
end


-- How the last run of a container ended, in front of why it waits; "" if it never ran.
local function last_end_of(container)
  local over = type(container.lastState) == "table" and container.lastState.terminated
  local code = type(over) == "table" and math.tointeger(over.exitCode)
  if not code then
    return ""
  end
  local why = text_in(over.message) or over.reason ~= "Error" and text_in(over.reason)
  return (" after exit code %d%s"):format(code, why and (" (%s)"):format(why:gsub("%s+$", "")) or "")
end


local function waiting_of(status)
  for _, list in ipairs { "initContainerStatuses", "containerStatuses" } do
    for _, container in ipairs(tables_in(status[list])) do
      local waiting = type(container.state) == "table" and container.state.waiting
      if type(waiting) == "table" and text_in(waiting.message) then
        return ("%s%s: %s"):format(text_in(waiting.reason) or "", last_end_of(container), waiting.message)
      end
    end
  end
end


-- The object in a few words, or nil.
local function summary(object)
  local status = object.status
  if type(status) ~= "table" then
    return nil
  end
  local phase = text_in(status.phase)
  if phase and phase ~= "" then
    local why = waiting_of(status) or text_in(status.message)
    return why and phase .. ": " .. why or phase
  end
  return condition_of(status)
end


local function print_warning(object)
  local about = object.involvedObject
  if object.type == "Warning" and about then
    print_line(("%s/%s"):format((about.kind or ""):lower(), about.name or ""),
      ("! %s: %s"):format(object.reason or "", object.message or ""))
  end
end


local function print_change(res, event)
  local entry = event.entry
  if event.type == "DELETED" then
    last_texts[entry.uid] = nil
    print_line(name_of(res, { metadata = { name = entry.name, namespace = entry.namespace } }), "deleted")
    return
  end
  local object = host.json.decode(entry.text)
  local is_going = event.id == "pods" and entry.deleting -- its last phase says only that it was deleted
  local text = not is_going and summary(object)
  if text and text ~= last_texts[entry.uid] then
    last_texts[entry.uid] = text
    print_line(name_of(res, object), text)
  end
end


--- Begins to print.
function M.start(server)
  server.store:subscribe(function(event)
    if event.id == "events" and event.type ~= "DELETED" then
      return print_warning(host.json.decode(event.entry.text))
    end
    local res = server.registry:by_id(event.id)
    if res and (BUILT_IN[event.id] or not res.builtin) then
      print_change(res, event)
    end
  end)
end


return M
