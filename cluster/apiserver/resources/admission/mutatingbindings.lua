--- MutatingAdmissionPolicyBindings.
return require("cluster.apiserver.resources.admission.bindings").mutating
