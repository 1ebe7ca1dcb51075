package main

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/retry"
)

func writes(ctx context.Context, c *clients, namespace string) error {
	for _, write := range []func(context.Context, *clients, string) error{
		applied, patched, contended, scaled, refused,
	} {
		if err := write(ctx, c, namespace); err != nil {
			return err
		}
	}
	return nil
}

// Two managers of one object, and the conflict between them.
func applied(ctx context.Context, c *clients, namespace string) error {
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	one := apply.ConfigMap("applied", namespace).WithData(map[string]string{"a": "1"})
	if _, err := maps.Apply(ctx, one, metav1.ApplyOptions{FieldManager: "first"}); err != nil {
		return err
	}
	two := apply.ConfigMap("applied", namespace).WithData(map[string]string{"a": "2"})
	_, err := maps.Apply(ctx, two, metav1.ApplyOptions{FieldManager: "second"})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("a second manager's apply: %v", err)
	}
	got, err := maps.Apply(ctx, two, metav1.ApplyOptions{FieldManager: "second", Force: true})
	if err != nil {
		return err
	}
	if got.Data["a"] != "2" {
		return fmt.Errorf("a forced apply left %q", got.Data["a"])
	}
	return nil
}

func patched(ctx context.Context, c *clients, namespace string) error {
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	for kind, body := range map[types.PatchType]string{
		types.MergePatchType:          `{"data":{"merge":"yes"}}`,
		types.StrategicMergePatchType: `{"data":{"strategic":"yes"}}`,
		types.JSONPatchType:           `[{"op":"add","path":"/data/json","value":"yes"}]`,
	} {
		if _, err := maps.Patch(ctx, "applied", kind, []byte(body), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	got, err := maps.Get(ctx, "applied", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(got.Data) != 4 {
		return fmt.Errorf("three patches and an apply left %v", got.Data)
	}
	return nil
}

// Ten writers of one object, each with its own retries.
func contended(ctx context.Context, c *clients, namespace string) error {
	const writers = 10
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	failures := make(chan error, writers)
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			backoff := retry.DefaultBackoff
			backoff.Steps = 50
			failures <- retry.RetryOnConflict(backoff, func() error {
				got, err := maps.Get(ctx, "applied", metav1.GetOptions{})
				if err != nil {
					return err
				}
				got.Data[fmt.Sprintf("writer-%d", i)] = "was here"
				_, err = maps.Update(ctx, got, metav1.UpdateOptions{})
				return err
			})
		})
	}
	group.Wait()
	for range writers {
		if err := <-failures; err != nil {
			return err
		}
	}
	got, err := maps.Get(ctx, "applied", metav1.GetOptions{})
	if err == nil && len(got.Data) != 4+writers {
		err = fmt.Errorf("%d writers left %d keys", writers, len(got.Data))
	}
	return err
}

func scaled(ctx context.Context, c *clients, namespace string) error {
	deployments := c.typed.AppsV1().Deployments(namespace)
	labels := map[string]string{"app": "scaled"}
	none := int32(0)
	_, err := deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "scaled"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &none,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "busybox"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	// The deployment controller writes to it too.
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		scale, err := deployments.GetScale(ctx, "scaled", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if scale.Status.Selector != "app=scaled" {
			return fmt.Errorf("the scale's selector is %q", scale.Status.Selector)
		}
		scale.Spec.Replicas = 1
		scale, err = deployments.UpdateScale(ctx, "scaled", scale, metav1.UpdateOptions{})
		if err == nil && scale.Spec.Replicas != 1 {
			err = fmt.Errorf("scaled to %d", scale.Spec.Replicas)
		}
		return err
	})
}

// Errors have the types that programs ask for.
func refused(ctx context.Context, c *clients, namespace string) error {
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	_, missing := maps.Get(ctx, "missing", metav1.GetOptions{})
	_, twice := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "applied"}},
		metav1.CreateOptions{})
	_, invalid := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "Not_A_Name"}},
		metav1.CreateOptions{})
	uid := types.UID("of-another")
	other := maps.Delete(ctx, "applied", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	switch {
	case !apierrors.IsNotFound(missing):
		return fmt.Errorf("a get of nothing: %v", missing)
	case !apierrors.IsAlreadyExists(twice):
		return fmt.Errorf("a second create: %v", twice)
	case !apierrors.IsInvalid(invalid):
		return fmt.Errorf("a bad name: %v", invalid)
	case !apierrors.IsConflict(other):
		return fmt.Errorf("a delete of another uid: %v", other)
	}
	return nil
}
