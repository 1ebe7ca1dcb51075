// Answers the cases of cluster/spec/apiserver/cron_instants.txt with the library by which Kubernetes reads the schedules of
// CronJobs. Usage: go run . FILE TABLE; both are written anew. Lines "= ZONE AFTER EXPRESSION" of the file are the cases;
// they stay, as comments do. The lines after them are written here: the next instants, until 12 of them or ten days
// later. The table has no lines of its own: zones.go.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	most = 12
	long = 10 * 24 * time.Hour

	patience = 5 * time.Second // it takes milliseconds
)

func answer(out *bytes.Buffer, zone, after, expression string) error {
	location, err := time.LoadLocation(zone)
	if err != nil {
		return err
	}
	from, err := time.Parse(time.RFC3339, after)
	if err != nil {
		return err
	}
	schedule, err := cron.ParseStandard(expression)
	if err != nil {
		return err
	}
	at := from.In(location)
	for i := 0; i < most; i++ {
		next := make(chan time.Time, 1)
		go func(from time.Time) { next <- schedule.Next(from) }(at)
		select {
		case at = <-next:
		case <-time.After(patience):
			fmt.Fprintln(out, "> the library does not return")
			return nil
		}
		if at.IsZero() {
			fmt.Fprintln(out, "> never")
			return nil
		}
		fmt.Fprintf(out, "> %s\n", at.UTC().Format(time.RFC3339))
		if at.Sub(from) > long {
			return nil
		}
	}
	return nil
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: go run . FILE TABLE")
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	table, err := zones() // first: a call that does not return goes on
	if err == nil {
		err = os.WriteFile(os.Args[2], table, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
	var out bytes.Buffer
	for _, line := range strings.SplitAfter(string(text), "\n") {
		if strings.HasPrefix(line, "> ") {
			continue
		}
		out.WriteString(line)
		if words := strings.SplitN(strings.TrimSpace(line), " ", 4); words[0] == "=" {
			if err := answer(&out, words[1], words[2], words[3]); err != nil {
				log.Fatalf("%s: %v", strings.TrimSpace(line), err)
			}
		}
	}
	if err := os.WriteFile(os.Args[1], out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
