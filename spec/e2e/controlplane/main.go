// Command controlplane is a whole Kubernetes control plane in one binary: the
// upstream API server and controller manager, etcd, kubectl, a fake kubelet and
// a fault-injecting proxy, each a subcommand that runs as a process of its own.
// controlplane.sh builds it and starts the pieces together.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // registers the client-go metrics, as upstream's main does
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// commands holds constructors, not commands: the upstream ones register flags
// and feature gates in process-wide tables when they are built, so only the one
// that was asked for may be.
var commands = map[string]func() *cobra.Command{
	"etcd":                    newEtcdCommand,
	"free-ports":              newFreePortsCommand,
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kubelet":                 newKubeletCommand,
	"proxy":                   newProxyCommand,
	"wait-ready":              newWaitReadyCommand,
}

func main() {
	name := ""
	if len(os.Args) > 1 {
		name = os.Args[1]
		// The subcommand takes over: both cobra and kubectl read os.Args themselves.
		os.Args = append([]string{name}, os.Args[2:]...)
	}
	if name == "kubectl" {
		runKubectl()
		return
	}
	construct, known := commands[name]
	if !known {
		names := append(slices.Sorted(maps.Keys(commands)), "kubectl")
		fmt.Fprintf(os.Stderr, "usage: controlplane COMMAND [FLAG...]\ncommands: %s\n", strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Exit(cli.Run(construct()))
}
