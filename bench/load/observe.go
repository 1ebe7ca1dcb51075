package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// series is one thing, looked at each second.
type series struct {
	name   string
	values []float64
}

// most is the highest value in some quarters of the time, the first being 0.
func (s *series) most(quarters ...int) float64 {
	most := 0.0
	for _, q := range quarters {
		most = max(most, slices.Max(s.values[q*len(s.values)/4:(q+1)*len(s.values)/4]))
	}
	return most
}

// print says where it began and ended, its most, and how much more that was in the last quarter
// than in the second: in the first one, caches fill.
func (s *series) print() {
	if len(s.values) < 4 {
		return
	}
	fmt.Printf("%s_first\t%.0f\n%s_last\t%.0f\n%s_max\t%.0f\n%s_growth\t%.0f\n", s.name, s.values[0],
		s.name, s.last(), s.name, s.most(0, 1, 2, 3), s.name, s.most(3)-s.most(1))
}

func (s *series) last() float64 { return s.values[len(s.values)-1] }

// statusKib is a field of /proc/PID/status, as VmRSS.
func statusKib(pid int, field string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			return strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
		}
	}
	return 0, fmt.Errorf("process %d has no %s", pid, field)
}

// probe is what a URL answered: its status, or what was in the way.
func probe(c *http.Client, url string) string {
	response, err := c.Get(url)
	if err != nil {
		return err.Error()
	}
	response.Body.Close()
	return strconv.Itoa(response.StatusCode)
}

// observer looks at one process.
type observer struct {
	pid          int
	health       string // URL of its probes; empty: none
	memory       string // file with the bytes that its cgroup holds; empty: none
	client       http.Client
	descriptors  series
	resident     series
	cgroup       series
	dead, ready  int
	lastLiveness string // that was not 200
}

func (o *observer) look() error {
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", o.pid))
	if err != nil {
		return err
	}
	kib, err := statusKib(o.pid, "VmRSS")
	if err != nil {
		return err
	}
	o.descriptors.values = append(o.descriptors.values, float64(len(names)))
	o.resident.values = append(o.resident.values, kib)
	if o.memory != "" {
		text, err := os.ReadFile(o.memory)
		if err != nil {
			return err
		}
		bytes, _ := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		o.cgroup.values = append(o.cgroup.values, bytes/1024)
	}
	if o.health == "" {
		return nil
	}
	if live := probe(&o.client, o.health+"/healthz"); live != "200" {
		o.dead++
		o.lastLiveness = live
	}
	if probe(&o.client, o.health+"/readyz") == "200" {
		o.ready++
	}
	return nil
}

// runObserve looks each second. A process that ends meanwhile is an error.
func runObserve(args []string) error {
	o := observer{descriptors: series{name: "fds"}, resident: series{name: "rss"}, cgroup: series{name: "cgroup"}}
	set := flag.NewFlagSet("observe", flag.ExitOnError)
	set.IntVar(&o.pid, "pid", 0, "the process")
	set.StringVar(&o.health, "health", "", "URL before /healthz and /readyz; without, they are not asked")
	set.StringVar(&o.memory, "memory", "", "file with the bytes that its cgroup holds")
	length := set.Duration("for", time.Minute, "how long")
	_ = set.Parse(args)
	o.client = http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	began := time.Now()
	seconds := int(length.Seconds())
	for i := range seconds {
		if err := o.look(); err != nil {
			return fmt.Errorf("after %d s: %w", i, err)
		}
		if (i+1)%60 == 0 || i+1 == seconds {
			fmt.Fprintf(os.Stderr, "observe: %4d s  %.0f descriptors, %.1f MiB resident", i+1, o.descriptors.last(), o.resident.last()/1024)
			if o.health != "" {
				fmt.Fprintf(os.Stderr, ", alive in all but %d, ready in %d", o.dead, o.ready)
			}
			fmt.Fprintln(os.Stderr)
		}
		time.Sleep(time.Until(began.Add(time.Duration(i+1) * time.Second)))
	}
	o.descriptors.print()
	o.resident.print()
	o.cgroup.print()
	if o.health != "" {
		fmt.Printf("dead\t%d\nready\t%.3f\n", o.dead, float64(o.ready)/float64(seconds))
	}
	if o.dead > 0 {
		fmt.Fprintf(os.Stderr, "observe: /healthz last answered %s\n", o.lastLiveness)
	}
	return nil
}
