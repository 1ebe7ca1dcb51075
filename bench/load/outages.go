package main

import (
	"bufio"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// An outage is what the proxy's log has of one, and what the operator asked for after it.
type outage struct {
	cut, open time.Time
	watched   map[string]time.Time // the first watch of a resource
	lists     map[string]int       // of a resource, pages after the first not counted
	pod       time.Time            // the first one made
}

func readOutages(path string) ([]*outage, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var outages []*outage
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var what string
		var seconds float64
		if _, err := fmt.Sscanf(lines.Text(), "%s\t%f", &what, &seconds); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		at := time.UnixMicro(int64(seconds * 1e6))
		switch {
		case what == "cut":
			outages = append(outages, &outage{cut: at, watched: map[string]time.Time{}, lists: map[string]int{}})
		case len(outages) > 0:
			outages[len(outages)-1].open = at
		}
	}
	return outages, nil
}

func (o *outage) take(e *auditEvent) {
	resource, at := e.ObjectRef.Resource, e.RequestReceivedTimestamp
	switch {
	case e.Verb == "watch" && (o.watched[resource].IsZero() || at.Before(o.watched[resource])):
		o.watched[resource] = at
	case e.Verb == "list" && !strings.Contains(e.RequestURI, "continue="):
		o.lists[resource]++
	case e.isPodMade() && (o.pod.IsZero() || e.StageTimestamp.Before(o.pod)):
		o.pod = e.StageTimestamp
	}
}

// runOutages says how long after the end of each outage the server got the operator's
// watches, the last one first asked for counts, and made its next pod; how many of its outages saw no
// watch again; and the most lists that it took for one kind. A watch stands in the log once it has
// ended, so the operator is to be stopped before.
func runOutages(args []string) error {
	set := flag.NewFlagSet("outages", flag.ExitOnError)
	audit := set.String("audit", "audit.log", "the audit log")
	log := set.String("log", "", "of the proxy")
	kinds := set.Int("kinds", 2, "how many kinds the operator watches")
	_ = set.Parse(args)
	outages, err := readOutages(*log)
	if err != nil {
		return err
	}
	err = readAll(*audit, func(e *auditEvent) {
		i, _ := slices.BinarySearchFunc(outages, e.RequestReceivedTimestamp, func(o *outage, at time.Time) int {
			return o.cut.Compare(at)
		})
		if i > 0 {
			outages[i-1].take(e)
		}
	})
	var watched, pods []float64
	var unseen, lists int
	for _, o := range outages {
		if o.open.IsZero() {
			continue // the operator was stopped in it
		}
		var last time.Time
		for _, at := range o.watched {
			if at.After(last) {
				last = at
			}
		}
		for _, count := range o.lists {
			lists = max(lists, count)
		}
		if len(o.watched) < *kinds {
			unseen++
			continue
		}
		watched = append(watched, last.Sub(o.open).Seconds())
		if !o.pod.IsZero() {
			pods = append(pods, o.pod.Sub(o.open).Seconds())
		}
	}
	fmt.Printf("outages\t%d\nunseen\t%d\nlists_max\t%d\n", len(outages), unseen, lists)
	printQuantiles(os.Stdout, "watched", watched)
	printQuantiles(os.Stdout, "pod", pods)
	return err
}

// runRequests counts all that the operator sent since an instant.
func runRequests(args []string) error {
	set := flag.NewFlagSet("requests", flag.ExitOnError)
	audit := set.String("audit", "audit.log", "the audit log")
	after := set.Float64("after", 0, "the instant, in seconds since 1970")
	_ = set.Parse(args)
	instant := time.UnixMicro(int64(*after * 1e6))
	var total, refused, failed int
	counts := map[string]int{}
	err := readAll(*audit, func(e *auditEvent) {
		if e.RequestReceivedTimestamp.Before(instant) {
			return
		}
		total++
		counts[e.what()]++
		switch {
		case e.ResponseStatus.Code >= 500:
			failed++
		case e.ResponseStatus.Code >= 300:
			refused++
		}
	})
	fmt.Printf("all\t%d\nrefused\t%d\nfailed\t%d\n", total, refused, failed)
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("%s\t%d\n", strings.ReplaceAll(what, " ", "_"), counts[what])
	}
	return err
}
