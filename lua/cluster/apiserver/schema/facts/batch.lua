--- Written by tools/builtin-schemas.lua; the notation is described in schema/notation.lua.
return {

  Job = [[
@kind
metadata meta.ObjectMeta
spec JobSpec
status JobStatus
]],

  JobCondition = [[
lastProbeTime meta.Time
lastTransitionTime meta.Time
message string
reason string
status! string
type! string
]],

  JobSpec = [[
activeDeadlineSeconds int64
backoffLimit int32
backoffLimitPerIndex int32
completionMode string {Indexed|NonIndexed}
completions int32
managedBy string
manualSelector bool
maxFailedIndexes int32
parallelism int32
podFailurePolicy *PodFailurePolicy
podReplacementPolicy string {Failed|TerminatingOrFailed}
selector *meta.LabelSelector
successPolicy *SuccessPolicy
suspend bool
template! core.PodTemplateSpec
ttlSecondsAfterFinished int32
]],

  JobStatus = [[
active int32
completedIndexes string
completionTime meta.Time
conditions []JobCondition atomic patch:merge(type)
failed int32
failedIndexes string
ready int32
startTime meta.Time
succeeded int32
terminating int32
uncountedTerminatedPods *UncountedTerminatedPods
]],

  PodFailurePolicy = "rules! []PodFailurePolicyRule atomic",

  PodFailurePolicyOnExitCodesRequirement = [[
containerName string
operator! string {In|NotIn}
values! []int32 set
]],

  PodFailurePolicyOnPodConditionsPattern = [[
status string =""
type! string
]],

  PodFailurePolicyRule = [[
action! string {Count|FailIndex|FailJob|Ignore}
onExitCodes *PodFailurePolicyOnExitCodesRequirement
onPodConditions []PodFailurePolicyOnPodConditionsPattern atomic
]],

  SuccessPolicy = "rules! []SuccessPolicyRule atomic",

  SuccessPolicyRule = [[
succeededCount int32
succeededIndexes string
]],

  UncountedTerminatedPods = [[
failed []string set
succeeded []string set
]],

}
