package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
)

// proxy stands between clients and the API server and spoils what its rules say.
type proxy struct {
	rules    ruleSet
	log      requestLog
	upstream http.Handler
	front    front
}

type proxyOptions struct {
	listen, upstream, upstreamCA, cert, key, admin string
}

func newProxyCommand() *cobra.Command {
	var o proxyOptions
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "stand in front of an API server and inject faults",
		RunE:  func(cmd *cobra.Command, _ []string) error { return runProxy(cmd.Context(), o) },
	}
	for _, flag := range []struct {
		value       *string
		name, usage string
	}{
		{&o.listen, "listen", "address to serve clients on, over TLS"},
		{&o.upstream, "upstream", "URL of the API server"},
		{&o.upstreamCA, "upstream-ca", "file with the CA of the API server's certificate"},
		{&o.cert, "cert", "file with the certificate to serve"},
		{&o.key, "key", "file with its key"},
		{&o.admin, "admin", "address to serve the rules on, over plain HTTP"},
	} {
		cmd.Flags().StringVar(flag.value, flag.name, "", flag.usage)
		_ = cmd.MarkFlagRequired(flag.name)
	}
	return cmd
}

func runProxy(ctx context.Context, o proxyOptions) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	upstream, err := newUpstream(o.upstream, o.upstreamCA)
	if err != nil {
		return err
	}
	p := &proxy{upstream: withTunnels(upstream)}
	p.front = front{address: o.listen, cert: o.cert, key: o.key, handler: p}
	if err := p.front.up(); err != nil {
		return err
	}
	admin := &http.Server{Addr: o.admin, Handler: p.adminHandler()}
	failed := make(chan error, 1)
	go func() { failed <- admin.ListenAndServe() }()
	select {
	case <-ctx.Done():
		p.front.down()
		return nil
	case err := <-failed:
		return err
	}
}

// newUpstream forwards requests as they came: credentials in headers pass, those
// in a client certificate end here, as they do at any proxy that ends TLS.
func newUpstream(address, caFile string) (http.Handler, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s holds no certificate", caFile)
	}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1, // at once, or watch events would wait for a full buffer
		Transport: &http.Transport{
			TLSClientConfig:    &tls.Config{RootCAs: roots},
			ForceAttemptHTTP2:  true,
			DisableCompression: true, // the body is the client's: it decides what it accepts
		},
		ErrorLog: log.New(io.Discard, "", 0), // a client that hangs up is the point here
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // no API server: look like one that is not there
		},
	}, nil
}

// front is the side that clients connect to, which can go away and come back on
// the same port, with another certificate when the files have one by then.
type front struct {
	address   string
	cert, key string // files
	handler   http.Handler

	mu     sync.Mutex
	server *http.Server
	cut    context.CancelFunc // ends what the server has forgotten: tunnels
}

// up accepts connections, if it did not yet.
func (f *front) up() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server != nil {
		return nil
	}
	certificate, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.address)
	if err != nil {
		return err
	}
	f.address = listener.Addr().String() // port 0 becomes the one it got
	ctx, cut := context.WithCancel(context.Background())
	server := &http.Server{
		Handler:     f.handler,
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{certificate}},
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: withConnection,
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	f.server, f.cut = server, cut
	go func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			log.Printf("proxy: %v", err)
		}
	}()
	return nil
}

// down refuses connections and cuts those that are open.
func (f *front) down() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server != nil {
		_ = f.server.Close()
		f.cut()
		f.server = nil
	}
}

type connectionKey struct{}

func withConnection(ctx context.Context, connection net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connection)
}

// closeConnection ends the connection that a request came over, and with it
// every other HTTP/2 stream on it.
func closeConnection(r *http.Request) {
	if connection, ok := r.Context().Value(connectionKey{}).(net.Conn); ok {
		_ = connection.Close()
	}
}
