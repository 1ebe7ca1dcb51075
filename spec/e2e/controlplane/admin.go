package main

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// logLimit is how many requests the log holds; older ones fall out.
const logLimit = 100_000

// maxRulesBytes is how long a list of rules may be.
const maxRulesBytes = 16 << 20

// logEntry is one request that reached the proxy.
type logEntry struct {
	Time   time.Time `json:"time"`
	Proto  string    `json:"proto"`
	Method string    `json:"method"`
	Path   string    `json:"path"`
	Status int       `json:"status"` // upstream's or the rule's; 0 before there is one
	Rule   string    `json:"rule"`   // the name of the rule that befell it, or ""
}

// requestLog holds the requests in the order in which they came.
type requestLog struct {
	mu      sync.Mutex
	entries []*logEntry
}

func (l *requestLog) add(r *http.Request, rule *Rule) *logEntry {
	entry := &logEntry{Time: time.Now().UTC(), Proto: r.Proto, Method: r.Method, Path: r.RequestURI}
	if rule != nil {
		entry.Rule = rule.Name
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == logLimit {
		l.entries = append([]*logEntry{}, l.entries[logLimit/2:]...)
	}
	l.entries = append(l.entries, entry)
	return entry
}

func (l *requestLog) setStatus(entry *logEntry, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.Status = status
}

func (l *requestLog) list() []logEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries := make([]logEntry, 0, len(l.entries))
	for _, entry := range l.entries {
		entries = append(entries, *entry)
	}
	return entries
}

func (l *requestLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

// loggedWriter notes the reply's status in the log as it passes.
type loggedWriter struct {
	http.ResponseWriter
	log   *requestLog
	entry *logEntry
}

func (w *loggedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *loggedWriter) WriteHeader(code int) {
	w.log.setStatus(w.entry, code)
	w.ResponseWriter.WriteHeader(code)
}

// adminHandler serves the proxy's own API.
func (p *proxy) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rules", func(w http.ResponseWriter, _ *http.Request) { reply(w, p.rules.list()) })
	mux.HandleFunc("POST /rules", p.postRules)
	mux.HandleFunc("DELETE /rules", func(http.ResponseWriter, *http.Request) { p.rules.clear() })
	mux.HandleFunc("GET /log", func(w http.ResponseWriter, _ *http.Request) { reply(w, p.log.list()) })
	mux.HandleFunc("DELETE /log", func(http.ResponseWriter, *http.Request) { p.log.clear() })
	mux.HandleFunc("POST /down", func(http.ResponseWriter, *http.Request) { p.front.down() })
	mux.HandleFunc("POST /up", func(w http.ResponseWriter, _ *http.Request) {
		if err := p.front.up(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return mux
}

func (p *proxy) postRules(w http.ResponseWriter, r *http.Request) {
	var rules []*Rule
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRulesBytes))
	decoder.DisallowUnknownFields() // a misspelt field would make a test pass for nothing
	err := decoder.Decode(&rules)
	if err == nil {
		err = p.rules.add(rules)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply(w, p.rules.list())
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}
