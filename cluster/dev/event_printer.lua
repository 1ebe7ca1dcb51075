--- Prints on standard output what happens to objects, one line for each relevant change: phases, conditions, deletions,
--- warnings, the first lines that containers print, and what scripts make and delete.
local host = require "cluster.host"
local line_limits = require "cluster.dev.line_limits"

local M = {}

-- Kinds whose changes are printed; beside them, all custom ones.
local BUILT_IN = { ["pods"] = true, ["jobs.batch"] = true, ["deployments.apps"] = true, ["statefulsets.apps"] = true }

-- The conditions that say most of a kind without phase; the first that there is counts.
local CONDITION_TYPES = { "Ready", "Available", "Complete", "Failed", "Reconciled" }

-- Scripts have managers of these names (ML_MANAGER_PREFIX in host/script/script.h), manifests have that of apply.lua.
local OF_HOST = '"manager":"moonloop-'
local SCRIPT, MANIFEST = '"manager":"(moonloop%-[^"]*)"', "moonloop-dev"

local FIRST_LINES = 10 -- of a container, unless --logs asks for more
local LINES_MAX = 1000 -- of a container in a second, if --logs asks for it
local KIND_LINES_MAX = 50 -- about objects of one kind in a second
-- Bytes of what is printed in one line; kubectl shows all of it.
local NAME_MAX, TEXT_MAX, PROBLEM_MAX = 600, 1000, 4000

local last_texts = {} -- uid → what was printed last
local limits = line_limits.new()
local asked_logs = {} -- beginnings of names; "all", "none"


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


--- Prints one line; texts of objects, manifests and containers cannot begin another one.
local function print_line(what, text)
  local time = host.timestamp():match "T(.*)Z"
  io.stdout:write(("%s  %-28s %s\n"):format(time, cut(what, NAME_MAX), cut(text, TEXT_MAX)))
  io.stdout:flush()
end


M.print_line = print_line


local function name_of(res, object)
  local namespace = object.metadata.namespace
  local prefix = namespace and namespace ~= "default" and namespace .. "/" or ""
  return ("%s%s/%s"):format(prefix, res.singular, object.metadata.name)
end


-- Prints a line about an object, unless there are too many about its kind.
local function print_object(res, object, text)
  local has_room = limits:in_second(res.id, KIND_LINES_MAX, function(count)
    print_line(res.plural, ("… %d lines more; see kubectl get %s"):format(count, res.plural))
  end)
  if has_room then
    print_line(name_of(res, object), text)
  end
end


--- An object was applied. @param verdict string "created", "configured" or "unchanged"
function M.print_applied(res, object, verdict)
  print_object(res, object, verdict)
end


--- Something in a manifest is wrong.
function M.problem(where, message)
  io.stderr:write(cut(where, NAME_MAX), ": ", cut(message, PROBLEM_MAX), "\n")
end


-- How much of a pod's output is printed. @return string "all", "none" or "first"
local function how_much(pod)
  local rest = "first"
  for _, name in ipairs(asked_logs) do
    if name == "none" then
      rest = "none"
    elseif name == "all" or pod.metadata.name:sub(1, #name) == name then
      return "all"
    end
  end
  return rest
end


-- Counts a line of a container. @return boolean whether to print it
local function has_room(pod, container, say)
  local much, uid = how_much(pod), pod.metadata.uid
  if much == "all" then
    return limits:in_second(uid .. "/" .. container, LINES_MAX, say)
  end
  return much == "first" and limits:at_first(uid, container, FIRST_LINES, say)
end


--- A container printed a line.
function M.container_line(pod, container, line)
  local what = #pod.spec.containers == 1 and pod.metadata.name or pod.metadata.name .. "/" .. container
  local is_printed = has_room(pod, container, function(count)
    print_line(what, ("| … %d lines more; see kubectl logs"):format(count))
  end)
  if is_printed then
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


local function print_warning(entry)
  local object = entry.fields.type == "Warning" and host.json.decode(entry.text)
  local about = object and object.involvedObject
  local has_place = about and limits:in_second("events", KIND_LINES_MAX, function(count)
    print_line("events", ("! … %d warnings more; see kubectl get events"):format(count))
  end)
  if has_place then
    print_line(("%s/%s"):format((about.kind or ""):lower(), about.name or ""),
      ("! %s: %s"):format(object.reason or "", object.message or ""))
  end
end


-- The part of an object's metadata that its entry has.
local function known_of(entry)
  return { metadata = { name = entry.name, namespace = entry.namespace ~= "" and entry.namespace or nil } }
end


-- Returns true if a script has written fields of the object.
local function is_of_script(event)
  local text = event.entry.text
  if not text:find(OF_HOST, 1, true) then
    return false -- most objects, and sooner than a pattern says so
  end
  for manager in text:gmatch(SCRIPT) do
    if manager ~= MANIFEST then
      return true
    end
  end
  return false
end


-- An object of a kind whose changes are not printed.
local function print_written(res, event)
  if event.type ~= "MODIFIED" and is_of_script(event) then
    print_object(res, known_of(event.entry), event.type == "ADDED" and "created" or "deleted")
  end
end


local function print_change(res, event)
  local entry = event.entry
  if event.type == "DELETED" then
    last_texts[entry.uid] = nil
    limits:forget(entry.uid)
    print_object(res, known_of(entry), "deleted")
    return
  end
  if event.id == "pods" and entry.deleting then
    return -- its last phase says only that it was deleted
  end
  local object = host.json.decode(entry.text)
  local text = summary(object)
  if text and text ~= last_texts[entry.uid] then
    last_texts[entry.uid] = text
    print_object(res, object, text)
  elseif event.type == "ADDED" and is_of_script(event) then
    print_object(res, object, "created")
  end
end


--- Begins to print.
--- @param logs table the values of --logs
function M.start(server, logs)
  asked_logs = logs
  server.store:subscribe(function(event)
    if event.id == "events" and event.type ~= "DELETED" then
      return print_warning(event.entry)
    end
    local res = server.registry:by_id(event.id)
    if res and (BUILT_IN[event.id] or not res.builtin) then
      print_change(res, event)
    elseif res then
      print_written(res, event)
    end
  end)
end


return M
