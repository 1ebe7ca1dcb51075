--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  Endpoint = [[
addresses! []string set #1
conditions EndpointConditions #2
deprecatedTopology {}string #5
hints *EndpointHints #8
hostname *string #3
nodeName *string #6
targetRef *core.ObjectReference #4
zone *string #7
]],

  EndpointConditions = [[
ready *bool #1
serving *bool #2
terminating *bool #3
]],

  EndpointHints = [[
forNodes []ForNode atomic #2
forZones []ForZone atomic #1
]],

  EndpointPort = [[
@atomic
appProtocol *string #4
name *string #1
port *int32 #3
protocol *string {SCTP|TCP|UDP} go:v1.Protocol #2
]],

  EndpointSlice = [[
@kind
addressType! string {FQDN|IPv4|IPv6} go:v1.AddressType #4
endpoints+ []Endpoint atomic #2
metadata meta.ObjectMeta #1
ports+ []EndpointPort atomic #3
]],

  ForNode = [[name! string #1]],

  ForZone = [[name! string #1]],

}
