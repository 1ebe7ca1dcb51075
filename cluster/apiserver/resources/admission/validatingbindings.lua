--- ValidatingAdmissionPolicyBindings.
return require("cluster.apiserver.resources.admission.bindings").validating
