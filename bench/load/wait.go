package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"
)

// runWait first follows the audit log, which costs the API server nothing while
// it is measured, and only then watches what is left to come.
func runWait(args []string) error {
	set := flag.NewFlagSet("wait", flag.ExitOnError)
	kubeconfig := set.String("kubeconfig", os.Getenv("KUBECONFIG"), "file that says how to reach the API server")
	audit := set.String("audit", "", "audit log in which to wait for --count pods")
	namespace := set.String("namespace", "default", "where")
	resource := set.String("resource", "ats", "ats or pods: whose phase")
	phase := set.String("phase", "", "phase to wait for")
	count := set.Int("count", 1, "how many")
	timeout := set.Duration("timeout", 2*time.Minute, "how long to wait")
	_ = set.Parse(args)

	if *audit != "" {
		if err := waitForPods(*audit, *namespace, *count, *timeout); err != nil {
			return err
		}
	}
	if *phase == "" {
		return nil
	}
	c, err := newClient(*kubeconfig)
	if err != nil {
		return err
	}
	path := fmt.Sprintf(atsPath, *namespace)
	if *resource == "pods" {
		path = "/api/v1/namespaces/" + *namespace + "/pods"
	}
	reached := map[string]bool{}
	err = c.watch(path, *timeout, func(o object) bool {
		if o.Status.Phase == *phase {
			reached[o.Metadata.Name] = true
		}
		return len(reached) >= *count
	})
	if err != nil {
		return fmt.Errorf("%d of %d %s %s: %w", len(reached), *count, *resource, *phase, err)
	}
	return nil
}

func waitForPods(audit, namespace string, count int, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	log, err := openAudit(audit)
	if err != nil {
		return err
	}
	defer log.close()
	for made := 0; ; time.Sleep(20 * time.Millisecond) {
		err := log.each(func(e *auditEvent) {
			if e.isPodMade() && e.ObjectRef.Namespace == namespace {
				made++
			}
		})
		if err != nil || made >= count {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d pods made within %s", made, count, timeout)
		}
	}
}

// runReady asks a URL again and again. It is to be started before what it asks.
func runReady(args []string) error {
	set := flag.NewFlagSet("ready", flag.ExitOnError)
	url := set.String("url", "", "what to ask")
	timeout := set.Duration("timeout", 30*time.Second, "how long")
	_ = set.Parse(args)

	c := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for deadline := time.Now().Add(*timeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		response, err := c.Get(*url)
		if err != nil {
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			fmt.Printf("at\t%.6f\n", float64(time.Now().UnixMicro())/1e6)
			return nil
		}
	}
	return fmt.Errorf("%s: not ready within %s", *url, *timeout)
}
