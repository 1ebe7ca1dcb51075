// The program for the pods of Kubernetes' tests: the commands of its image agnhost that they need, and a file of it.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/test/images/agnhost/crd-conversion-webhook"
	"k8s.io/kubernetes/test/images/agnhost/guestbook"
	"k8s.io/kubernetes/test/images/agnhost/netexec"
	"k8s.io/kubernetes/test/images/agnhost/pause"
	"k8s.io/kubernetes/test/images/agnhost/serve-hostname"
	"k8s.io/kubernetes/test/images/agnhost/test-webserver"
	"k8s.io/kubernetes/test/images/agnhost/webhook"
)

// probed is a file that readiness probes ask web servers for.
const probed = "/localhost.crt"

func main() {
	if err := os.WriteFile(probed, []byte("present\n"), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	root := &cobra.Command{Use: "agnhost"}
	root.AddCommand(crdconvwebhook.CmdCrdConversionWebhook, guestbook.CmdGuestbook, netexec.CmdNetexec, pause.CmdPause,
		servehostname.CmdServeHostname, testwebserver.CmdTestWebserver, webhook.CmdWebhook)
	os.Exit(cli.Run(root))
}
