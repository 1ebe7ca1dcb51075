package main

import (
	"context"
	"io"
	"net"
	"net/http"
)

// withTunnels makes a forward proxy of a reverse one: it does what CONNECT asks for,
// and leaves all else to next.
func withTunnels(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			tunnel(w, r)
		} else {
			next.ServeHTTP(w, r)
		}
	})
}

// tunnel joins the client to the address that it names, until one of the two hangs
// up or the front goes down. The two speak TLS with each other, end to end.
func tunnel(w http.ResponseWriter, r *http.Request) {
	server, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer server.Close()
	client, early, err := http.NewResponseController(w).Hijack()
	if err != nil { // HTTP/2, which no client here speaks to a proxy
		http.Error(w, err.Error(), http.StatusNotImplemented)
		return
	}
	defer client.Close()
	hangUp := func() { _, _ = client.Close(), server.Close() }
	defer context.AfterFunc(r.Context(), hangUp)()
	if logged, ok := w.(*loggedWriter); ok {
		logged.log.setStatus(logged.entry, http.StatusOK)
	}
	_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() {
		defer hangUp()
		_, _ = io.Copy(server, early.Reader) // with what came in one piece with the request
	}()
	_, _ = io.Copy(client, server)
}
