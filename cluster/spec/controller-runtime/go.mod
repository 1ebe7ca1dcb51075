// controller-runtime, whose own tests run.sh runs against `moonloop dev --controllers none`.
module moonloop/cluster/spec/controller-runtime

go 1.26.0

require (
	k8s.io/api v0.36.3
	k8s.io/apiextensions-apiserver v0.36.3
	k8s.io/apimachinery v0.36.3
	k8s.io/apiserver v0.36.3
	k8s.io/client-go v0.36.3
	sigs.k8s.io/controller-runtime v0.24.1
)
