--- Written by tools/printer-columns.lua; the notation is described in tables/columns.lua.
return {

  [""] = {
    ConfigMap = "Name Data Age",
    Endpoints = "Name Endpoints Age",
    Event = "Last_Seen Type Reason Object (Subobject) (Source) Message (First_Seen) (Count) (Name)",
    Namespace = "Name Status Age",
    Node = "Name Status Roles Age Version (Internal-IP) (External-IP) (OS-Image) (Kernel-Version)"
      .. " (Container-Runtime)",
    PersistentVolumeClaim = "Name Status Volume Capacity Access_Modes StorageClass VolumeAttributesClass Age"
      .. " (VolumeMode)",
    PersistentVolume = "Name Capacity Access_Modes Reclaim_Policy Status Claim StorageClass"
      .. " VolumeAttributesClass Reason Age (VolumeMode)",
    Pod = "Name Ready Status Restarts Age (IP) (Node) (Nominated_Node) (Readiness_Gates)",
    PodTemplate = "Name Containers Images Pod_Labels",
    Secret = "Name Type Data Age",
    Service = "Name Type Cluster-IP External-IP Port(s) Age (Selector)",
    ServiceAccount = "Name Age",
  },

  ["apps"] = {
    ControllerRevision = "Name Controller Revision Age",
    Deployment = "Name Ready Up-to-date Available Age (Containers) (Images) (Selector)",
    ReplicaSet = "Name Desired:integer Current:integer Ready:integer Age (Containers) (Images) (Selector)",
    StatefulSet = "Name Ready Age (Containers) (Images)",
  },

  ["batch"] = {
    Job = "Name Status Completions Duration Age (Containers) (Images) (Selector)",
  },

  ["coordination.k8s.io"] = {
    Lease = "Name Holder Age",
  },

  ["discovery.k8s.io"] = {
    EndpointSlice = "Name AddressType Ports Endpoints Age",
  },

  ["events.k8s.io"] = {
    Event = "Last_Seen Type Reason Object (Subobject) (Source) Message (First_Seen) (Count) (Name)",
  },

  ["policy"] = {
    PodDisruptionBudget = "Name Min_Available Max_Unavailable Allowed_Disruptions:integer Age",
  },

  ["rbac.authorization.k8s.io"] = {
    ClusterRoleBinding = "Name Role Age (Users) (Groups) (ServiceAccounts)",
    RoleBinding = "Name Role Age (Users) (Groups) (ServiceAccounts)",
  },

}
