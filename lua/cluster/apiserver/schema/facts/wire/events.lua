--- Written by tools/builtin-wire.lua; read by schema/protobuf.lua.
return {
  Event = [[
    action=6 deprecatedCount=15 deprecatedFirstTimestamp=13 deprecatedLastTimestamp=14
    deprecatedSource=12 eventTime=2 metadata=1 note=10 reason=7 regarding=8 related=9
    reportingController=4 reportingInstance=5 series=3 type=11]],
  EventSeries = [[
    count=1 lastObservedTime=2]],
}
