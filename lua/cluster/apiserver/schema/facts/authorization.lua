--- Written by tools/builtin-schemas.lua; the notation is described in schema/notation.lua.
return {

  FieldSelectorAttributes = [[
rawSelector string
requirements []meta.FieldSelectorRequirement atomic
]],

  LabelSelectorAttributes = [[
rawSelector string
requirements []meta.LabelSelectorRequirement atomic
]],

  LocalSubjectAccessReview = [[
@kind
metadata meta.ObjectMeta
spec! SubjectAccessReviewSpec
status SubjectAccessReviewStatus
]],

  NonResourceAttributes = [[
path string
verb string
]],

  NonResourceRule = [[
nonResourceURLs []string atomic
verbs! []string atomic
]],

  ResourceAttributes = [[
fieldSelector *FieldSelectorAttributes
group string
labelSelector *LabelSelectorAttributes
name string
namespace string
resource string
subresource string
verb string
version string
]],

  ResourceRule = [[
apiGroups []string atomic
resourceNames []string atomic
resources []string atomic
verbs! []string atomic
]],

  SelfSubjectAccessReview = [[
@kind
metadata meta.ObjectMeta
spec! SelfSubjectAccessReviewSpec
status SubjectAccessReviewStatus
]],

  SelfSubjectAccessReviewSpec = [[
nonResourceAttributes *NonResourceAttributes
resourceAttributes *ResourceAttributes
]],

  SelfSubjectRulesReview = [[
@kind
metadata meta.ObjectMeta
spec! SelfSubjectRulesReviewSpec
status SubjectRulesReviewStatus
]],

  SelfSubjectRulesReviewSpec = "namespace string",

  SubjectAccessReview = [[
@kind
metadata meta.ObjectMeta
spec! SubjectAccessReviewSpec
status SubjectAccessReviewStatus
]],

  SubjectAccessReviewSpec = [[
extra {}[]string
groups []string atomic
nonResourceAttributes *NonResourceAttributes
resourceAttributes *ResourceAttributes
uid string
user string
]],

  SubjectAccessReviewStatus = [[
allowed! bool
denied bool
evaluationError string
reason string
]],

  SubjectRulesReviewStatus = [[
evaluationError string
incomplete! bool
nonResourceRules! []NonResourceRule atomic
resourceRules! []ResourceRule atomic
]],

}
