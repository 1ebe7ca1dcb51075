package main

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// The objects of a stream's server: pods of cnat and their Ats, made from their number
// whenever they are asked for. The first ones run still, so that the end of such a pod
// makes the operator write; the others have ended long ago.

// podShape says how much a pod carries beside what cnat asks for.
type podShape string

const (
	podSmall podShape = "small" // about 1.3 KB
	podLarge podShape = "large" // about 6 KB: three more containers, volumes, probes, managed fields
)

// uid is as random as those of a server, and the same in every run.
func uid(kind string, number int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", kind, number))
	return fmt.Sprintf("%x-%x-4%.3x-8%.3x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func atName(number int) string { return fmt.Sprintf("at-%05d", number) }

func appendAt(out []byte, number int, version uint64, phase string) []byte {
	return fmt.Appendf(out, `{"apiVersion":"cnat.programming-kubernetes.info/v1alpha1","kind":"At","metadata":{"name":%q,`+
		`"namespace":"default","uid":%q,"resourceVersion":"%d","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z"},`+
		`"spec":{"command":"echo YAY","schedule":"2026-01-01T00:00:00Z"},"status":{"phase":%q}}`,
		atName(number), uid("at", number), version, phase)
}

func appendContainerStatus(out []byte, name, id, state string) []byte {
	return fmt.Appendf(out, `{"name":%q,"state":%s,"lastState":{},"ready":false,"restartCount":0,`+
		`"image":"docker.io/library/busybox:latest","containerID":"containerd://%s","started":false}`, name, state, id)
}

// appendPod makes a pod. Two versions of it differ in the time of its conditions.
func appendPod(out []byte, shape podShape, number int, version uint64, phase string) []byte {
	id := fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "container %d", number)))
	at := fmt.Sprintf("2026-01-01T%02d:%02d:%02dZ", version/3600%24, version/60%60, version%60)
	out = fmt.Appendf(out, `{"metadata":{"name":"%s-pod","namespace":"default","uid":%q,"resourceVersion":"%d",`+
		`"generation":1,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":%q},"ownerReferences":[%s]`,
		atName(number), uid("pod", number), version, atName(number),
		ownerReference("cnat.programming-kubernetes.info/v1alpha1", "At", atName(number), uid("at", number)))
	if shape == podLarge {
		out = append(out, largeManagedFields...)
	}
	out = append(out, `},"spec":{"containers":[{"name":"busybox","image":"busybox","command":["echo","YAY"],"resources":{}`...)
	if shape == podLarge {
		out = append(out, largeSpec...)
	} else {
		out = append(out, `}]`...)
	}
	out = fmt.Appendf(out, `,"restartPolicy":"OnFailure","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",`+
		`"serviceAccountName":"default","nodeName":"node-%d"},"status":{"phase":%q,"conditions":[`, number%20, phase)
	for i, condition := range []string{"PodScheduled", "Initialized", "Ready"} {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `{"type":%q,"status":"True","lastProbeTime":null,"lastTransitionTime":%q}`, condition, at)
	}
	out = fmt.Appendf(out, `],"hostIP":"10.0.0.%d","podIP":"10.244.%d.%d","startTime":"2026-01-01T00:00:00Z","containerStatuses":[`,
		number%20, number/250%250, number%250)
	state := `{"running":{"startedAt":"2026-01-01T00:00:00Z"}}`
	if phase == "Succeeded" {
		state = `{"terminated":{"exitCode":0,"reason":"Completed","startedAt":"2026-01-01T00:00:00Z","finishedAt":"` + at + `"}}`
	}
	out = appendContainerStatus(out, "busybox", id, state)
	if shape == podLarge {
		for i := range largeContainers {
			out = append(out, ',')
			out = appendContainerStatus(out, fmt.Sprintf("side-%d", i), id[8*i:]+id[:8*i], state)
		}
	}
	return append(out, `],"qosClass":"BestEffort"}}`...)
}

const largeContainers = 3

const serviceAccountVolume = `{"name":"kube-api-access","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,` +
	`"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":` +
	`{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}`

// largeSpec goes on behind the first container's resources.
var largeSpec = func() string {
	const mounts = `"volumeMounts":[{"name":"kube-api-access","readOnly":true,` +
		`"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]`
	text := "," + mounts + "}"
	for i := range largeContainers {
		text += fmt.Sprintf(`,{"name":"side-%d","image":"busybox","command":["sleep","3600"],"resources":{"limits":{"cpu":"100m",`+
			`"memory":"30Mi"}},"env":[{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],`+
			`"livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"initialDelaySeconds":5,"timeoutSeconds":1,`+
			`"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"terminationMessagePath":"/dev/termination-log",`+
			`"imagePullPolicy":"Always",%s}`, i, mounts)
	}
	return text + `],"volumes":[` + serviceAccountVolume + `],"tolerations":[{"key":"node.kubernetes.io/not-ready",` +
		`"operator":"Exists","effect":"NoExecute","tolerationSeconds":300}]`
}()

var largeManagedFields = func() string {
	fields := strings.Repeat(`"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},`, 3)
	entry := `{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1",` +
		`"fieldsV1":{"f:status":{"f:conditions":{` + fields + `".":{}},"f:containerStatuses":{},"f:phase":{}}},"subresource":"status"}`
	return `,"managedFields":[` + entry + `,` + entry + `]`
}()
