package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const mapsPath = "/api/v1/namespaces/%s/configmaps"

// mapBody is an object of about a kilobyte.
func mapBody(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"app":"load"}},`+
		`"data":{"first":%q,"second":"value"}}`, name, strings.Repeat("x", 850))
}

// runAnswered waits for a kubeconfig to be written, and for its server to answer.
func runAnswered(args []string) error {
	var flags createFlags
	set := flag.NewFlagSet("answered", flag.ExitOnError)
	flags.register(set, "not used")
	_ = set.Parse(args)
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		c, err := newClient(flags.kubeconfig)
		if err == nil && c.get("/version", new(struct{})) == nil {
			fmt.Printf("at\t%.6f\n", float64(time.Now().UnixMicro())/1e6)
			return nil
		}
	}
	return fmt.Errorf("the server of %s does not answer", flags.kubeconfig)
}

// runMaps makes ConfigMaps as fast as it can, and reads them again.
func runMaps(args []string) error {
	var flags createFlags
	set := flag.NewFlagSet("maps", flag.ExitOnError)
	flags.register(set, "not used")
	_ = set.Parse(args)
	c, err := newClient(flags.kubeconfig)
	if err != nil {
		return err
	}
	c.http.Transport.(*http.Transport).MaxIdleConnsPerHost = flags.concurrency
	path := fmt.Sprintf(mapsPath, flags.namespace)
	began := time.Now()
	err = inParallel(flags.count, flags.concurrency, func(i int) error {
		return c.post(path, mapBody(fmt.Sprintf("load-%06d", flags.first+i)))
	})
	fmt.Printf("creates\t%.0f\n", float64(flags.count)/time.Since(began).Seconds())
	if err != nil {
		return err
	}
	began = time.Now()
	err = inParallel(flags.count, flags.concurrency, func(i int) error {
		return c.get(fmt.Sprintf("%s/load-%06d", path, flags.first+i), new(struct{}))
	})
	fmt.Printf("gets\t%.0f\n", float64(flags.count)/time.Since(began).Seconds())
	return err
}

// countLines counts the events of a watch until it ends or is ended.
func countLines(ctx context.Context, c *client, path, from string, open *sync.WaitGroup) (int, error) {
	response, err := c.do(ctx, http.MethodGet, path+"?watch=1&resourceVersion="+from, nil)
	open.Done()
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	seen, piece := 0, make([]byte, 64<<10)
	for {
		n, err := response.Body.Read(piece)
		seen += strings.Count(string(piece[:n]), "\n")
		if err != nil {
			if err == io.EOF || ctx.Err() != nil {
				err = nil
			}
			return seen, err
		}
	}
}

// runWatchers counts what so many watchers do not see of the objects made at a rate.
func runWatchers(args []string) error {
	var flags createFlags
	var watchers, rate int
	set := flag.NewFlagSet("watchers", flag.ExitOnError)
	flags.register(set, "not used")
	set.IntVar(&watchers, "watchers", 100, "how many watch")
	set.IntVar(&rate, "rate", 1000, "objects a second")
	_ = set.Parse(args)
	c, err := newClient(flags.kubeconfig)
	if err != nil {
		return err
	}
	path := fmt.Sprintf(mapsPath, flags.namespace)
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := c.get(path+"?limit=1", &list); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var open, ended sync.WaitGroup
	var seen atomic.Int64
	for range watchers {
		open.Add(1)
		ended.Add(1)
		go func() {
			defer ended.Done()
			n, _ := countLines(ctx, c, path, list.Metadata.ResourceVersion, &open)
			seen.Add(int64(n))
		}()
	}
	open.Wait()
	began := time.Now()
	err = inParallel(flags.count, flags.concurrency, func(i int) error {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		return c.post(path, mapBody(fmt.Sprintf("watched-%06d", i)))
	})
	fmt.Printf("made\t%.0f\n", float64(flags.count)/time.Since(began).Seconds())
	time.Sleep(time.Second) // what is on its way arrives
	cancel()
	ended.Wait()
	fmt.Printf("lost\t%d\n", int64(watchers)*int64(flags.count)-seen.Load())
	return err
}
