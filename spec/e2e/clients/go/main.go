// A client as Go programs write them, against the server of $KUBECONFIG: typed and dynamic informers,
// all kinds of writes, a leader election. Says what it did, a line each; ends with 1 and the reason at
// the first thing that is not as it should be.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 30 * time.Second

// A step works in a namespace of its own.
type step struct {
	name string
	run  func(ctx context.Context, c *clients, namespace string) error
}

type clients struct {
	config  *rest.Config
	typed   kubernetes.Interface
	dynamic dynamic.Interface
}

func connect() (*clients, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 1000, 1000
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	untyped, err := dynamic.NewForConfig(config)
	return &clients{config, typed, untyped}, err
}

func run() error {
	c, err := connect()
	if err != nil {
		return err
	}
	steps := []step{
		{"typed informer", typedInformer},
		{"dynamic informer", dynamicInformer},
		{"writes", writes},
		{"leader election", leaderElection},
	}
	for _, s := range steps {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		namespace, err := newNamespace(ctx, c)
		if err == nil {
			err = s.run(ctx, c, namespace)
		}
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		forget(c, namespace)
		fmt.Println("ok", s.name)
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
