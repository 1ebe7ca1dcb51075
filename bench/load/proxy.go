package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// proxy passes connections on as they are, and takes all of them away at once.
type proxy struct {
	upstream string
	mu       sync.Mutex
	open     map[net.Conn]bool
}

func (p *proxy) hold(connections ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range connections {
		p.open[c] = true
	}
}

// cut resets, as a server does that has gone: nothing that was on its way arrives.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	clear(p.open)
}

func (p *proxy) pass(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	from.Close()
	to.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, from)
	delete(p.open, to)
}

func (p *proxy) serve(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("tcp", p.upstream)
		if err != nil {
			client.Close()
			continue
		}
		p.hold(client, server)
		go p.pass(client, server)
		go p.pass(server, client)
	}
}

// runProxy stands before the API server of a kubeconfig until it is ended: up for a
// while, then gone for a while, so that connections are refused; with no such while its connections are
// only cut. --log gets the instant of each: "cut", then "open", in seconds since 1970.
func runProxy(args []string) error {
	set := flag.NewFlagSet("proxy", flag.ExitOnError)
	kubeconfig := set.String("kubeconfig", os.Getenv("KUBECONFIG"), "of the API server")
	write := set.String("write-kubeconfig", "", "file to write: the same, through the proxy")
	journal := set.String("log", "", "file for the instants")
	up := set.Duration("up", 5*time.Second, "how long it is there, each time")
	down := set.Duration("down", 5*time.Second, "how long it is gone, each time; 0: not at all")
	_ = set.Parse(args)
	c, err := newClient(*kubeconfig)
	if err != nil {
		return err
	}
	log, err := os.Create(*journal)
	if err != nil {
		return err
	}
	p := proxy{upstream: strings.TrimPrefix(c.server, "https://"), open: map[net.Conn]bool{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	text, err := os.ReadFile(*kubeconfig)
	if err == nil {
		err = os.WriteFile(*write, []byte(strings.ReplaceAll(string(text), p.upstream, address)), 0o600)
	}
	for err == nil {
		go p.serve(listener)
		time.Sleep(*up)
		if *down > 0 {
			listener.Close()
		}
		note(log, "cut")
		p.cut()
		time.Sleep(*down)
		note(log, "open")
		if *down > 0 {
			listener, err = net.Listen("tcp", address)
		}
	}
	return err
}

func note(log io.Writer, what string) {
	_, _ = fmt.Fprintf(log, "%s\t%.6f\n", what, float64(time.Now().UnixMicro())/1e6)
}
