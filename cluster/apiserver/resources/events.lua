--- Events, in both of their groups: one store, two forms. They are stored in the older one.
---
--- Rules: kubernetes/pkg/apis/core/validation/events.go, pkg/apis/events/v1/conversion.go,
--- pkg/registry/core/event/strategy.go.
local cells = require "cluster.apiserver.tables.cells.event"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"
local status = require "cluster.apiserver.status"

local null = host.json.null

-- Field of the older form → its name in the newer form.
local RENAMED = {
  involvedObject = "regarding",
  message = "note",
  source = "deprecatedSource",
  firstTimestamp = "deprecatedFirstTimestamp",
  lastTimestamp = "deprecatedLastTimestamp",
  count = "deprecatedCount",
  reportingComponent = "reportingController",
}
-- Fields that the older form has even when they are empty.
local ALWAYS = { "reportingComponent", "reportingInstance" }

local TEXT_MAX, NOTE_MAX = 128, 1024


-- From the form of the store to that of events.k8s.io.
local function load(object)
  for old, new in pairs(RENAMED) do
    object[new], object[old] = object[old], nil
  end
  for _, name in ipairs { "reportingController", "reportingInstance" } do
    object[name] = object[name] ~= "" and object[name] or nil
  end
end


local function save(object)
  for old, new in pairs(RENAMED) do
    object[old], object[new] = object[new], nil
  end
  for _, name in ipairs(ALWAYS) do
    object[name] = object[name] or ""
  end
end


local function check_length(value, max, path, errors)
  if #(value or "") > max then
    errors[#errors + 1] = field.invalid(path, "", ("can have at most %d characters"):format(max))
  end
end


local function check_text(value, path, errors)
  if (value or "") == "" then
    errors[#errors + 1] = field.required(path, "")
  end
  check_length(value, TEXT_MAX, path, errors)
end


-- Checks the fields that an event with an eventTime must have, too.
local function check_timed(object, controller, errors)
  local name = object.reportingComponent or ""
  if name == "" then
    errors[#errors + 1] = field.required(controller, "")
  end
  check.each(errors, controller, name, names.qualified(name))
  check_text(object.reportingInstance, "reportingInstance", errors)
  check_text(object.action, "action", errors)
  check_text(object.reason, "reason", errors)
  check_length(object.message, NOTE_MAX, "message", errors)
end


-- Checks the rules of both forms; `controller` is the form's name for the controller.
local function check_event(object, controller)
  local errors, timed = {}, object.eventTime ~= null
  local own, other = object.metadata.namespace or "", object.involvedObject.namespace or ""
  local agrees = own == other
  if other == "" then
    agrees = own == "" or own == "default" or timed and own == "kube-system"
  elseif timed then
    agrees = true
  end
  if not agrees then
    errors[#errors + 1] = field.invalid("involvedObject.namespace", other, "does not match event.namespace")
  end
  if timed then
    check_timed(object, controller, errors)
  end
  check.each(errors, "namespace", own, names.subdomain(own))
  return errors
end


local function check_series(series, errors)
  if not series then
    return
  end
  if series.count < 2 then
    errors[#errors + 1] = field.invalid("series.count", "", "should be at least 2")
  end
  if series.lastObservedTime == null then
    errors[#errors + 1] = field.required("series.lastObservedTime", "")
  end
end


-- Checks that a new event leaves out the fields that the newer form only keeps for old events.
local function check_unset(object, errors)
  for _, name in ipairs { "firstTimestamp", "lastTimestamp" } do
    if object[name] ~= null then
      errors[#errors + 1] = field.invalid(name, "", "needs to be unset")
    end
  end
  if object.count then
    errors[#errors + 1] = field.invalid("count", "", "needs to be unset")
  end
  if next(object.source) then
    errors[#errors + 1] = field.invalid("source", "", "needs to be unset")
  end
end


-- The object in the form of the store, whose names the messages use.
local function stored(object)
  local copy = host.json.copy(object)
  save(copy)
  return copy
end


local function validate_new_form(object)
  object = stored(object)
  local errors = check_event(object, "reportingController")
  check_series(object.series, errors)
  if object.eventTime == null then
    errors[#errors + 1] = field.required("eventTime", "")
  end
  if object.type ~= "Normal" and object.type ~= "Warning" then
    errors[#errors + 1] = field.invalid("type", "", "has invalid value: " .. (object.type or ""))
  end
  check_unset(object, errors)
  return errors
end


-- In upstream's order; it checks `reason` twice, and so an answer has two causes for it.
local IMMUTABLE = {
  "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type",
  "eventTime", "action", "related", "reportingController", "reportingInstance",
}


local function validate_new_form_update(new, old)
  new, old = stored(new), stored(old)
  local errors = check_event(new, "reportingController")
  if not host.json.equal(new.series or null, old.series or null) then
    check_series(new.series, errors)
  end
  new.reportingController, old.reportingController = new.reportingComponent, old.reportingComponent
  for _, name in ipairs(IMMUTABLE) do
    check.immutable_value(new[name], old[name], name, errors)
  end
  return errors
end


-- Complaints are about the kind that is stored, so they are made here and not by the server for this one.
local function refused_by(check_form)
  return function(object, other)
    -- The second is the object before an update, or the context of a create.
    local errors = check_form(object, other)
    if #errors > 0 then
      return nil, status.invalid("", "Event", object.metadata.name or "", errors)
    end
  end
end


local function validate(object)
  return check_event(object, "reportingComponent")
end


-- Fields that field selectors may use, by their names in the store.
local FIELDS = {
  "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
  "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
  "reportingComponent", "source", "type",
}
local REFERENCE = { "kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath" }


-- @param object table in the form of the store
local function fields(object)
  local values = {
    reason = object.reason or "", type = object.type or "", reportingComponent = object.reportingComponent or "",
    source = object.source.component or object.reportingComponent or "",
  }
  for _, name in ipairs(REFERENCE) do
    local value = object.involvedObject[name] or ""
    values["involvedObject." .. name], values["regarding." .. name] = value, value
  end
  values.reportingController = values.reportingComponent
  return values
end


local NEW_FIELDS = {}
for i, name in ipairs(FIELDS) do
  NEW_FIELDS[i] = name:gsub("^involvedObject", "regarding"):gsub("^reportingComponent$", "reportingController")
end


local function stored_cells(obj, now)
  return cells(obj, now, obj.involvedObject or {}, {
    message = obj.message or "", count = obj.count, first = obj.firstTimestamp, last = obj.lastTimestamp,
    source = obj.source,
  })
end


local function new_cells(obj, now)
  return cells(obj, now, obj.regarding or {}, {
    message = obj.note or "", count = obj.deprecatedCount, first = obj.deprecatedFirstTimestamp,
    last = obj.deprecatedLastTimestamp, source = obj.deprecatedSource,
  })
end


return {
  core = {
    name = names.path_segment,
    spec_changed = false, create_on_update = true,
    validate = validate, validate_update = validate,
    fields = fields, field_names = check.set(FIELDS),
    cells = stored_cells,
  },
  events = {
    convert = { load = load, save = save },
    spec_changed = false, create_on_update = true,
    prepare_create = refused_by(validate_new_form), prepare_update = refused_by(validate_new_form_update),
    fields = function(object)
      return fields(stored(object))
    end,
    field_names = check.set(NEW_FIELDS),
    cells = new_cells,
  },
}
