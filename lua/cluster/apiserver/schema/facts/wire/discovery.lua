--- Written by tools/builtin-wire.lua; read by schema/protobuf.lua.
return {
  Endpoint = [[
    addresses=1 conditions=2 deprecatedTopology=5 hints=8 hostname=3 nodeName=6 targetRef=4 zone=7]],
  EndpointConditions = [[
    ready=1 serving=2 terminating=3]],
  EndpointHints = [[
    forNodes=2 forZones=1]],
  EndpointPort = [[
    appProtocol=4 name=1 port=3 protocol=2]],
  EndpointSlice = [[
    addressType=4 endpoints=2 metadata=1 ports=3]],
  ForNode = [[
    name=1]],
  ForZone = [[
    name=1]],
}
