--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  ExemptPriorityLevelConfiguration = [[
lendablePercent *int32 #2
nominalConcurrencyShares *int32 #1
]],

  FlowDistinguisherMethod = [[type! string go:v1.FlowDistinguisherMethodType #1]],

  FlowSchema = [[
@kind
metadata meta.ObjectMeta #1
spec FlowSchemaSpec #2
status FlowSchemaStatus #3
]],

  FlowSchemaCondition = [[
lastTransitionTime meta.Time #3
message string #5
reason string #4
status string go:v1.ConditionStatus #2
type string go:v1.FlowSchemaConditionType #1
]],

  FlowSchemaSpec = [[
distinguisherMethod *FlowDistinguisherMethod #3
matchingPrecedence+ int32 #2
priorityLevelConfiguration! PriorityLevelConfigurationReference #1
rules []PolicyRulesWithSubjects atomic #4
]],

  FlowSchemaStatus = [[conditions []FlowSchemaCondition map(type) patch:merge(type) #1]],

  GroupSubject = [[name! string #1]],

  LimitResponse = [[
queuing *QueuingConfiguration #2
type! string go:v1.LimitResponseType #1
]],

  LimitedPriorityLevelConfiguration = [[
borrowingLimitPercent *int32 #4
lendablePercent *int32 #3
limitResponse LimitResponse #2
nominalConcurrencyShares+ *int32 #1
]],

  NonResourcePolicyRule = [[
nonResourceURLs! []string set #6
verbs! []string set #1
]],

  PolicyRulesWithSubjects = [[
nonResourceRules []NonResourcePolicyRule atomic #3
resourceRules []ResourcePolicyRule atomic #2
subjects! []Subject atomic #1
]],

  PriorityLevelConfiguration = [[
@kind
metadata meta.ObjectMeta #1
spec PriorityLevelConfigurationSpec #2
status PriorityLevelConfigurationStatus #3
]],

  PriorityLevelConfigurationCondition = [[
lastTransitionTime meta.Time #3
message string #5
reason string #4
status string go:v1.ConditionStatus #2
type string go:v1.PriorityLevelConfigurationConditionType #1
]],

  PriorityLevelConfigurationReference = [[name! string #1]],

  PriorityLevelConfigurationSpec = [[
exempt *ExemptPriorityLevelConfiguration #3
limited *LimitedPriorityLevelConfiguration #2
type! string go:v1.PriorityLevelEnablement #1
]],

  PriorityLevelConfigurationStatus = [[
conditions []PriorityLevelConfigurationCondition map(type) patch:merge(type) #1
]],

  QueuingConfiguration = [[
handSize+ int32 #2
queueLengthLimit+ int32 #3
queues+ int32 #1
]],

  ResourcePolicyRule = [[
apiGroups! []string set #2
clusterScope bool #4
namespaces+ []string set #5
resources! []string set #3
verbs! []string set #1
]],

  ServiceAccountSubject = [[
name! string #2
namespace! string #1
]],

  Subject = [[
group *GroupSubject #3
kind! string go:v1.SubjectKind #1
serviceAccount *ServiceAccountSubject #4
user *UserSubject #2
]],

  UserSubject = [[name! string #1]],

}
