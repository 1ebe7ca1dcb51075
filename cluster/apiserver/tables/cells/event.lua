--- Cells of an event, from the fields of both of its groups.
--- Rules: kubernetes/pkg/printers/internalversion/printers.go (printEvent).
local age = require "cluster.apiserver.tables.age"


local function either(one, other)
  return one and one ~= "" and one or other or ""
end


--- @param obj table the event, for its type, reason, series and reporter
--- @param about table reference to what it is about
--- @param view table message, count, first and last (instants), source = { component =, host = }
return function(obj, now, about, view)
  local first = age.instant(view.first) and age.since(view.first, now) or age.since(obj.eventTime, now)
  local last = age.instant(view.last) and age.since(view.last, now) or first
  local count = view.count and view.count ~= 0 and view.count or 1
  if obj.series then
    last, count = age.since(obj.series.lastObservedTime, now), obj.series.count
  end
  local source = view.source or {}
  local component = either(source.component, obj.reportingComponent or obj.reportingController)
  local instance = either(source.host, obj.reportingInstance)
  local target = (about.kind or ""):lower()
  return {
    last, obj.type or "", obj.reason or "", either(about.name) ~= "" and target .. "/" .. about.name or target,
    about.fieldPath or "", instance == "" and component or component .. ", " .. instance,
    view.message:match("^%s*(.-)%s*$"), first, count, obj.metadata.name,
  }
end
