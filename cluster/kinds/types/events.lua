--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  Event = [[
@kind
action string #6
deprecatedCount int32 #15
deprecatedFirstTimestamp meta.Time #13
deprecatedLastTimestamp meta.Time #14
deprecatedSource core.EventSource #12
eventTime! meta.MicroTime #2
metadata+ meta.ObjectMeta #1
note string #10
reason string #7
regarding core.ObjectReference #8
related *core.ObjectReference #9
reportingController string #4
reportingInstance string #5
series *EventSeries #3
type string #11
]],

  EventSeries = [[
count! int32 #1
lastObservedTime! meta.MicroTime #2
]],

}
