package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// edit changes one object; it is an error when the server does not.
func (c *client) edit(path, patch string) error {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPatch, c.server+path, strings.NewReader(patch))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/merge-patch+json")
	request.Header.Set("User-Agent", userAgent)
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("PATCH %s: %s: %.300s", path, response.Status, answer)
	}
	return err
}

const dueNow = "2026-01-01T00:00:00Z"

// edited is an At, as much of it as tells whether an edit has reached it; or a list of them.
type edited struct {
	Metadata struct{ Name, ResourceVersion string }
	Spec     struct{ Schedule string }
}

// watchEdits watches Ats, beside the operator, and tells when each edit came.
func (c *client) watchEdits(namespace, version string, count int, seen chan<- string) {
	defer close(seen)
	path := fmt.Sprintf(atsPath+"?watch=1&resourceVersion=%s", namespace, version)
	response, err := c.do(context.Background(), http.MethodGet, path, nil)
	if err != nil {
		return
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 4<<20)
	for found := map[string]bool{}; len(found) < count && lines.Scan(); {
		var event struct{ Object edited }
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			return
		}
		name := event.Object.Metadata.Name
		if event.Object.Spec.Schedule == dueNow && !found[name] {
			found[name] = true
			seen <- fmt.Sprintf("%s\t%s", name, time.Now().UTC().Format(time.RFC3339Nano))
		}
	}
}

// runEdits makes waiting Ats due at once, one after the other, as a person does
// who edits them. It prints when a watch of its own brought each edit.
func runEdits(args []string) error {
	set := flag.NewFlagSet("edits", flag.ExitOnError)
	kubeconfig := set.String("kubeconfig", os.Getenv("KUBECONFIG"), "file that says how to reach the API server")
	namespace := set.String("namespace", "default", "where")
	first := set.Int("first", 0, "number of the first At")
	count := set.Int("count", 20, "how many")
	every := set.Duration("every", 200*time.Millisecond, "pause between two")
	_ = set.Parse(args)

	c, err := newClient(*kubeconfig)
	if err != nil {
		return err
	}
	path := func(i int) string { return fmt.Sprintf(atsPath+"/at-%05d", *namespace, *first+i) }
	// The version of an At is too old for a watch when many others were written since.
	var list edited
	if err := c.get(fmt.Sprintf(atsPath+"?limit=1", *namespace), &list); err != nil {
		return err
	}
	seen := make(chan string, *count)
	go c.watchEdits(*namespace, list.Metadata.ResourceVersion, *count, seen)
	for i := range *count {
		if err := c.edit(path(i), fmt.Sprintf(`{"spec":{"schedule":%q}}`, dueNow)); err != nil {
			return err
		}
		time.Sleep(*every)
	}
	shown := 0
	for line := range seen {
		fmt.Println(line)
		shown++
	}
	if shown < *count {
		return fmt.Errorf("the watch showed %d of %d edits", shown, *count)
	}
	return nil
}

// runOvertake says how long after each edit of an At was answered its pod was
// asked for; how long after the watch of runEdits had it, which is the
// operator's own part; and how much of the flood was still to come after the
// last one: the statuses that the operator wrote from then on.
func runOvertake(args []string) error {
	var seenFile string
	audit, namespace := auditFlags("overtake", args, func(set *flag.FlagSet) {
		set.StringVar(&seenFile, "seen", "", "what edits printed")
	})
	seen, err := readInstants(seenFile)
	if err != nil {
		return err
	}
	answered := map[string]time.Time{}
	var late, own []float64
	var after int
	err = readAudit(audit, namespace, func(e *auditEvent) {
		switch {
		case e.Verb == "patch" && e.ObjectRef.Resource == "ats" && e.ObjectRef.Subresource == "":
			answered[e.ObjectRef.Name] = e.StageTimestamp
			after = 0
		case e.Verb == "patch" && e.ObjectRef.Resource == "ats":
			after++
		case e.isPodMade():
			name := strings.TrimSuffix(e.ObjectRef.Name, "-pod")
			late = append(late, e.RequestReceivedTimestamp.Sub(answered[name]).Seconds())
			own = append(own, e.RequestReceivedTimestamp.Sub(seen[name]).Seconds())
		}
	})
	fmt.Printf("edits\t%d\npods\t%d\nafter\t%d\n", len(answered), len(late), after)
	printQuantiles(os.Stdout, "asked", late)
	printQuantiles(os.Stdout, "own", own)
	return err
}

// readInstants reads lines of a name, a tab and an instant.
func readInstants(path string) (map[string]time.Time, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	instants := map[string]time.Time{}
	for line := range strings.Lines(string(text)) {
		name, instant, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if instants[name], err = time.Parse(time.RFC3339Nano, instant); err != nil {
			return nil, err
		}
	}
	return instants, nil
}
