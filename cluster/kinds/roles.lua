--- Written by tools/kinds; described, and read, in auth/bootstrap.lua.
local M = {}


M.roles = {
  admin = {
    from = "aggregate-to-admin",
  },
  ["cluster-admin"] = {
    { verbs = "*", groups = "*", resources = "*" },
    { verbs = "*", urls = "*" },
  },
  edit = {
    into = "aggregate-to-admin",
    from = "aggregate-to-edit",
  },
  ["system:aggregate-to-admin"] = {
    into = "aggregate-to-admin",
    { verbs = "create", groups = "authorization.k8s.io", resources = "localsubjectaccessreviews" },
    { verbs = "create delete deletecollection get list patch update watch", groups = "rbac.authorization.k8s.io",
      resources = "rolebindings roles",
    },
  },
  ["system:aggregate-to-edit"] = {
    into = "aggregate-to-edit",
    { verbs = "get list watch", groups = "core",
      resources = "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy",
    },
    { verbs = "impersonate", groups = "core", resources = "serviceaccounts" },
    { verbs = "create delete deletecollection patch update", groups = "core",
      resources = "pods pods/attach pods/exec pods/portforward pods/proxy",
    },
    { verbs = "create", groups = "core", resources = "pods/eviction" },
    { verbs = "create delete deletecollection patch update", groups = "core",
      resources = "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets"
        .. " serviceaccounts services services/proxy",
    },
    { verbs = "create", groups = "core", resources = "serviceaccounts/token" },
    { verbs = "create delete deletecollection patch update", groups = "core events.k8s.io", resources = "events" },
    { verbs = "create delete deletecollection patch update", groups = "apps",
      resources = "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale"
        .. " statefulsets statefulsets/scale",
    },
    { verbs = "create delete deletecollection patch update", groups = "autoscaling",
      resources = "horizontalpodautoscalers",
    },
    { verbs = "create delete deletecollection patch update", groups = "batch", resources = "cronjobs jobs" },
    { verbs = "create delete deletecollection patch update", groups = "extensions",
      resources = "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies"
        .. " replicasets replicasets/scale replicationcontrollers/scale",
    },
    { verbs = "create delete deletecollection patch update", groups = "policy", resources = "poddisruptionbudgets" },
    { verbs = "create delete deletecollection patch update", groups = "networking.k8s.io",
      resources = "ingresses networkpolicies",
    },
    { verbs = "create delete deletecollection get list patch update watch", groups = "coordination.k8s.io",
      resources = "leases",
    },
    { verbs = "create delete deletecollection patch update", groups = "resource.k8s.io",
      resources = "resourceclaims resourceclaimtemplates",
    },
  },
  ["system:aggregate-to-view"] = {
    into = "aggregate-to-view",
    { verbs = "get list watch", groups = "core",
      resources = "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods"
        .. " replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
    },
    { verbs = "get list watch", groups = "core",
      resources = "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status"
        .. " resourcequotas resourcequotas/status",
    },
    { verbs = "get list watch", groups = "core", resources = "namespaces" },
    { verbs = "get list watch", groups = "core events.k8s.io", resources = "events" },
    { verbs = "get list watch", groups = "discovery.k8s.io", resources = "endpointslices" },
    { verbs = "get list watch", groups = "apps",
      resources = "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status"
        .. " replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
    },
    { verbs = "get list watch", groups = "autoscaling",
      resources = "horizontalpodautoscalers horizontalpodautoscalers/status",
    },
    { verbs = "get list watch", groups = "batch", resources = "cronjobs cronjobs/status jobs jobs/status" },
    { verbs = "get list watch", groups = "extensions",
      resources = "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses"
        .. " ingresses/status networkpolicies replicasets replicasets/scale replicasets/status"
        .. " replicationcontrollers/scale",
    },
    { verbs = "get list watch", groups = "policy", resources = "poddisruptionbudgets poddisruptionbudgets/status" },
    { verbs = "get list watch", groups = "networking.k8s.io",
      resources = "ingresses ingresses/status networkpolicies",
    },
    { verbs = "get list watch", groups = "resource.k8s.io",
      resources = "resourceclaims resourceclaims/status resourceclaimtemplates",
    },
  },
  ["system:auth-delegator"] = {
    { verbs = "create", groups = "authentication.k8s.io", resources = "tokenreviews" },
    { verbs = "create", groups = "authorization.k8s.io", resources = "subjectaccessreviews" },
  },
  ["system:basic-user"] = {
    { verbs = "create", groups = "authorization.k8s.io",
      resources = "selfsubjectaccessreviews selfsubjectrulesreviews",
    },
    { verbs = "create", groups = "authentication.k8s.io", resources = "selfsubjectreviews" },
  },
  ["system:discovery"] = {
    { verbs = "get",
      urls = "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/",
    },
  },
  ["system:monitoring"] = {
    { verbs = "get",
      urls = "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz",
    },
    { verbs = "get", groups = "core", resources = "nodes/metrics" },
  },
  ["system:public-info-viewer"] = {
    { verbs = "get", urls = "/healthz /livez /readyz /version /version/" },
  },
  ["system:service-account-issuer-discovery"] = {
    { verbs = "get",
      urls = "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
    },
  },
  view = {
    into = "aggregate-to-edit",
    from = "aggregate-to-view",
  },
}


M.bindings = {
  ["cluster-admin"] = { "system:masters" },
  ["system:monitoring"] = { "system:monitoring" },
  ["system:discovery"] = { "system:authenticated" },
  ["system:basic-user"] = { "system:authenticated" },
  ["system:public-info-viewer"] = { "system:authenticated", "system:unauthenticated" },
  ["system:service-account-issuer-discovery"] = { "system:serviceaccounts" },
}


M.namespaces = {
  ["kube-public"] = {
    roles = {
      ["system:controller:bootstrap-signer"] = {
        { verbs = "get list watch", groups = "core", resources = "configmaps" },
        { verbs = "update", groups = "core", names = "cluster-info", resources = "configmaps" },
        { verbs = "create patch update", groups = "core events.k8s.io", resources = "events" },
      },
    },
    bindings = {
      ["system:controller:bootstrap-signer"] = {
        role = "system:controller:bootstrap-signer",
        users = "",
        accounts = "kube-system/bootstrap-signer",
      },
    },
  },
  ["kube-system"] = {
    roles = {
      ["extension-apiserver-authentication-reader"] = {
        { verbs = "get list watch", groups = "core", names = "extension-apiserver-authentication",
          resources = "configmaps",
        },
      },
      ["system:controller:bootstrap-signer"] = {
        { verbs = "get list watch", groups = "core", resources = "secrets" },
      },
      ["system:controller:cloud-provider"] = {
        { verbs = "create get list watch", groups = "core", resources = "configmaps" },
      },
      ["system:controller:token-cleaner"] = {
        { verbs = "delete get list watch", groups = "core", resources = "secrets" },
        { verbs = "create patch update", groups = "core events.k8s.io", resources = "events" },
      },
      ["system::leader-locking-kube-controller-manager"] = {
        { verbs = "create get list update watch", groups = "coordination.k8s.io", resources = "leases" },
        { verbs = "create get list update watch", groups = "coordination.k8s.io", resources = "leasecandidates" },
      },
      ["system::leader-locking-kube-scheduler"] = {
        { verbs = "create get list update watch", groups = "coordination.k8s.io", resources = "leases" },
        { verbs = "create get list update watch", groups = "coordination.k8s.io", resources = "leasecandidates" },
      },
    },
    bindings = {
      ["system::extension-apiserver-authentication-reader"] = {
        role = "extension-apiserver-authentication-reader",
        users = "system:kube-controller-manager system:kube-scheduler",
        accounts = "",
      },
      ["system::leader-locking-kube-controller-manager"] = {
        role = "system::leader-locking-kube-controller-manager",
        users = "system:kube-controller-manager",
        accounts = "kube-system/kube-controller-manager kube-system/leader-election-controller",
      },
      ["system::leader-locking-kube-scheduler"] = {
        role = "system::leader-locking-kube-scheduler",
        users = "system:kube-scheduler",
        accounts = "kube-system/kube-scheduler",
      },
      ["system:controller:bootstrap-signer"] = {
        role = "system:controller:bootstrap-signer",
        users = "",
        accounts = "kube-system/bootstrap-signer",
      },
      ["system:controller:cloud-provider"] = {
        role = "system:controller:cloud-provider",
        users = "",
        accounts = "kube-system/cloud-provider",
      },
      ["system:controller:token-cleaner"] = {
        role = "system:controller:token-cleaner",
        users = "",
        accounts = "kube-system/token-cleaner",
      },
    },
  },
}


return M
