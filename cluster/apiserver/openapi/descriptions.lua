--- Texts of `kubectl explain` for built-in kinds: short sentences on the kinds and fields that operators use most.
local M = {}

local CORE, META = "io.k8s.api.core.v1.", "io.k8s.apimachinery.pkg.apis.meta.v1."
local APPS, BATCH, RBAC = "io.k8s.api.apps.v1.", "io.k8s.api.batch.v1.", "io.k8s.api.rbac.v1."
local CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

local DEFINITIONS = {
  [CORE .. "Pod"] = "A group of containers that run together on one node.",
  [CORE .. "PodSpec"] = "What should run in the pod, and how.",
  [CORE .. "PodStatus"] = "What is known of the pod as it runs.",
  [CORE .. "PodTemplateSpec"] = "What pods made from the template look like.",
  [CORE .. "Container"] = "One program of a pod, with its image, its command and its surroundings.",
  [CORE .. "ContainerPort"] = "A port that a container listens on.",
  [CORE .. "EnvVar"] = "An environment variable.",
  [CORE .. "Probe"] = "A question that is put to a container again and again.",
  [CORE .. "Volume"] = "Files that containers of a pod can mount.",
  [CORE .. "VolumeMount"] = "Where a volume is mounted in a container.",
  [CORE .. "ConfigMap"] = "Configuration that pods read, as names with values.",
  [CORE .. "Secret"] = "Values that not everybody may read, as names with bytes.",
  [CORE .. "Service"] = "A name and an address in front of a set of pods.",
  [CORE .. "ServiceSpec"] = "Which pods a service stands for, and at which ports.",
  [CORE .. "ServicePort"] = "A port of a service.",
  [CORE .. "ServiceAccount"] = "Who a pod is when it asks the API server for something.",
  [CORE .. "Namespace"] = "A room for names; objects in it go when it goes.",
  [CORE .. "Node"] = "A machine that pods run on.",
  [CORE .. "Event"] = "A note that something happened to an object.",
  [CORE .. "PersistentVolume"] = "Storage that outlives pods.",
  [CORE .. "PersistentVolumeClaim"] = "A wish for storage that outlives pods.",
  [APPS .. "Deployment"] = "A number of equal pods that are replaced step by step when their template changes.",
  [APPS .. "DeploymentSpec"] = "How many pods there should be, what they are, and how they are replaced.",
  [APPS .. "ReplicaSet"] = "A number of equal pods.",
  [APPS .. "StatefulSet"] = "A number of pods that keep their names and their volumes.",
  [APPS .. "StatefulSetSpec"] = "How many pods there should be, what they are, and what they keep.",
  [APPS .. "ControllerRevision"] = "A state of an object that a controller can go back to.",
  [BATCH .. "Job"] = "Pods that run until their work is done.",
  [BATCH .. "JobSpec"] = "Which pods run, how many, and when the work is done or given up.",
  [RBAC .. "Role"] = "What may be done in a namespace.",
  [RBAC .. "ClusterRole"] = "What may be done in all namespaces, and with what is in none.",
  [RBAC .. "RoleBinding"] = "Who may do in a namespace what a role allows.",
  [RBAC .. "ClusterRoleBinding"] = "Who may do everywhere what a cluster role allows.",
  [RBAC .. "PolicyRule"] = "What may be done with which resources.",
  ["io.k8s.api.coordination.v1.Lease"] = "Who leads, and until when.",
  ["io.k8s.api.policy.v1.PodDisruptionBudget"] = "How many of a set of pods may be away at once.",
  ["io.k8s.api.discovery.v1.EndpointSlice"] = "Addresses behind a service.",
  [CRD .. "CustomResourceDefinition"] = "A kind of your own: its names, its versions and their schemas.",
  [META .. "ObjectMeta"] = "What every object has: its name, its labels, its owners and its history.",
  [META .. "ListMeta"] = "What every list has.",
  [META .. "LabelSelector"] = "Which labels objects must have; all that is said has to hold.",
  [META .. "OwnerReference"] = "An object that this one goes with.",
  [META .. "Status"] = "How a request ended that answers with no object.",
}

--- Fields that mean the same wherever they stand.
M.common = {
  apiVersion = "The group and version of the kind.",
  kind = "The kind of the object.",
  metadata = "Its name, labels, owners and the like.",
  spec = "What is wanted.",
  status = "What has been seen.",
}

local FIELDS = {
  [CORE .. "PodSpec"] = {
    activeDeadlineSeconds = "How long the pod may be active before it has failed.",
    affinity = "Near to what, and far from what, the pod should run.",
    automountServiceAccountToken = "Whether containers find a token of the service account.",
    containers = "What runs in the pod, side by side.",
    hostNetwork = "Whether the pod uses the network of its node.",
    initContainers = "What runs before that, one after the other.",
    nodeName = "The node the pod runs on.",
    nodeSelector = "Labels of the nodes that the pod may run on.",
    restartPolicy = "When containers that ended are started again.",
    securityContext = "Which rights and users the containers have.",
    serviceAccountName = "Who the pod is to the API server.",
    terminationGracePeriodSeconds = "How long containers have to end by themselves.",
    tolerations = "Which taints of nodes the pod bears.",
    volumes = "What containers can mount.",
  },
  [CORE .. "PodStatus"] = {
    conditions = "What is true of the pod, and since when.",
    containerStatuses = "How each container is.",
    message = "Why the pod is in this state, for people.",
    phase = "Where the pod is in its life.",
    podIP = "The address of the pod.",
    reason = "Why the pod is in this state, in one word.",
    startTime = "When the node took the pod.",
  },
  [CORE .. "Container"] = {
    args = "Arguments of the command.",
    command = "What is run instead of the image's own command; no shell is used.",
    env = "Environment variables.",
    envFrom = "Where more environment variables come from.",
    image = "The image to run.",
    imagePullPolicy = "When the image is fetched.",
    lifecycle = "What is done after the start and before the end.",
    livenessProbe = "How to see whether the container has to be started again.",
    name = "The name of the container, unique in its pod.",
    ports = "Ports that the container listens on.",
    readinessProbe = "How to see whether the container can serve.",
    resources = "What the container needs, and how much it may take.",
    startupProbe = "How to see whether the container has started.",
    volumeMounts = "Where volumes are mounted.",
    workingDir = "The directory the command starts in.",
  },
  [CORE .. "ContainerPort"] = {
    containerPort = "The number of the port.",
    name = "A name for the port, unique in its pod.",
    protocol = "What is spoken on the port.",
  },
  [CORE .. "EnvVar"] = {
    name = "The name of the variable.",
    value = "Its value; $(NAME) stands for the value of another one.",
    valueFrom = "Where its value comes from.",
  },
  [CORE .. "Probe"] = {
    exec = "A command that has to end with 0.",
    failureThreshold = "How often in a row it must fail to count.",
    httpGet = "A page that has to be there.",
    initialDelaySeconds = "How long after the start it is asked first.",
    periodSeconds = "How often it is asked.",
    successThreshold = "How often in a row it must succeed to count.",
    tcpSocket = "A port that has to be open.",
    timeoutSeconds = "How long an answer may take.",
  },
  [CORE .. "ConfigMap"] = {
    binaryData = "Names with bytes, in base64.",
    data = "Names with texts.",
    immutable = "Whether nothing of it can be changed any more.",
  },
  [CORE .. "Secret"] = {
    data = "Names with bytes, in base64.",
    immutable = "Whether nothing of it can be changed any more.",
    stringData = "Names with texts, put into data when it is written.",
    type = "What the secret is for.",
  },
  [CORE .. "ServiceSpec"] = {
    clusterIP = "The address of the service; None when it has none.",
    ports = "The ports of the service.",
    selector = "Labels of the pods it stands for.",
    type = "From where the service can be reached.",
  },
  [CORE .. "ServicePort"] = {
    name = "A name for the port, unique in its service.",
    port = "The number of the port.",
    protocol = "What is spoken on the port.",
    targetPort = "The port of the pods, by number or by name.",
  },
  [APPS .. "DeploymentSpec"] = {
    minReadySeconds = "How long a pod has to be ready before it counts.",
    paused = "Whether changes of the template wait.",
    progressDeadlineSeconds = "How long a change may take without progress before it has failed.",
    replicas = "How many pods there should be; one when nothing is said.",
    revisionHistoryLimit = "How many old replica sets are kept to go back to.",
    selector = "Labels of the pods that belong to it.",
    strategy = "How old pods are replaced by new ones.",
    template = "What the pods look like.",
  },
  [APPS .. "StatefulSetSpec"] = {
    podManagementPolicy = "Whether pods start and stop one after the other.",
    replicas = "How many pods there should be; one when nothing is said.",
    selector = "Labels of the pods that belong to it.",
    serviceName = "The service that gives the pods their names.",
    template = "What the pods look like.",
    updateStrategy = "How old pods are replaced by new ones.",
    volumeClaimTemplates = "Claims that each pod gets, and keeps.",
  },
  [BATCH .. "JobSpec"] = {
    activeDeadlineSeconds = "How long the job may be active before it has failed.",
    backoffLimit = "How many pods may fail before the job has failed.",
    completions = "How many pods have to succeed.",
    parallelism = "How many pods run at once.",
    suspend = "Whether the job waits.",
    template = "What the pods look like.",
    ttlSecondsAfterFinished = "How long the job stays after its end.",
  },
  [META .. "ObjectMeta"] = {
    annotations = "Names with values that nobody selects by.",
    creationTimestamp = "When the object was made.",
    deletionTimestamp = "When the object goes, or went, when it has been deleted.",
    finalizers = "Who has to do something before the object can go.",
    generateName = "What the server makes a name from when there is none.",
    generation = "How often what is wanted has changed.",
    labels = "Names with values that objects are selected by.",
    managedFields = "Who wrote which fields.",
    name = "The name of the object, unique in its namespace.",
    namespace = "The namespace of the object.",
    ownerReferences = "Objects that this one goes with.",
    resourceVersion = "The version of the object; each write makes a new one.",
    uid = "What tells the object from others of the same name, before and after.",
  },
  [META .. "LabelSelector"] = {
    matchExpressions = "What has to hold of labels.",
    matchLabels = "Labels with the values they must have.",
  },
  [RBAC .. "PolicyRule"] = {
    apiGroups = "Groups of the resources; \"\" is the core group.",
    nonResourceURLs = "Paths that are about no resource.",
    resourceNames = "Names of objects; all when there are none.",
    resources = "Resources, in the plural.",
    verbs = "What may be done.",
  },
}


--- One sentence on the definition with that full name, or nil.
function M.of(name)
  return DEFINITIONS[name]
end


--- One sentence on a field of it, or nil.
function M.of_field(name, field)
  local own = FIELDS[name]
  return own and own[field] or DEFINITIONS[name] and M.common[field] or nil
end


return M
