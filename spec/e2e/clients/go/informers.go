package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

const (
	objects = 50
	changes = 10
)

var ats = schema.GroupVersionResource{
	Group: "cnat.programming-kubernetes.info", Version: "v1alpha1", Resource: "ats",
}

type counts struct{ added, updated, deleted atomic.Int64 }

func (n *counts) handler() cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { n.added.Add(1) },
		UpdateFunc: func(any, any) { n.updated.Add(1) },
		DeleteFunc: func(any) { n.deleted.Add(1) },
	}
}

// till waits until all three counts are as wanted.
func (n *counts) till(ctx context.Context, added, updated, deleted int64) error {
	err := wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) {
		return n.added.Load() == added && n.updated.Load() == updated && n.deleted.Load() == deleted, nil
	})
	if err != nil {
		return fmt.Errorf("saw %d added, %d updated, %d deleted; expected %d, %d, %d: %w", n.added.Load(),
			n.updated.Load(), n.deleted.Load(), added, updated, deleted, err)
	}
	return nil
}

// Half of the objects are there before the informer is, and come with its list.
func typedInformer(ctx context.Context, c *clients, namespace string) error {
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	create := func(from, to int) error {
		for i := from; i < to; i++ {
			_, err := maps.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "m" + strconv.Itoa(i), Labels: map[string]string{"of": "informer"}},
				Data:       map[string]string{"i": strconv.Itoa(i)},
			}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := create(0, objects/2); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(c.typed, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "of=informer" }))
	informer := factory.Core().V1().ConfigMaps().Informer()
	var seen counts
	if _, err := informer.AddEventHandler(seen.handler()); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("the cache did not sync")
	}
	if err := create(objects/2, objects); err != nil {
		return err
	}
	if err := seen.till(ctx, objects, 0, 0); err != nil {
		return err
	}
	for i := range changes {
		object, err := factory.Core().V1().ConfigMaps().Lister().ConfigMaps(namespace).Get("m" + strconv.Itoa(i))
		if err != nil {
			return err
		}
		changed := object.DeepCopy()
		changed.Data["changed"] = "yes"
		if _, err := maps.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if err := seen.till(ctx, objects, changes, 0); err != nil {
		return err
	}
	err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "of=informer"})
	if err != nil {
		return err
	}
	return seen.till(ctx, objects, changes, objects)
}

func newAt(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cnat.programming-kubernetes.info/v1alpha1",
		"kind":       "At",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"schedule": "2099-01-01T00:00:00Z", "command": "true"},
	}}
}

func dynamicInformer(ctx context.Context, c *clients, namespace string) error {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, 0, namespace, nil)
	informer := factory.ForResource(ats).Informer()
	var seen counts
	if _, err := informer.AddEventHandler(seen.handler()); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("the cache did not sync")
	}
	resource := c.dynamic.Resource(ats).Namespace(namespace)
	at, err := resource.Create(ctx, newAt("one"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(at.Object, "echo changed", "spec", "command"); err != nil {
		return err
	}
	if at, err = resource.Update(ctx, at, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if at.GetGeneration() != 2 {
		return fmt.Errorf("generation is %d after a change of spec", at.GetGeneration())
	}
	if err := resource.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		return err
	}
	return seen.till(ctx, 1, 1, 1)
}
