// The image agnhost of Kubernetes' tests as one program: its commands, and files of it that tests name. It also stands for
// the web servers of other images.
package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/cert"
	"k8s.io/component-base/cli"
	auditproxy "k8s.io/kubernetes/test/images/agnhost/audit-proxy"
	"k8s.io/kubernetes/test/images/agnhost/connect"
	crdconvwebhook "k8s.io/kubernetes/test/images/agnhost/crd-conversion-webhook"
	"k8s.io/kubernetes/test/images/agnhost/dns"
	entrypoint "k8s.io/kubernetes/test/images/agnhost/entrypoint-tester"
	grpchealthchecking "k8s.io/kubernetes/test/images/agnhost/grpc-health-checking"
	"k8s.io/kubernetes/test/images/agnhost/guestbook"
	"k8s.io/kubernetes/test/images/agnhost/inclusterclient"
	"k8s.io/kubernetes/test/images/agnhost/liveness"
	logsgen "k8s.io/kubernetes/test/images/agnhost/logs-generator"
	"k8s.io/kubernetes/test/images/agnhost/mounttest"
	"k8s.io/kubernetes/test/images/agnhost/net"
	"k8s.io/kubernetes/test/images/agnhost/netexec"
	"k8s.io/kubernetes/test/images/agnhost/nettest"
	nosnat "k8s.io/kubernetes/test/images/agnhost/no-snat-test"
	nosnatproxy "k8s.io/kubernetes/test/images/agnhost/no-snat-test-proxy"
	"k8s.io/kubernetes/test/images/agnhost/nonewprivs"
	"k8s.io/kubernetes/test/images/agnhost/openidmetadata"
	"k8s.io/kubernetes/test/images/agnhost/pause"
	portforwardtester "k8s.io/kubernetes/test/images/agnhost/port-forward-tester"
	"k8s.io/kubernetes/test/images/agnhost/porter"
	servehostname "k8s.io/kubernetes/test/images/agnhost/serve-hostname"
	testwebserver "k8s.io/kubernetes/test/images/agnhost/test-webserver"
	"k8s.io/kubernetes/test/images/agnhost/webhook"
)

// Readiness probes ask web servers for the certificate, and servers of TLS read it and its key.
const certificate = "/localhost.crt"

// writeFiles makes a certificate only for a command that serves TLS, as it takes a tenth of a second.
func writeFiles() error {
	files := map[string][]byte{
		certificate:      []byte("present\n"),
		"/localhost.key": nil,
		"/data.json":     []byte("{\"image\": \"nautilus.jpg\"}\n"), // of the image nautilus
	}
	if slices.Contains(os.Args, certificate) || slices.Contains(os.Args, "porter") {
		var err error
		files[certificate], files["/localhost.key"], err = cert.GenerateSelfSignedCertKey("localhost", nil, nil)
		if err != nil {
			return err
		}
	}
	for path, text := range files {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	if err := writeFiles(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	root := &cobra.Command{Use: "agnhost"}
	root.AddCommand(auditproxy.CmdAuditProxy, connect.CmdConnect, crdconvwebhook.CmdCrdConversionWebhook,
		dns.CmdDNSSuffix, dns.CmdDNSServerList, dns.CmdEtcHosts, entrypoint.CmdEntrypointTester,
		grpchealthchecking.CmdGrpcHealthChecking, guestbook.CmdGuestbook, inclusterclient.CmdInClusterClient,
		liveness.CmdLiveness, logsgen.CmdLogsGenerator, mounttest.CmdMounttest, net.CmdNet, netexec.CmdNetexec,
		nettest.CmdNettest, nosnat.CmdNoSnatTest, nosnatproxy.CmdNoSnatTestProxy, nonewprivs.CmdNoNewPrivs,
		openidmetadata.CmdTestServiceAccountIssuerDiscovery, pause.CmdPause, porter.CmdPorter,
		portforwardtester.CmdPortForwardTester, servehostname.CmdServeHostname, testwebserver.CmdTestWebserver,
		webhook.CmdWebhook)
	os.Exit(cli.Run(root))
}
