package main

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations by which a test says what becomes of a pod.
const (
	annotationHang = "fake-kubelet/hang" // "true": stays Running for as long as the annotation is there
	annotationFail = "fake-kubelet/fail" // "true": ends Failed, exit code 1
)

// plan is what becomes of a pod once it runs.
type plan struct {
	ends     bool
	after    time.Duration // running time, where it ends
	exitCode int32
}

// planFor reads a pod's annotations, restart policy and first command. Commands
// count because the pods that an operator makes seldom carry a test's
// annotations: `sleep N` runs for N seconds and `false` fails.
func planFor(pod *corev1.Pod, runFor time.Duration) plan {
	if pod.Annotations[annotationFail] == "true" {
		return plan{ends: true, after: runFor, exitCode: 1}
	}
	if pod.Annotations[annotationHang] == "true" || pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return plan{}
	}
	command := append(append([]string{}, pod.Spec.Containers[0].Command...), pod.Spec.Containers[0].Args...)
	switch {
	case len(command) == 2 && command[0] == "sleep":
		if seconds, err := strconv.ParseFloat(command[1], 64); err == nil {
			return plan{ends: true, after: time.Duration(seconds * float64(time.Second))}
		}
	case len(command) == 1 && command[0] == "false":
		return plan{ends: true, after: runFor, exitCode: 1}
	}
	return plan{ends: true, after: runFor}
}

var lastIP atomic.Uint32

// podIP returns an address that no other pod of this process has had, until it
// has given out 65,536. Nobody listens on it.
func podIP() string {
	n := lastIP.Add(1)
	return fmt.Sprintf("10.244.%d.%d", n>>8&0xff, n&0xff)
}

// runningStatus is that of a pod whose containers all run and are ready.
func runningStatus(pod *corev1.Pod, ip string) corev1.PodStatus {
	now := metav1.Now()
	status := baseStatus(pod, corev1.PodRunning, corev1.ConditionTrue, "")
	status.HostIP, status.HostIPs = "127.0.0.1", []corev1.HostIP{{IP: "127.0.0.1"}}
	status.PodIP, status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	status.StartTime = &now
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	status.ContainerStatuses = containerStatuses(pod, running, true)
	return status
}

// endedStatus is that of a pod whose containers have all exited with exitCode.
func endedStatus(pod *corev1.Pod, exitCode int32) corev1.PodStatus {
	now := metav1.Now()
	phase, reason, why := corev1.PodSucceeded, "Completed", "PodCompleted"
	if exitCode != 0 {
		phase, reason, why = corev1.PodFailed, "Error", "PodFailed"
	}
	status := baseStatus(pod, phase, corev1.ConditionFalse, why)
	terminated := &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: reason, FinishedAt: now}
	if status.StartTime != nil {
		terminated.StartedAt = *status.StartTime
	}
	status.ContainerStatuses = containerStatuses(pod, corev1.ContainerState{Terminated: terminated}, false)
	return status
}

// baseStatus is the pod's present status with the phase and the kubelet's own
// conditions replaced. Conditions of others stay, such as that of an eviction.
func baseStatus(pod *corev1.Pod, phase corev1.PodPhase, ready corev1.ConditionStatus, why string) corev1.PodStatus {
	now := metav1.Now()
	status := *pod.Status.DeepCopy()
	status.Phase = phase
	own := []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.ContainersReady, Status: ready, Reason: why, LastTransitionTime: now},
		{Type: corev1.PodReady, Status: ready, Reason: why, LastTransitionTime: now},
	}
	others := slices.DeleteFunc(status.Conditions, func(condition corev1.PodCondition) bool {
		return slices.ContainsFunc(own, func(mine corev1.PodCondition) bool { return mine.Type == condition.Type })
	})
	status.Conditions = append(own, others...)
	return status
}

func containerStatuses(pod *corev1.Pod, state corev1.ContainerState, ready bool) []corev1.ContainerStatus {
	statuses := make([]corev1.ContainerStatus, 0, len(pod.Spec.Containers))
	for _, container := range pod.Spec.Containers {
		statuses = append(statuses, corev1.ContainerStatus{
			Name:        container.Name,
			Image:       container.Image,
			ImageID:     container.Image,
			ContainerID: fmt.Sprintf("fake://%s/%s", pod.UID, container.Name),
			State:       state,
			Ready:       ready,
			Started:     &ready,
		})
	}
	return statuses
}
