// Command kubectl is the current kubectl alone. The control plane's binary has it too, and needs
// twice as long to start: specs call it a thousand times.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// kubectl reports its own errors: what it prints is for the user, not for a log.
func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
