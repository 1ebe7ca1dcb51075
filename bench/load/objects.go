package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// readied is an object with conditions.
type readied struct {
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

func (o readied) isReady() bool {
	for _, condition := range o.Status.Conditions {
		if condition.Type == "Ready" {
			return condition.Status == "True"
		}
	}
	return false
}

// runObjects makes objects after a pattern, and waits until their condition Ready is True.
func runObjects(args []string) error {
	var flags createFlags
	set := flag.NewFlagSet("objects", flag.ExitOnError)
	flags.register(set, "not used")
	path := set.String("path", "", "of their collection")
	pattern := set.String("pattern", "", "file with one as JSON; NAME in it becomes the name of each")
	wait := set.Bool("wait", false, "make none, wait until so many are ready")
	timeout := set.Duration("timeout", 10*time.Minute, "how long to wait")
	_ = set.Parse(args)
	c, err := newClient(flags.kubeconfig)
	if err != nil {
		return err
	}
	if *wait {
		return c.awaitReady(*path, flags.count, *timeout)
	}
	text, err := os.ReadFile(*pattern)
	if err != nil {
		return err
	}
	return inParallel(flags.count, flags.concurrency, func(i int) error {
		name := fmt.Sprintf("made-%05d", flags.first+i)
		return c.post(*path, []byte(strings.ReplaceAll(string(text), "NAME", name)))
	})
}

func (c *client) awaitReady(path string, count int, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		var list struct{ Items []readied }
		if err := c.get(path, &list); err != nil {
			return err
		}
		ready := 0
		for _, item := range list.Items {
			if item.isReady() {
				ready++
			}
		}
		if ready >= count {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %d of %d are ready after %s", path, ready, count, timeout)
		}
		time.Sleep(time.Second)
	}
}
