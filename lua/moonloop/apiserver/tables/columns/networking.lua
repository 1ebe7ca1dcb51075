--- Written by tools/printer-columns.lua; the notation is described in tables/columns.lua.
return {

  Ingress = [[
Name string =name @name
Class string
  The name of the IngressClass resource that should be used for additional configuration
Hosts string
  Hosts that incoming requests are matched against before the ingress rule
Address string
  Address is a list containing ingress points for the load-balancer
Ports string
  Ports of TLS configurations that open
Age string @age
]],

  NetworkPolicy = [[
Name string =name @name
Pod-Selector string
  podSelector selects the pods to which this NetworkPolicy object applies. The array of rules is applied to any
  pods selected by this field. An empty selector matches all pods in the policy's namespace. Multiple network
  policies can select the same set of pods. In this case, the ingress rules for each are combined additively.
  This field is optional. If it is not specified, it defaults to an empty selector.
Age string @age
]],

}
