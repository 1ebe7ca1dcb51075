--- Written by tools/builtin-wire.lua; read by schema/protobuf.lua.
return {
  Job = [[
    metadata=1 spec=2 status=3]],
  JobCondition = [[
    lastProbeTime=3 lastTransitionTime=4 message=6 reason=5 status=2 type=1]],
  JobSpec = [[
    activeDeadlineSeconds=3 backoffLimit=7 backoffLimitPerIndex=12 completionMode=9 completions=2
    managedBy=15 manualSelector=5 maxFailedIndexes=13 parallelism=1 podFailurePolicy=11
    podReplacementPolicy=14 selector=4 successPolicy=16 suspend=10 template=6 ttlSecondsAfterFinished=8]],
  JobStatus = [[
    active=4 completedIndexes=7 completionTime=3 conditions=1 failed=6 failedIndexes=10 ready=9
    startTime=2 succeeded=5 terminating=11 uncountedTerminatedPods=8]],
  PodFailurePolicy = [[
    rules=1]],
  PodFailurePolicyOnExitCodesRequirement = [[
    containerName=1 operator=2 values=3]],
  PodFailurePolicyOnPodConditionsPattern = [[
    status=2 type=1]],
  PodFailurePolicyRule = [[
    action=1 onExitCodes=2 onPodConditions=3]],
  SuccessPolicy = [[
    rules=1]],
  SuccessPolicyRule = [[
    succeededCount=2 succeededIndexes=1]],
  UncountedTerminatedPods = [[
    failed=2 succeeded=1]],
}
