package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	podsPath     = "/api/v1/namespaces/%s/pods"
	servicesPath = "/api/v1/namespaces/%s/services"
	hopPort      = 8080
)

// plainPod is a pod with one container that is given as JSON.
func plainPod(name, container string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"app":%q}},`+
		`"spec":{"restartPolicy":"Never","terminationGracePeriodSeconds":0,"containers":[%s]}}`, name, name, container)
}

// phases sends each pod to the channel when it is in a phase.
func (c *client) phases(namespace, phase string) <-chan object {
	found := make(chan object, 1000)
	go c.watch(fmt.Sprintf(podsPath, namespace), time.Minute, func(pod object) bool {
		if pod.Status.Phase == phase {
			found <- pod
		}
		return false
	})
	return found
}

// await takes pods from the channel until one has that name.
func await(found <-chan object, name string) (object, error) {
	late := time.After(30 * time.Second)
	for {
		select {
		case pod := <-found:
			if pod.Metadata.Name == name {
				return pod, nil
			}
		case <-late:
			return object{}, fmt.Errorf("pod %s did not get so far within 30 s", name)
		}
	}
}

// runStarts makes pods one after the other, each when the one before runs.
func runStarts(args []string) error {
	var flags createFlags
	set := flag.NewFlagSet("starts", flag.ExitOnError)
	flags.register(set, "not used")
	_ = set.Parse(args)
	c, err := newClient(flags.kubeconfig)
	if err != nil {
		return err
	}
	running := c.phases(flags.namespace, "Running")
	var took []time.Duration
	for i := range flags.count {
		name := fmt.Sprintf("starts-%04d", i)
		began := time.Now()
		body := plainPod(name, `{"name":"c","image":"busybox","command":["sleep","60"]}`)
		if err := c.post(fmt.Sprintf(podsPath, flags.namespace), body); err != nil {
			return err
		}
		if _, err := await(running, name); err != nil {
			return err
		}
		took = append(took, time.Since(began))
		response, err := c.do(context.Background(), http.MethodDelete, fmt.Sprintf(podsPath, flags.namespace)+"/"+name, nil)
		if err != nil {
			return err
		}
		response.Body.Close()
	}
	slices.Sort(took)
	fmt.Printf("p50\t%.6f\np99\t%.6f\n", took[len(took)/2].Seconds(), took[len(took)*99/100].Seconds())
	return nil
}

// runEcho is what the server's pod of runHops runs.
func runEcho([]string) error {
	return http.ListenAndServe(fmt.Sprintf(":%d", hopPort), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "here")
	}))
}

// runHop is what the client's pod runs: it asks a pod at its address and by its Service by turns.
func runHop(args []string) error {
	set := flag.NewFlagSet("hop", flag.ExitOnError)
	direct := set.String("direct", "", "address of the pod")
	service := set.String("service", "", "name of the Service")
	count := set.Int("count", 2000, "how many requests of each kind")
	_ = set.Parse(args)
	var took [2][]time.Duration
	for i := range 2 * *count {
		began := time.Now()
		response, err := http.Get(fmt.Sprintf("http://%s:%d/", []string{*direct, *service}[i%2], hopPort))
		if err != nil {
			return err
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		took[i%2] = append(took[i%2], time.Since(began))
	}
	for i, name := range []string{"direct", "service"} {
		slices.Sort(took[i])
		fmt.Printf("%s_p50\t%.6f\n", name, took[i][*count/2].Seconds())
	}
	fmt.Printf("added_p50\t%.6f\n", (took[1][*count/2] - took[0][*count/2]).Seconds())
	return nil
}

// runHops has one pod ask another, in a cluster whose pods have a network and whose image "load" is this program.
func runHops(args []string) error {
	var flags createFlags
	set := flag.NewFlagSet("hops", flag.ExitOnError)
	flags.register(set, "not used")
	_ = set.Parse(args)
	c, err := newClient(flags.kubeconfig)
	if err != nil {
		return err
	}
	pods := fmt.Sprintf(podsPath, flags.namespace)
	running, ended := c.phases(flags.namespace, "Running"), c.phases(flags.namespace, "Succeeded")
	err = c.post(fmt.Sprintf(servicesPath, flags.namespace), fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Service",`+
		`"metadata":{"name":"echo"},"spec":{"selector":{"app":"echo"},"ports":[{"port":%d}]}}`, hopPort))
	if err == nil {
		err = c.post(pods, plainPod("echo", fmt.Sprintf(`{"name":"c","image":"load","args":["echo"],`+
			`"readinessProbe":{"tcpSocket":{"port":%d},"periodSeconds":1}}`, hopPort)))
	}
	if err == nil {
		_, err = await(running, "echo")
	}
	if err != nil {
		return err
	}
	var server struct{ Status struct{ PodIP string } }
	if err := c.get(pods+"/echo", &server); err != nil {
		return err
	}
	if err := c.endpoints(flags.namespace, "echo"); err != nil {
		return err
	}
	err = c.post(pods, plainPod("hop", fmt.Sprintf(`{"name":"c","image":"load","args":["hop","-direct",%q,"-service","echo",`+
		`"-count","%d"]}`, server.Status.PodIP, flags.count)))
	if err == nil {
		_, err = await(ended, "hop")
	}
	if err != nil {
		return err
	}
	said, err := c.log(pods + "/hop")
	fmt.Print(said)
	if err == nil && !strings.Contains(said, "added_p50") {
		err = errors.New("the client's pod measured nothing")
	}
	return err
}

// endpoints waits until a Service has one.
func (c *client) endpoints(namespace, service string) error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var found struct {
			Subsets []struct{ Addresses []struct{ IP string } }
		}
		err := c.get(fmt.Sprintf("/api/v1/namespaces/%s/endpoints/%s", namespace, service), &found)
		if err == nil && len(found.Subsets) > 0 && len(found.Subsets[0].Addresses) > 0 {
			return nil
		}
	}
	return fmt.Errorf("service %s got no endpoint within 30 s", service)
}
