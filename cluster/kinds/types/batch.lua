--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  CronJob = [[
@kind
metadata meta.ObjectMeta #1
spec- CronJobSpec #2
status CronJobStatus #3
]],

  CronJobSpec = [[
concurrencyPolicy string {Allow|Forbid|Replace} go:v1.ConcurrencyPolicy #3
failedJobsHistoryLimit *int32 #7
jobTemplate! JobTemplateSpec #5
schedule! string #1
startingDeadlineSeconds *int64 #2
successfulJobsHistoryLimit *int32 #6
suspend *bool #4
timeZone *string #8
]],

  CronJobStatus = [[
active []core.ObjectReference atomic #1
lastScheduleTime *meta.Time #4
lastSuccessfulTime *meta.Time #5
]],

  Job = [[
@kind
metadata meta.ObjectMeta #1
spec JobSpec #2
status JobStatus #3
]],

  JobCondition = [[
lastProbeTime meta.Time #3
lastTransitionTime meta.Time #4
message string #6
reason string #5
status! string go:v1.ConditionStatus #2
type! string go:v1.JobConditionType #1
]],

  JobSpec = [[
activeDeadlineSeconds *int64 #3
backoffLimit *int32 #7
backoffLimitPerIndex *int32 #12
completionMode *string {Indexed|NonIndexed} go:v1.CompletionMode #9
completions *int32 #2
managedBy *string #15
manualSelector *bool #5
maxFailedIndexes *int32 #13
parallelism *int32 #1
podFailurePolicy *PodFailurePolicy #11
podReplacementPolicy *string {Failed|TerminatingOrFailed} go:v1.PodReplacementPolicy #14
selector *meta.LabelSelector #4
successPolicy *SuccessPolicy #16
suspend *bool #10
template! core.PodTemplateSpec #6
ttlSecondsAfterFinished *int32 #8
]],

  JobStatus = [[
active int32 #4
completedIndexes string #7
completionTime *meta.Time #3
conditions []JobCondition atomic patch:merge(type) #1
failed int32 #6
failedIndexes *string #10
ready *int32 #9
startTime *meta.Time #2
succeeded int32 #5
terminating *int32 #11
uncountedTerminatedPods *UncountedTerminatedPods #8
]],

  JobTemplateSpec = [[
metadata meta.ObjectMeta #1
spec JobSpec #2
]],

  PodFailurePolicy = [[rules! []PodFailurePolicyRule atomic #1]],

  PodFailurePolicyOnExitCodesRequirement = [[
containerName *string #1
operator! string {In|NotIn} go:v1.PodFailurePolicyOnExitCodesOperator #2
values! []int32 set #3
]],

  PodFailurePolicyOnPodConditionsPattern = [[
status+ string go:v1.ConditionStatus #2
type! string go:v1.PodConditionType #1
]],

  PodFailurePolicyRule = [[
action! string {Count|FailIndex|FailJob|Ignore} go:v1.PodFailurePolicyAction #1
onExitCodes *PodFailurePolicyOnExitCodesRequirement #2
onPodConditions []PodFailurePolicyOnPodConditionsPattern atomic #3
]],

  SuccessPolicy = [[rules! []SuccessPolicyRule atomic #1]],

  SuccessPolicyRule = [[
succeededCount *int32 #2
succeededIndexes *string #1
]],

  UncountedTerminatedPods = [[
failed []string set go:[]types.UID #2
succeeded []string set go:[]types.UID #1
]],

}
