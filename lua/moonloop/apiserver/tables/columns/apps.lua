--- Written by tools/printer-columns.lua; the notation is described in tables/columns.lua.
return {

  ControllerRevision = [[
Name string =name @name
Controller string
  Controller of the object
Revision string
  Revision indicates the revision of the state represented by Data.
Age string @age
]],

  DaemonSet = [[
Name string =name @name
Desired integer
  The total number of nodes that should be running the daemon pod (including nodes correctly running the daemon
  pod). More info: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/
Current integer
  The number of nodes that are running at least 1 daemon pod and are supposed to run the daemon pod. More info:
  https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/
Ready integer
  numberReady is the number of nodes that should be running the daemon pod and have one or more of the daemon
  pod running with a Ready Condition.
Up-to-date integer
  The total number of nodes that are running updated daemon pod
Available integer
  The number of nodes that should be running the daemon pod and have one or more of the daemon pod running and
  available (ready for at least spec.minReadySeconds)
Node_Selector string
  NodeSelector is a selector which must be true for the pod to fit on a node. Selector which must match a node's
  labels for the pod to be scheduled on that node. More info:
  https://kubernetes.io/docs/concepts/configuration/assign-pod-node/
Age string @age
Containers string wide
  Names of each container in the template.
Images string wide
  Images referenced by each container in the template.
Selector string wide
  A label query over pods that are managed by the daemon set. Must match in order to be controlled. It must
  match the pod template's labels. More info:
  https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
]],

  Deployment = [[
Name string =name @name
Ready string
  Number of the pod with ready state
Up-to-date string
  Total number of non-terminating pods targeted by this deployment that have the desired template spec.
Available string
  Total number of available non-terminating pods (ready for at least minReadySeconds) targeted by this
  deployment.
Age string @age
Containers string wide
  Names of each container in the template.
Images string wide
  Images referenced by each container in the template.
Selector string wide
  Label selector for pods. Existing ReplicaSets whose pods are selected by this will be the ones affected by
  this deployment. It must match the pod template's labels.
]],

  ReplicaSet = [[
Name string =name @name
Desired integer
  Replicas is the number of desired pods. This is a pointer to distinguish between explicit zero and
  unspecified. Defaults to 1. More info: https://kubernetes.io/docs/concepts/workloads/controllers/replicaset
Current integer
  Replicas is the most recently observed number of non-terminating pods. More info:
  https://kubernetes.io/docs/concepts/workloads/controllers/replicaset
Ready integer
  The number of non-terminating pods targeted by this ReplicaSet with a Ready Condition.
Age string @age
Containers string wide
  Names of each container in the template.
Images string wide
  Images referenced by each container in the template.
Selector string wide
  Selector is a label query over pods that should match the replica count. Label keys and values that must match
  in order to be controlled by this replica set. It must match the pod template's labels. More info:
  https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
]],

  StatefulSet = [[
Name string =name @name
Ready string
  Number of the pod with ready state
Age string @age
Containers string wide
  Names of each container in the template.
Images string wide
  Images referenced by each container in the template.
]],

}
