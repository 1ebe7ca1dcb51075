--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  HTTPIngressPath = [[
backend! IngressBackend #2
path string #1
pathType! *string {Exact|ImplementationSpecific|Prefix} go:v1.PathType #3
]],

  HTTPIngressRuleValue = [[paths! []HTTPIngressPath atomic #1]],

  IPAddress = [[
@kind
metadata meta.ObjectMeta #1
spec- IPAddressSpec #2
]],

  IPAddressSpec = [[parentRef- *ParentReference #1]],

  IPBlock = [[
cidr! string #1
except []string atomic #2
]],

  Ingress = [[
@kind
metadata meta.ObjectMeta #1
spec IngressSpec #2
status IngressStatus #3
]],

  IngressBackend = [[
resource *core.TypedLocalObjectReference #3
service *IngressServiceBackend #4
]],

  IngressClass = [[
@kind
metadata meta.ObjectMeta #1
spec IngressClassSpec #2
]],

  IngressClassParametersReference = [[
apiGroup *string #1
kind! string #2
name! string #3
namespace *string #5
scope+ *string #4
]],

  IngressClassSpec = [[
controller string #1
parameters *IngressClassParametersReference #2
]],

  IngressLoadBalancerIngress = [[
hostname string #2
ip string #1
ports []IngressPortStatus atomic #4
]],

  IngressLoadBalancerStatus = [[ingress []IngressLoadBalancerIngress atomic #1]],

  IngressPortStatus = [[
error *string #3
port! int32 #1
protocol! string {SCTP|TCP|UDP} go:v1.Protocol #2
]],

  IngressRule = [[
host string #1
http *HTTPIngressRuleValue in:IngressRuleValue #2.1
]],

  IngressServiceBackend = [[
name! string #1
port ServiceBackendPort #2
]],

  IngressSpec = [[
defaultBackend *IngressBackend #1
ingressClassName *string #4
rules []IngressRule atomic #3
tls []IngressTLS atomic #2
]],

  IngressStatus = [[loadBalancer IngressLoadBalancerStatus #1]],

  IngressTLS = [[
hosts []string atomic #1
secretName string #2
]],

  NetworkPolicy = [[
@kind
metadata meta.ObjectMeta #1
spec NetworkPolicySpec #2
]],

  NetworkPolicyEgressRule = [[
ports []NetworkPolicyPort atomic #1
to []NetworkPolicyPeer atomic #2
]],

  NetworkPolicyIngressRule = [[
from []NetworkPolicyPeer atomic #2
ports []NetworkPolicyPort atomic #1
]],

  NetworkPolicyPeer = [[
ipBlock *IPBlock #3
namespaceSelector *meta.LabelSelector #2
podSelector *meta.LabelSelector #1
]],

  NetworkPolicyPort = [[
endPort *int32 #3
port *IntOrString #2
protocol *string {SCTP|TCP|UDP} go:v1.Protocol #1
]],

  NetworkPolicySpec = [[
egress []NetworkPolicyEgressRule atomic #3
ingress []NetworkPolicyIngressRule atomic #2
podSelector+ meta.LabelSelector #1
policyTypes []string atomic {Egress|Ingress} go:[]v1.PolicyType #4
]],

  ParentReference = [[
group string #1
name- string #4
namespace string #3
resource- string #2
]],

  ServiceBackendPort = [[
@atomic
name string #1
number int32 #2
]],

  ServiceCIDR = [[
@kind
metadata meta.ObjectMeta #1
spec ServiceCIDRSpec #2
status ServiceCIDRStatus #3
]],

  ServiceCIDRSpec = [[cidrs []string atomic #1]],

  ServiceCIDRStatus = [[conditions []meta.Condition map(type) patch:merge(type) #1]],

}
