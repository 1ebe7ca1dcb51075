// Writes what the embedded API server knows of the built-in kinds, from the Go modules of one version of Kubernetes.
//
// Run by `make kinds`, when that version moves or a kind is added to the list below. Only facts are taken: fields, their
// types, numbers in protobuf, defaults and enums, the rules of lists and patches, resources, printer columns and roles;
// no descriptions.
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	scaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// The kinds whose types are written; what they refer to comes along. A package has one entry.
var kinds = []struct {
	alias string // how other packages call it, and the file's name
	types []any
}{
	{"core", []any{core.Namespace{}, core.Pod{}, core.ConfigMap{}, core.Secret{}, core.Service{},
		core.ServiceAccount{}, core.Event{}, core.Endpoints{}, core.Node{}, core.PersistentVolumeClaim{},
		core.PersistentVolume{}, core.Binding{}, core.PodTemplate{}, core.ReplicationController{},
		core.ResourceQuota{}, core.LimitRange{}, core.ComponentStatus{}}},
	{"admission", []any{admission.ValidatingAdmissionPolicy{}, admission.ValidatingAdmissionPolicyBinding{},
		admission.MutatingAdmissionPolicy{}, admission.MutatingAdmissionPolicyBinding{},
		admission.ValidatingWebhookConfiguration{}, admission.MutatingWebhookConfiguration{}}},
	{"apps", []any{apps.Deployment{}, apps.ReplicaSet{}, apps.StatefulSet{}, apps.ControllerRevision{},
		apps.DaemonSet{}}},
	{"batch", []any{batch.Job{}, batch.CronJob{}}},
	{"certificates", []any{certificates.CertificateSigningRequest{}}},
	{"coordination", []any{coordination.Lease{}}},
	{"events", []any{events.Event{}}},
	{"discovery", []any{discovery.EndpointSlice{}}},
	{"networking", []any{networking.IngressClass{}, networking.Ingress{}, networking.NetworkPolicy{},
		networking.IPAddress{}, networking.ServiceCIDR{}}},
	{"scheduling", []any{scheduling.PriorityClass{}}},
	{"storage", []any{storage.StorageClass{}, storage.VolumeAttachment{}, storage.CSIDriver{}, storage.CSINode{},
		storage.CSIStorageCapacity{}, storage.VolumeAttributesClass{}}},
	{"node", []any{node.RuntimeClass{}}},
	{"flowcontrol", []any{flowcontrol.FlowSchema{}, flowcontrol.PriorityLevelConfiguration{}}},
	{"apiregistration", []any{apiregistration.APIService{}}},
	{"policy", []any{policy.PodDisruptionBudget{}, policy.Eviction{}}},
	{"rbac", []any{rbac.Role{}, rbac.RoleBinding{}, rbac.ClusterRole{}, rbac.ClusterRoleBinding{}}},
	{"resource", []any{resource.DeviceClass{}, resource.ResourceClaim{}, resource.ResourceClaimTemplate{},
		resource.ResourceSlice{}}},
	{"apiextensions", []any{apiextensions.CustomResourceDefinition{}}},
	{"autoscaling", []any{autoscaling.Scale{}, autoscaling.HorizontalPodAutoscaler{}}},
	{"scaling", []any{scaling.HorizontalPodAutoscaler{}}},
	{"authorization", []any{authorization.SubjectAccessReview{}, authorization.SelfSubjectAccessReview{},
		authorization.LocalSubjectAccessReview{}, authorization.SelfSubjectRulesReview{}}},
	{"authentication", []any{authentication.TokenReview{}, authentication.SelfSubjectReview{},
		authentication.TokenRequest{}}},
	{"meta", []any{meta.ObjectMeta{}, meta.ListMeta{}, meta.Status{}, meta.DeleteOptions{}, meta.WatchEvent{},
		meta.Patch{}, meta.LabelSelector{}, meta.Condition{}, meta.APIGroup{}, meta.APIGroupList{},
		meta.APIResourceList{}, meta.APIVersions{}}},
}

// The longest line that is written.
const width = 118

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// write replaces a file of the target folder.
func write(folder, name string, lines []string) {
	path := filepath.Join(folder, name)
	check(os.MkdirAll(filepath.Dir(path), 0o755))
	check(os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
}

func main() {
	log.SetFlags(0)
	source := flag.String("kubernetes", "", "the folder of the module k8s.io/kubernetes")
	target := flag.String("to", "", "the folder to write to: cluster/kinds")
	flag.Parse()
	if *source == "" || *target == "" {
		flag.Usage()
		os.Exit(2)
	}
	check(os.RemoveAll(*target))
	writeTypes(*source, *target)
	writeResources(*source, *target)
	writeRoles(*target)
}
