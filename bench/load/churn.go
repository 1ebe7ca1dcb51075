package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// dueOf is the instant in the name of what churn made: at-SECONDS-NUMBER, and -pod.
func dueOf(name string) time.Time {
	parts := strings.Split(name, "-")
	if len(parts) < 3 {
		return time.Time{}
	}
	seconds, _ := strconv.ParseInt(parts[1], 10, 64)
	return time.Unix(seconds, 0)
}

func (c *client) delete(path string) error {
	response, err := c.do(context.Background(), http.MethodDelete, path, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("DELETE %s: %s", path, response.Status)
	}
	return err
}

// runChurn makes Ats at a rate, whatever the server's answers take, and deletes
// each after a while; one that is not DONE by then is unfinished. The first error ends it.
func runChurn(args []string) error {
	var flags createFlags
	set := flag.NewFlagSet("churn", flag.ExitOnError)
	set.StringVar(&flags.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "file that says how to reach the API server")
	set.StringVar(&flags.namespace, "namespace", "default", "where")
	rate := set.Float64("rate", 5, "how many a second")
	length := set.Duration("for", time.Minute, "how long")
	lead := set.Duration("lead", 3*time.Second, "from an At's making to its time, which is on a whole second")
	keep := set.Duration("keep", 0, "from an At's making to its end; 0: for ever")
	_ = set.Parse(args)
	c, err := newClient(flags.kubeconfig)
	if err != nil {
		return err
	}
	path := fmt.Sprintf(atsPath, flags.namespace)
	count := int(length.Seconds() * *rate)
	var made, deleted, unfinished atomic.Int64
	failed := make(chan error, 1)
	note := func(err error) {
		if err != nil {
			select {
			case failed <- err:
			default: // the first one counts
			}
		}
	}
	wait := func(until time.Time) error {
		select {
		case err := <-failed:
			return err
		case <-time.After(time.Until(until)):
			return nil
		}
	}
	began := time.Now()
	for i := range count {
		if err := wait(began.Add(time.Duration(float64(i) / *rate * float64(time.Second)))); err != nil {
			return err
		}
		due := time.Now().Add(*lead + time.Second - 1).Truncate(time.Second).UTC()
		name := fmt.Sprintf("at-%d-%d", due.Unix(), i)
		go func() {
			note(c.post(path, atBody(name, due.Format(time.RFC3339))))
			made.Add(1)
		}()
		if *keep > 0 {
			time.AfterFunc(*keep, func() {
				var at object
				note(c.get(path+"/"+name, &at))
				if at.Status.Phase != "DONE" {
					unfinished.Add(1)
				}
				note(c.delete(path + "/" + name))
				deleted.Add(1)
			})
		}
	}
	all := int64(count)
	last := time.Now().Add(*lead)
	for err == nil && (time.Now().Before(last) || made.Load() < all || *keep > 0 && deleted.Load() < all) {
		err = wait(time.Now().Add(100 * time.Millisecond))
	}
	fmt.Printf("made\t%d\ndeleted\t%d\nunfinished\t%d\n", made.Load(), deleted.Load(), unfinished.Load())
	return err
}
