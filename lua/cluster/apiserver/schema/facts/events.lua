--- Written by tools/builtin-schemas.lua; the notation is described in schema/notation.lua.
return {

  Event = [[
@kind
action string
deprecatedCount int32
deprecatedFirstTimestamp meta.Time
deprecatedLastTimestamp meta.Time
deprecatedSource core.EventSource
eventTime! meta.MicroTime
metadata meta.ObjectMeta
note string
reason string
regarding core.ObjectReference
related *core.ObjectReference
reportingController string
reportingInstance string
series *EventSeries
type string
]],

  EventSeries = [[
count! int32
lastObservedTime! meta.MicroTime
]],

}
