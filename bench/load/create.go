package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// createFlags are those that ats and pods have in common.
type createFlags struct {
	kubeconfig, namespace string
	first, count          int
	concurrency           int
	due                   string
}

func (f *createFlags) register(set *flag.FlagSet, due string) {
	set.StringVar(&f.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "file that says how to reach the API server")
	set.StringVar(&f.namespace, "namespace", "default", "where")
	set.IntVar(&f.first, "first", 0, "number of the first one; names end in it")
	set.IntVar(&f.count, "count", 200, "how many")
	set.IntVar(&f.concurrency, "concurrency", 16, "requests at a time")
	set.StringVar(&f.due, "due", "+0s", due)
}

// parseDue takes RFC 3339, or +DURATION from now, which ends on a whole second.
func parseDue(text string) (time.Time, error) {
	if !strings.HasPrefix(text, "+") {
		return time.Parse(time.RFC3339Nano, text)
	}
	wait, err := time.ParseDuration(text[1:])
	return time.Now().Add(wait + time.Second - 1).Truncate(time.Second).UTC(), err
}

const atsPath = "/apis/cnat.programming-kubernetes.info/v1alpha1/namespaces/%s/ats"

func runAts(args []string) error {
	var flags createFlags
	set := flag.NewFlagSet("ats", flag.ExitOnError)
	flags.register(set, "the schedule: an instant, +DURATION from now, or =TEXT as it stands")
	_ = set.Parse(args)

	schedule, literal := strings.CutPrefix(flags.due, "=")
	if !literal {
		due, err := parseDue(flags.due)
		if err != nil {
			return err
		}
		schedule = due.Format(time.RFC3339)
	}
	c, err := newClient(flags.kubeconfig)
	if err != nil {
		return err
	}
	began := time.Now()
	path := fmt.Sprintf(atsPath, flags.namespace)
	err = inParallel(flags.count, flags.concurrency, func(i int) error {
		return c.post(path, atBody(atName(flags.first+i), schedule))
	})
	fmt.Printf("due\t%s\nmaking\t%.3f\n", schedule, time.Since(began).Seconds())
	return err
}

func atBody(name, schedule string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"cnat.programming-kubernetes.info/v1alpha1","kind":"At","metadata":{"name":%q},`+
		`"spec":{"schedule":%q,"command":"echo YAY"}}`, name, schedule)
}

func runPods(args []string) error {
	var flags createFlags
	var byAts bool
	set := flag.NewFlagSet("pods", flag.ExitOnError)
	flags.register(set, "when to begin: an instant, or +DURATION from now")
	set.BoolVar(&byAts, "owned-by-ats", false, "the At of the same number owns each; else one ConfigMap owns all")
	_ = set.Parse(args)

	due, err := parseDue(flags.due)
	if err != nil {
		return err
	}
	c, err := newClient(flags.kubeconfig)
	if err != nil {
		return err
	}
	owner := c.ownerConfigMap
	if byAts {
		owner = c.ownerAts
	}
	ownerOf, err := owner(flags.namespace)
	if err != nil {
		return err
	}
	bodies := make([][]byte, flags.count)
	for i := range bodies {
		name := atName(flags.first + i)
		bodies[i] = podBody(name, ownerOf(name))
	}
	// The connection is up and warm before the instant, as an operator's is.
	for range 3 {
		if err := c.get("/version", new(struct{})); err != nil {
			return err
		}
	}
	if time.Until(due) < 0 {
		due = time.Now()
	}
	time.Sleep(time.Until(due))
	answered := make([]float64, flags.count)
	path := "/api/v1/namespaces/" + flags.namespace + "/pods"
	err = inParallel(flags.count, flags.concurrency, func(i int) error {
		err := c.post(path, bodies[i])
		answered[i] = time.Since(due).Seconds()
		return err
	})
	fmt.Printf("due\t%s\n", due.UTC().Format(time.RFC3339Nano))
	printQuantiles(os.Stdout, "answered", answered)
	return err
}

// runNamespace makes a namespace and waits for its service account: the server
// refuses pods before that exists.
func runNamespace(args []string) error {
	set := flag.NewFlagSet("namespace", flag.ExitOnError)
	kubeconfig := set.String("kubeconfig", os.Getenv("KUBECONFIG"), "file that says how to reach the API server")
	name := set.String("name", "", "its name")
	_ = set.Parse(args)

	c, err := newClient(*kubeconfig)
	if err != nil {
		return err
	}
	if err := c.post("/api/v1/namespaces", fmt.Appendf(nil, `{"metadata":{"name":%q}}`, *name)); err != nil {
		return err
	}
	for range 1000 {
		if err = c.get("/api/v1/namespaces/"+*name+"/serviceaccounts/default", new(struct{})); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// podBody is the pod that reconcilers/cnat.lua makes, with as many bytes.
func podBody(at, owner string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s-pod","labels":{"app":"%s"},"ownerReferences":[%s]},`+
		`"spec":{"containers":[{"name":"busybox","image":"busybox","command":["echo","YAY"]}],"restartPolicy":"OnFailure"}}`, at, at, owner)
}

func ownerReference(apiVersion, kind, name, uid string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true,"blockOwnerDeletion":true}`, apiVersion, kind, name, uid)
}

// ownerAts finds the At of each name.
func (c *client) ownerAts(namespace string) (func(string) string, error) {
	var list struct{ Items []object }
	if err := c.get(fmt.Sprintf(atsPath, namespace)+"?resourceVersion=0", &list); err != nil {
		return nil, err
	}
	uids := make(map[string]string, len(list.Items))
	for _, at := range list.Items {
		uids[at.Metadata.Name] = at.Metadata.UID
	}
	return func(name string) string {
		return ownerReference("cnat.programming-kubernetes.info/v1alpha1", "At", name, uids[name])
	}, nil
}

// ownerConfigMap is an owner that no operator here looks at, so that the server
// and its garbage collector have the same work with these pods as with an At's.
func (c *client) ownerConfigMap(namespace string) (func(string) string, error) {
	path := "/api/v1/namespaces/" + namespace + "/configmaps"
	if err := c.post(path, []byte(`{"metadata":{"name":"owner"}}`)); err != nil {
		return nil, err
	}
	var owner object
	if err := c.get(path+"/owner", &owner); err != nil {
		return nil, err
	}
	return func(string) string { return ownerReference("v1", "ConfigMap", "owner", owner.Metadata.UID) }, nil
}
