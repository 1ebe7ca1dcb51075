package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// newWaitReadyCommand waits for a control plane that is starting, and stops
// waiting when a part of it has ended.
func newWaitReadyCommand() *cobra.Command {
	var kubeconfig string
	var timeout time.Duration
	var pids []int
	cmd := &cobra.Command{
		Use:   "wait-ready",
		Short: "wait until pods can be made",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return waitReady(ctx, kubeconfig, pids)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "file that says how to reach the API server")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait")
	cmd.Flags().IntSliceVar(&pids, "pids", nil, "processes without which waiting is in vain")
	_ = cmd.MarkFlagRequired("kubeconfig")
	return cmd
}

func waitReady(ctx context.Context, kubeconfig string, pids []int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for {
		last := ready(ctx, client)
		if last == nil {
			return nil
		}
		for _, pid := range pids {
			if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
				return fmt.Errorf("process %d ended", pid)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready in time: %w", last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ready asks for the service account as well as for /readyz: the controller
// manager makes it, and no pod can be made before.
func ready(ctx context.Context, client kubernetes.Interface) error {
	if _, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return err
	}
	_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}
