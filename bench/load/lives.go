package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

// livesServer takes Ats through their lives for reconcilers/cnat.lua, as the API server and kubelet
// of a cluster do, at a small part of the cost: so the operator can be profiled alone, and two runs of it are
// alike. Ats come at a fixed pace; one request is worked on at a time, so that they pile up as they do
// before a server that is busy.
type livesServer struct {
	service time.Duration // of a request
	count   int

	busy sync.Mutex // held while a request is worked on

	mu      sync.Mutex
	version uint64
	events  map[string][]lifeEvent // of ats and pods
	changed chan struct{}          // closed at the next event
	done    int
	over    chan struct{}
}

type lifeEvent struct {
	version uint64
	text    []byte
}

func newLivesServer(count int, service time.Duration) *livesServer {
	return &livesServer{
		service: service, count: count, version: 1 << 20,
		events:  map[string][]lifeEvent{},
		changed: make(chan struct{}), over: make(chan struct{}),
	}
}

// change makes a new version of an object, and keeps its event for each watch that begins before it.
func (s *livesServer) change(plural, event string, object func(version uint64) []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	made := object(s.version)
	text := fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", event, made)
	s.events[plural] = append(s.events[plural], lifeEvent{s.version, text})
	close(s.changed)
	s.changed = make(chan struct{})
	return made
}

func (s *livesServer) changePod(event string, number int, phase string) []byte {
	return s.change("pods", event, func(version uint64) []byte {
		return appendPod(nil, podSmall, number, version, phase)
	})
}

func (s *livesServer) changeAt(event string, number int, phase string) []byte {
	return s.change("ats", event, func(version uint64) []byte { return appendAt(nil, number, version, phase) })
}

// since gives the events after a version, and what is closed when there are more.
func (s *livesServer) since(plural string, version uint64) ([]lifeEvent, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events[plural]
	from := sort.Search(len(events), func(i int) bool { return events[i].version > version })
	return events[from:], s.changed
}

// watch sends what came after the resourceVersion, and ends after timeoutSeconds, as a real server does: the next
// watch goes on from there.
func (s *livesServer) watch(w http.ResponseWriter, r *http.Request, plural string) {
	version, _ := strconv.ParseUint(r.URL.Query().Get("resourceVersion"), 10, 64)
	var end <-chan time.Time
	if seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds")); err == nil {
		end = time.After(time.Duration(seconds) * time.Second)
	}
	flusher := http.NewResponseController(w)
	_ = flusher.Flush()
	for {
		events, changed := s.since(plural, version)
		for _, event := range events {
			if _, err := w.Write(event.text); err != nil || flusher.Flush() != nil {
				return
			}
			version = event.version
		}
		select {
		case <-r.Context().Done():
			return
		case <-end:
			return
		case <-changed:
		}
	}
}

func (s *livesServer) list(w http.ResponseWriter, plural string) {
	kind, version := "PodList", "v1"
	if plural == "ats" {
		kind, version = "AtList", "cnat.programming-kubernetes.info/v1alpha1"
	}
	_, _ = fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1000"},"items":[]}`+"\n", kind, version)
}

// work takes the time that a write takes.
func (s *livesServer) work() {
	s.busy.Lock()
	defer s.busy.Unlock()
	time.Sleep(s.service)
}

// answer sends what a real server says beside the object.
func (s *livesServer) answer(w http.ResponseWriter, code int, object []byte) {
	w.Header().Set("Audit-Id", uid("audit", len(object)))
	w.Header().Set("Cache-Control", "no-cache, private")
	w.Header().Set("X-Kubernetes-Pf-Flowschema-Uid", uid("flow", 0))
	w.Header().Set("X-Kubernetes-Pf-Prioritylevel-Uid", uid("level", 0))
	w.Header().Set("Content-Length", strconv.Itoa(len(object)))
	w.WriteHeader(code)
	_, _ = w.Write(object)
}

// createPod lets the pod run and end, a moment later each.
func (s *livesServer) createPod(w http.ResponseWriter, r *http.Request) {
	var pod struct {
		Metadata struct{ Name string }
	}
	err := json.NewDecoder(r.Body).Decode(&pod)
	number, notOurs := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(pod.Metadata.Name, "at-"), "-pod"))
	if err != nil || notOurs != nil {
		http.Error(w, "no pod of ours", http.StatusBadRequest)
		return
	}
	s.work()
	s.answer(w, http.StatusCreated, s.changePod("ADDED", number, "Pending"))
	time.AfterFunc(10*time.Millisecond, func() {
		s.changePod("MODIFIED", number, "Running")
		time.AfterFunc(10*time.Millisecond, func() { s.changePod("MODIFIED", number, "Succeeded") })
	})
}

func (s *livesServer) patchStatus(w http.ResponseWriter, r *http.Request, name string) {
	var patch object
	number, err := strconv.Atoi(strings.TrimPrefix(name, "at-"))
	if err == nil {
		err = json.NewDecoder(r.Body).Decode(&patch)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.work()
	s.answer(w, http.StatusOK, s.changeAt("MODIFIED", number, patch.Status.Phase))
	s.mu.Lock()
	defer s.mu.Unlock()
	if patch.Status.Phase == "DONE" {
		s.done++
	}
	if s.done == s.count {
		close(s.over)
	}
}

// begin makes the Ats, one a pace, and answers when all are DONE.
func (s *livesServer) begin(w http.ResponseWriter, r *http.Request) {
	pace, _ := time.ParseDuration(r.URL.Query().Get("pace"))
	for i := range s.count {
		s.changeAt("ADDED", i, "")
		time.Sleep(pace)
	}
	<-s.over
	_, _ = io.WriteString(w, "{}")
}

func (s *livesServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	part := strings.Split(r.URL.Path, "/")
	last := part[len(part)-1]
	switch path := r.URL.Path; {
	case r.Header.Get("Authorization") != "Bearer "+streamToken:
		http.Error(w, "no such token", http.StatusUnauthorized)
	case path == "/begin":
		s.begin(w, r)
	case path == "/version":
		_, _ = io.WriteString(w, streamVersion)
	case path == "/api/v1":
		_, _ = io.WriteString(w, streamCore)
	case path == strings.TrimSuffix(streamAts, "/ats"):
		_, _ = io.WriteString(w, streamGroup)
	case last == "status" && r.Method == http.MethodPatch:
		s.patchStatus(w, r, part[len(part)-2])
	case last == "pods" && r.Method == http.MethodPost:
		s.createPod(w, r)
	case last != "ats" && last != "pods":
		http.NotFound(w, r)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r, last)
	default:
		s.list(w, last)
	}
}

// runLives serves until it is ended.
func runLives(args []string) error {
	set := flag.NewFlagSet("lives", flag.ExitOnError)
	kubeconfig := set.String("kubeconfig", "", "file to write, once it serves")
	count := set.Int("count", 1000, "how many Ats")
	service := set.Duration("service", 300*time.Microsecond, "how long a write takes")
	_ = set.Parse(args)
	return serveTLS(newLivesServer(*count, *service), *kubeconfig)
}

// runBegin has a server of that kind make its Ats, and waits until all are DONE.
func runBegin(args []string) error {
	set := flag.NewFlagSet("begin", flag.ExitOnError)
	kubeconfig := set.String("kubeconfig", os.Getenv("KUBECONFIG"), "of the server")
	pace := set.Duration("pace", time.Millisecond, "between two Ats")
	_ = set.Parse(args)
	c, err := newClient(*kubeconfig)
	if err != nil {
		return err
	}
	return c.get("/begin?pace="+pace.String(), new(struct{}))
}
