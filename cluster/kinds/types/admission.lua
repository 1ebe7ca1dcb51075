--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  ApplyConfiguration = [[expression string #1]],

  AuditAnnotation = [[
key! string #1
valueExpression! string #2
]],

  ExpressionWarning = [[
fieldRef! string #2
warning! string #3
]],

  JSONPatch = [[expression string #1]],

  MatchCondition = [[
expression! string #2
name! string #1
]],

  MatchResources = [[
@atomic
excludeResourceRules []NamedRuleWithOperations atomic #4
matchPolicy *string {Equivalent|Exact} go:v1.MatchPolicyType #7
namespaceSelector *meta.LabelSelector #1
objectSelector *meta.LabelSelector #2
resourceRules []NamedRuleWithOperations atomic #3
]],

  MutatingAdmissionPolicy = [[
@kind
metadata meta.ObjectMeta #1
spec MutatingAdmissionPolicySpec #2
]],

  MutatingAdmissionPolicyBinding = [[
@kind
metadata meta.ObjectMeta #1
spec MutatingAdmissionPolicyBindingSpec #2
]],

  MutatingAdmissionPolicyBindingSpec = [[
matchResources *MatchResources #3
paramRef *ParamRef #2
policyName string #1
]],

  MutatingAdmissionPolicySpec = [[
failurePolicy *string {Fail|Ignore} go:v1.FailurePolicyType #5
matchConditions []MatchCondition map(name) patch:merge(name) #6
matchConstraints *MatchResources #2
mutations []Mutation atomic #4
paramKind *ParamKind #1
reinvocationPolicy string {IfNeeded|Never} go:v1.ReinvocationPolicyType #7
variables []Variable atomic #3
]],

  MutatingWebhook = [[
admissionReviewVersions! []string atomic #8
clientConfig! WebhookClientConfig #2
failurePolicy *string {Fail|Ignore} go:v1.FailurePolicyType #4
matchConditions []MatchCondition map(name) patch:merge(name) #12
matchPolicy *string {Equivalent|Exact} go:v1.MatchPolicyType #9
name! string #1
namespaceSelector *meta.LabelSelector #5
objectSelector *meta.LabelSelector #11
reinvocationPolicy *string {IfNeeded|Never} go:v1.ReinvocationPolicyType #10
rules []RuleWithOperations atomic #3
sideEffects! *string {None|NoneOnDryRun|Some|Unknown} go:v1.SideEffectClass #6
timeoutSeconds *int32 #7
]],

  MutatingWebhookConfiguration = [[
@kind
metadata meta.ObjectMeta #1
webhooks []MutatingWebhook map(name) patch:merge(name) #2
]],

  Mutation = [[
applyConfiguration *ApplyConfiguration #3
jsonPatch *JSONPatch #4
patchType! string {ApplyConfiguration|JSONPatch} go:v1.PatchType #2
]],

  NamedRuleWithOperations = [[
@atomic
apiGroups []string atomic in:RuleWithOperations #2.2.1
apiVersions []string atomic in:RuleWithOperations #2.2.2
operations []string atomic {*|CONNECT|CREATE|DELETE|UPDATE} go:[]v1.OperationType in:RuleWithOperations #2.1
resourceNames []string atomic #1
resources []string atomic in:RuleWithOperations #2.2.3
scope *string {*|Cluster|Namespaced} go:v1.ScopeType in:RuleWithOperations #2.2.4
]],

  ParamKind = [[
@atomic
apiVersion string #1
kind string #2
]],

  ParamRef = [[
@atomic
name string #1
namespace string #2
parameterNotFoundAction *string go:v1.ParameterNotFoundActionType #4
selector *meta.LabelSelector #3
]],

  RuleWithOperations = [[
apiGroups []string atomic in:Rule #2.1
apiVersions []string atomic in:Rule #2.2
operations []string atomic {*|CONNECT|CREATE|DELETE|UPDATE} go:[]v1.OperationType #1
resources []string atomic in:Rule #2.3
scope *string {*|Cluster|Namespaced} go:v1.ScopeType in:Rule #2.4
]],

  ServiceReference = [[
name! string #2
namespace! string #1
path *string #3
port *int32 #4
]],

  TypeChecking = [[expressionWarnings []ExpressionWarning atomic #1]],

  ValidatingAdmissionPolicy = [[
@kind
metadata meta.ObjectMeta #1
spec ValidatingAdmissionPolicySpec #2
status ValidatingAdmissionPolicyStatus #3
]],

  ValidatingAdmissionPolicyBinding = [[
@kind
metadata meta.ObjectMeta #1
spec- ValidatingAdmissionPolicyBindingSpec #2
]],

  ValidatingAdmissionPolicyBindingSpec = [[
matchResources *MatchResources #3
paramRef *ParamRef #2
policyName- string #1
validationActions- []string set {Audit|Deny|Warn} go:[]v1.ValidationAction #4
]],

  ValidatingAdmissionPolicySpec = [[
auditAnnotations []AuditAnnotation atomic #5
failurePolicy *string {Fail|Ignore} go:v1.FailurePolicyType #4
matchConditions []MatchCondition map(name) patch:merge(name) #6
matchConstraints *MatchResources #2
paramKind *ParamKind #1
validations []Validation atomic #3
variables []Variable map(name) patch:merge(name) #7
]],

  ValidatingAdmissionPolicyStatus = [[
conditions []meta.Condition map(type) #3
observedGeneration int64 #1
typeChecking *TypeChecking #2
]],

  ValidatingWebhook = [[
admissionReviewVersions! []string atomic #8
clientConfig! WebhookClientConfig #2
failurePolicy *string {Fail|Ignore} go:v1.FailurePolicyType #4
matchConditions []MatchCondition map(name) patch:merge(name) #11
matchPolicy *string {Equivalent|Exact} go:v1.MatchPolicyType #9
name! string #1
namespaceSelector *meta.LabelSelector #5
objectSelector *meta.LabelSelector #10
rules []RuleWithOperations atomic #3
sideEffects! *string {None|NoneOnDryRun|Some|Unknown} go:v1.SideEffectClass #6
timeoutSeconds *int32 #7
]],

  ValidatingWebhookConfiguration = [[
@kind
metadata meta.ObjectMeta #1
webhooks []ValidatingWebhook map(name) patch:merge(name) #2
]],

  Validation = [[
expression! string #1
message string #2
messageExpression string #4
reason *string go:v1.StatusReason #3
]],

  Variable = [[
@atomic
expression! string #2
name! string #1
]],

  WebhookClientConfig = [[
caBundle bytes #2
service *ServiceReference #1
url *string #3
]],

}
