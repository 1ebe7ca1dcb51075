package main

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The first candidate leads, and the second takes over when it has let go.
func leaderElection(ctx context.Context, c *clients, namespace string) error {
	leads := make(chan string)
	campaign := func(ctx context.Context, name string) {
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "lead"},
				Client:     c.typed.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			},
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 200 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- name },
				OnStoppedLeading: func() {},
			},
		})
	}
	first, resign := context.WithCancel(ctx)
	defer resign()
	go campaign(first, "first")
	if name := <-leads; name != "first" {
		return errors.New(name + " leads, and nobody let it")
	}
	go campaign(ctx, "second")
	resign()
	select {
	case <-leads:
		return nil
	case <-ctx.Done():
		return errors.New("the second never led")
	}
}
