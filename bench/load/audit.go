package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// auditEvent is as much of an audit.k8s.io/v1 Event as we look at. The policy of
// controlplane.sh has one for each request, written when it was answered.
type auditEvent struct {
	Verb       string
	RequestURI string
	UserAgent  string
	User       struct{ Username string }
	ObjectRef  struct{ Resource, Subresource, Namespace, Name string }

	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time
}

// client is the user agent without its version.
func (e *auditEvent) client() string {
	agent, _, _ := strings.Cut(e.UserAgent, " ")
	agent, _, _ = strings.Cut(agent, "/")
	return agent
}

func (e *auditEvent) isPodMade() bool {
	return e.Verb == "create" && e.ObjectRef.Resource == "pods" && e.ObjectRef.Subresource == "" && e.ResponseStatus.Code == 201
}

// auditLog reads a log that may still grow.
type auditLog struct {
	file   *os.File
	reader *bufio.Reader
	rest   string // of a line whose end was not there yet
	reads  bool   // gets and lists are wanted, too
}

func openAudit(path string) (*auditLog, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &auditLog{file: file, reader: bufio.NewReaderSize(file, 1<<20)}, nil
}

func (l *auditLog) close() { l.file.Close() }

// each calls f for every request that was logged since the last time; without reads, only for writes and watches.
func (l *auditLog) each(f func(*auditEvent)) error {
	for {
		line, err := l.reader.ReadString('\n')
		if err != nil {
			l.rest += line
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		line, l.rest = l.rest+line, ""
		if !l.reads && (strings.Contains(line, `"verb":"get"`) || strings.Contains(line, `"verb":"list"`)) {
			continue // spares the decoder most of the log
		}
		var event auditEvent
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			return err
		}
		f(&event)
	}
}

// readAudit calls f for every write of a namespace that the whole log has.
func readAudit(path, namespace string, f func(*auditEvent)) error {
	log, err := openAudit(path)
	if err != nil {
		return err
	}
	defer log.close()
	return log.each(func(e *auditEvent) {
		if e.ObjectRef.Namespace == namespace {
			f(e)
		}
	})
}

// readAll calls f for every request of the operator that the whole log has, reads included.
func readAll(path string, f func(*auditEvent)) error {
	log, err := openAudit(path)
	if err != nil {
		return err
	}
	defer log.close()
	log.reads = true
	return log.each(func(e *auditEvent) {
		if e.client() == "moonloop" {
			f(e)
		}
	})
}

func auditFlags(name string, args []string, more func(*flag.FlagSet)) (audit, namespace string) {
	set := flag.NewFlagSet(name, flag.ExitOnError)
	set.StringVar(&audit, "audit", "audit.log", "the audit log")
	set.StringVar(&namespace, "namespace", "default", "where")
	if more != nil {
		more(set)
	}
	_ = set.Parse(args)
	return audit, namespace
}

// runLateness says how long after the instant each create reached the server
// ("asked") and was answered, the pod made ("made"). With no --due each pod's
// instant is that in its name, as churn makes them.
func runLateness(args []string) error {
	var dueText string
	audit, namespace := auditFlags("lateness", args, func(set *flag.FlagSet) {
		set.StringVar(&dueText, "due", "", "the instant, RFC 3339")
	})
	var due time.Time
	var err error
	if dueText != "" {
		due, err = parseDue(dueText)
	}
	if err != nil {
		return err
	}
	var asked, made []float64
	err = readAudit(audit, namespace, func(e *auditEvent) {
		if e.isPodMade() {
			if dueText == "" {
				due = dueOf(e.ObjectRef.Name)
			}
			asked = append(asked, e.RequestReceivedTimestamp.Sub(due).Seconds())
			made = append(made, e.StageTimestamp.Sub(due).Seconds())
		}
	})
	fmt.Printf("pods\t%d\n", len(made))
	printQuantiles(os.Stdout, "asked", asked)
	printQuantiles(os.Stdout, "made", made)
	return err
}

// what is its verb and resource, and the code where it was refused.
func (e *auditEvent) what() string {
	what := e.Verb + " " + e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		what += "/" + e.ObjectRef.Subresource
	}
	if e.ResponseStatus.Code >= 300 {
		what += fmt.Sprintf(" refused %d", e.ResponseStatus.Code)
	}
	return what
}

// runWrites counts the requests that were not reads: those that were answered
// with success, and the rest as refused.
func runWrites(args []string) error {
	audit, namespace := auditFlags("writes", args, nil)
	counts := map[string]int{}
	err := readAudit(audit, namespace, func(e *auditEvent) {
		if e.Verb == "watch" {
			return
		}
		counts[fmt.Sprintf("%s\t%s", e.client(), e.what())]++
	})
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("%s\t%d\n", key, counts[key])
	}
	return err
}

// runFirst says when the first pod of a namespace was asked for, and how long
// that was after the instant. With --after it is that of the first pod since,
// and with --write the instant is the last write to that object before it.
func runFirst(args []string) error {
	var after float64
	var write string
	audit, namespace := auditFlags("first", args, func(set *flag.FlagSet) {
		set.Float64Var(&after, "after", 0, "the instant, in seconds since 1970")
		set.StringVar(&write, "write", "", "RESOURCE/NAME: count from the last write to this object")
	})
	instant := time.UnixMicro(int64(after * 1e6))
	var pod auditEvent
	err := readAudit(audit, namespace, func(e *auditEvent) {
		switch {
		case e.RequestReceivedTimestamp.Before(instant) || e.ResponseStatus.Code >= 300:
		case write == e.ObjectRef.Resource+"/"+e.ObjectRef.Name:
			instant, pod = e.RequestReceivedTimestamp, auditEvent{}
		case e.isPodMade() && pod.Verb == "":
			pod = *e
		}
	})
	if err == nil && pod.Verb == "" {
		err = errors.New("no pod")
	}
	if err != nil {
		return err
	}
	fmt.Printf("asked\t%.6f\nmade\t%.6f\n", pod.RequestReceivedTimestamp.Sub(instant).Seconds(), pod.StageTimestamp.Sub(instant).Seconds())
	return nil
}

// printQuantiles uses the nearest rank: p99 of 200 is the third largest.
func printQuantiles(w io.Writer, name string, values []float64) {
	if len(values) == 0 {
		return
	}
	slices.Sort(values)
	rank := func(q float64) float64 { return values[max(int(math.Ceil(q*float64(len(values))))-1, 0)] }
	fmt.Fprintf(w, "%s_p50\t%.4f\n%s_p99\t%.4f\n%s_max\t%.4f\n", name, rank(0.50), name, rank(0.99), name, rank(1))
}
