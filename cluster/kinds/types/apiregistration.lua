--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  APIService = [[
@kind
metadata meta.ObjectMeta #1
spec APIServiceSpec #2
status APIServiceStatus #3
]],

  APIServiceCondition = [[
lastTransitionTime meta.Time #3
message string #5
reason string #4
status! string go:v1.ConditionStatus #2
type! string go:v1.APIServiceConditionType #1
]],

  APIServiceSpec = [[
caBundle bytes atomic #5
group string #2
groupPriorityMinimum! int32 #7
insecureSkipTLSVerify bool #4
service *ServiceReference #1
version string #3
versionPriority! int32 #8
]],

  APIServiceStatus = [[conditions []APIServiceCondition map(type) patch:merge(type) #1]],

  ServiceReference = [[
name string #2
namespace string #1
port *int32 #3
]],

}
