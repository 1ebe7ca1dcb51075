--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  FieldSelectorAttributes = [[
rawSelector string #1
requirements []meta.FieldSelectorRequirement atomic #2
]],

  LabelSelectorAttributes = [[
rawSelector string #1
requirements []meta.LabelSelectorRequirement atomic #2
]],

  LocalSubjectAccessReview = [[
@kind
metadata meta.ObjectMeta #1
spec! SubjectAccessReviewSpec #2
status SubjectAccessReviewStatus #3
]],

  NonResourceAttributes = [[
path string #1
verb string #2
]],

  NonResourceRule = [[
nonResourceURLs []string atomic #2
verbs! []string atomic #1
]],

  ResourceAttributes = [[
fieldSelector *FieldSelectorAttributes #8
group string #3
labelSelector *LabelSelectorAttributes #9
name string #7
namespace string #1
resource string #5
subresource string #6
verb string #2
version string #4
]],

  ResourceRule = [[
apiGroups []string atomic #2
resourceNames []string atomic #4
resources []string atomic #3
verbs! []string atomic #1
]],

  SelfSubjectAccessReview = [[
@kind
metadata meta.ObjectMeta #1
spec! SelfSubjectAccessReviewSpec #2
status SubjectAccessReviewStatus #3
]],

  SelfSubjectAccessReviewSpec = [[
nonResourceAttributes *NonResourceAttributes #2
resourceAttributes *ResourceAttributes #1
]],

  SelfSubjectRulesReview = [[
@kind
metadata meta.ObjectMeta #1
spec! SelfSubjectRulesReviewSpec #2
status SubjectRulesReviewStatus #3
]],

  SelfSubjectRulesReviewSpec = [[namespace string #1]],

  SubjectAccessReview = [[
@kind
metadata meta.ObjectMeta #1
spec! SubjectAccessReviewSpec #2
status SubjectAccessReviewStatus #3
]],

  SubjectAccessReviewSpec = [[
extra {}[]string go:map[string]v1.ExtraValue #5
groups []string atomic #4
nonResourceAttributes *NonResourceAttributes #2
resourceAttributes *ResourceAttributes #1
uid string #6
user string #3
]],

  SubjectAccessReviewStatus = [[
allowed! bool #1
denied bool #4
evaluationError string #3
reason string #2
]],

  SubjectRulesReviewStatus = [[
evaluationError string #4
incomplete! bool #3
nonResourceRules! []NonResourceRule atomic #2
resourceRules! []ResourceRule atomic #1
]],

}
