--- Written by tools/builtin-wire.lua; read by schema/protobuf.lua.
return {
  Eviction = [[
    deleteOptions=2 metadata=1]],
  PodDisruptionBudget = [[
    metadata=1 spec=2 status=3]],
  PodDisruptionBudgetSpec = [[
    maxUnavailable=3 minAvailable=1 selector=2 unhealthyPodEvictionPolicy=4]],
  PodDisruptionBudgetStatus = [[
    conditions=7 currentHealthy=4 desiredHealthy=5 disruptedPods=2 disruptionsAllowed=3 expectedPods=6
    observedGeneration=1]],
}
