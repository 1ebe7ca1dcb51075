--- Written by tools/builtin-schemas.lua; the notation is described in schema/notation.lua.
return {

  Endpoint = [[
addresses! []string set
conditions EndpointConditions
deprecatedTopology {}string
hints *EndpointHints
hostname string
nodeName string
targetRef *core.ObjectReference
zone string
]],

  EndpointConditions = [[
ready bool
serving bool
terminating bool
]],

  EndpointHints = [[
forNodes []ForNode atomic
forZones []ForZone atomic
]],

  EndpointPort = [[
@atomic
appProtocol string
name string
port int32
protocol string {SCTP|TCP|UDP}
]],

  EndpointSlice = [[
@kind
addressType! string {FQDN|IPv4|IPv6}
endpoints []Endpoint atomic
metadata meta.ObjectMeta
ports []EndpointPort atomic
]],

  ForNode = "name! string",

  ForZone = "name! string",

}
