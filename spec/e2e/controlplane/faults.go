package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// action answers a request in the way that a rule asks for.
type action func(p *proxy, rule *Rule, w http.ResponseWriter, r *http.Request)

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rule := p.rules.take(r)
	w = &loggedWriter{ResponseWriter: w, log: &p.log, entry: p.log.add(r, rule)}
	if rule == nil {
		p.upstream.ServeHTTP(w, r)
		return
	}
	select {
	case <-time.After(time.Duration(rule.Milliseconds) * time.Millisecond):
	case <-r.Context().Done():
		return
	}
	actions[rule.Action](p, rule, w, r)
}

// forward asks upstream, late.
func forward(p *proxy, _ *Rule, w http.ResponseWriter, r *http.Request) {
	p.upstream.ServeHTTP(w, r)
}

// sendAway answers, and asks the client to leave the connection: net/http makes a
// GOAWAY of that header. kube-apiserver's --goaway-chance does the same.
func sendAway(p *proxy, _ *Rule, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	p.upstream.ServeHTTP(w, r)
}

// answerStatus refuses the request as the API server would, without asking it.
func answerStatus(_ *proxy, rule *Rule, w http.ResponseWriter, _ *http.Request) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  rule.Message,
		Reason:   metav1.StatusReason(rule.Reason),
		Code:     int32(rule.Code),
	}
	if rule.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(rule.RetryAfter))
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(rule.RetryAfter)}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(rule.Code)
	_ = json.NewEncoder(w).Encode(status)
}

// dropReply lets upstream do what was asked, but never tells the client.
func dropReply(p *proxy, rule *Rule, w http.ResponseWriter, r *http.Request) {
	p.upstream.ServeHTTP(&droppedWriter{to: w, header: http.Header{}}, r)
	cut(rule, r)
}

// cutReply ends the reply after some bytes of its body. Of a shorter reply it
// spoils the end.
func cutReply(p *proxy, rule *Rule, w http.ResponseWriter, r *http.Request) {
	p.upstream.ServeHTTP(&cutWriter{ResponseWriter: w, left: rule.Bytes, cut: func() { cut(rule, r) }}, r)
	cut(rule, r)
}

// stallReply falls silent after some bytes of the body and keeps the connection
// open, as a network does that loses every packet from there on.
func stallReply(p *proxy, rule *Rule, w http.ResponseWriter, r *http.Request) {
	stall := func() { <-r.Context().Done(); panic(http.ErrAbortHandler) }
	p.upstream.ServeHTTP(&cutWriter{ResponseWriter: w, left: rule.Bytes, cut: stall}, r)
	stall()
}

// inject answers with the rule's own bytes. In a watch that goes on (code 200)
// they come before what upstream has to say.
func inject(p *proxy, rule *Rule, w http.ResponseWriter, r *http.Request) {
	watch := r.URL.Query().Get("watch")
	if (watch == "true" || watch == "1") && (rule.Code == 0 || rule.Code == http.StatusOK) {
		p.upstream.ServeHTTP(&prefixWriter{ResponseWriter: w, prefix: rule.Body}, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(max(rule.Code, http.StatusOK))
	_, _ = io.WriteString(w, rule.Body)
}

// cut ends a reply without a proper end: over HTTP/1.1 it closes the connection,
// over HTTP/2 it resets the stream, or closes the connection if so asked.
func cut(rule *Rule, r *http.Request) {
	if rule.Connection {
		closeConnection(r)
	}
	panic(http.ErrAbortHandler) // net/http's own way to say it
}

func flush(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
}

// droppedWriter takes a reply and keeps all of it but the code, for the log.
type droppedWriter struct {
	to     http.ResponseWriter
	header http.Header
}

func (w *droppedWriter) Header() http.Header { return w.header }

func (w *droppedWriter) WriteHeader(code int) {
	if logged, ok := w.to.(*loggedWriter); ok {
		logged.log.setStatus(logged.entry, code)
	}
}

func (w *droppedWriter) Write(data []byte) (int, error) { return len(data), nil }

// cutWriter lets so many bytes of the body through, sends them off, and calls cut,
// which must not return.
type cutWriter struct {
	http.ResponseWriter
	left int
	cut  func()
}

func (w *cutWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *cutWriter) WriteHeader(code int) {
	w.ResponseWriter.WriteHeader(code)
	if w.left == 0 {
		flush(w.ResponseWriter)
		w.cut()
	}
}

func (w *cutWriter) Write(data []byte) (int, error) {
	if len(data) < w.left {
		w.left -= len(data)
		return w.ResponseWriter.Write(data)
	}
	_, _ = w.ResponseWriter.Write(data[:w.left])
	flush(w.ResponseWriter)
	w.cut()
	return 0, nil
}

// prefixWriter sends bytes of its own as soon as the header is out.
type prefixWriter struct {
	http.ResponseWriter
	prefix string
}

func (w *prefixWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *prefixWriter) WriteHeader(code int) {
	w.ResponseWriter.WriteHeader(code)
	_, _ = io.WriteString(w.ResponseWriter, w.prefix)
	flush(w.ResponseWriter)
}
