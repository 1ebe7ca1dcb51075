package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	streamAts    = "/apis/cnat.programming-kubernetes.info/v1alpha1/ats"
	streamPods   = "/api/v1/pods"
	streamToken  = "stream"
	firstVersion = 1000
	markersMax   = 200 // the last so many pods run; each can end once

	streamVersion = `{"major":"1","minor":"36","gitVersion":"v1.36.0"}`
	streamCore    = `{"kind":"APIResourceList","groupVersion":"v1","resources":[` +
		`{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["create","get","list","watch"]}]}`
	streamGroup = `{"kind":"APIResourceList","groupVersion":"cnat.programming-kubernetes.info/v1alpha1","resources":[` +
		`{"name":"ats","singularName":"at","namespaced":true,"kind":"At","verbs":["get","list","watch"]},` +
		`{"name":"ats/status","singularName":"","namespaced":true,"kind":"At","verbs":["get","patch"]}]}`
)

// streamServer speaks as much of the API as the operator needs for reconcilers/cnat.lua, and
// costs far less than a real one: lists of pods and Ats that it makes up, a watch of each,
// status patches, Events. It streams the events that a flood (runFlood) asks for.
type streamServer struct {
	pods, ats int
	shape     podShape

	mu      sync.Mutex
	version uint64
	watches map[string]chan []byte // of a path: what is to be written; one watch each
	ended   map[int]time.Time      // when the status of an At was written to DONE
	lists   int
	markers int // used so far
}

func (s *streamServer) nextVersion() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	return s.version
}

func (s *streamServer) phaseOf(number int, running, ended string) string {
	if number >= s.pods-markersMax {
		return running
	}
	return ended
}

func (s *streamServer) appendItem(out []byte, path string, number int) []byte {
	version := uint64(firstVersion + number)
	if path == streamAts {
		return appendAt(out, number, version, s.phaseOf(number, "RUNNING", "DONE"))
	}
	return appendPod(out, s.shape, number, version, s.phaseOf(number, "Running", "Succeeded"))
}

func (s *streamServer) list(w http.ResponseWriter, r *http.Request) {
	first, kind, version := 0, "PodList", "v1"
	if r.URL.Path == streamAts {
		first, kind, version = s.pods-s.ats, "AtList", "cnat.programming-kubernetes.info/v1alpha1"
	}
	if token := r.URL.Query().Get("continue"); token != "" {
		first, _ = strconv.Atoi(token)
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	end, next := s.pods, ""
	if limit > 0 && first+limit < s.pods {
		end, next = first+limit, strconv.Itoa(first+limit)
	}
	s.mu.Lock()
	s.lists++
	out := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d","continue":%q},"items":[`,
		kind, version, s.version, next)
	s.mu.Unlock()
	for i := first; i < end; i++ {
		if i > first {
			out = append(out, ',')
		}
		out = s.appendItem(out, r.URL.Path, i)
	}
	_, _ = w.Write(append(out, "]}\n"...))
}

func (s *streamServer) watch(w http.ResponseWriter, r *http.Request) {
	lines := make(chan []byte, 1)
	s.mu.Lock()
	s.watches[r.URL.Path] = lines
	s.mu.Unlock()
	flusher := http.NewResponseController(w)
	_ = flusher.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case text := <-lines:
			if _, err := w.Write(text); err != nil || flusher.Flush() != nil {
				return
			}
		}
	}
}

func (s *streamServer) watchOf(path string) chan []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches[path]
}

// patchStatus answers as if the patch had been written, and lets the watch show it.
func (s *streamServer) patchStatus(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	var patch object
	number, err := strconv.Atoi(strings.TrimPrefix(strings.Split(r.URL.Path, "/")[7], "at-"))
	if err == nil {
		err = json.NewDecoder(r.Body).Decode(&patch)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	at := appendAt(nil, number, s.nextVersion(), patch.Status.Phase)
	if patch.Status.Phase == "DONE" {
		s.mu.Lock()
		s.ended[number] = now
		s.mu.Unlock()
	}
	_, _ = w.Write(at)
	if lines := s.watchOf(streamAts); lines != nil {
		lines <- fmt.Appendf(nil, `{"type":"MODIFIED","object":%s}`+"\n", at)
	}
}

func (s *streamServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case r.Header.Get("Authorization") != "Bearer "+streamToken:
		http.Error(w, "no such token", http.StatusUnauthorized)
	case path == "/flood":
		s.flood(w, r)
	case path == "/version":
		_, _ = io.WriteString(w, streamVersion)
	case path == "/api/v1":
		_, _ = io.WriteString(w, streamCore)
	case path == strings.TrimSuffix(streamAts, "/ats"):
		_, _ = io.WriteString(w, streamGroup)
	case path != streamAts && path != streamPods && r.Method == http.MethodPatch && strings.HasSuffix(path, "/status"):
		s.patchStatus(w, r)
	case path != streamAts && path != streamPods:
		http.NotFound(w, r)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	default:
		s.list(w, r)
	}
}

// writeKubeconfig writes one in the form of controlplane.sh, as a whole.
func writeKubeconfig(path, address string, authority []byte) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: stream
  cluster:
    server: https://%s
    certificate-authority-data: %s
users:
- name: user
  user:
    token: %s
contexts:
- name: stream
  context:
    cluster: stream
    user: user
current-context: stream
`, address, base64.StdEncoding.EncodeToString(authority), streamToken)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func selfSigned() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stream"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

// runStream serves until it is ended.
func runStream(args []string) error {
	s := &streamServer{version: 1 << 20, watches: map[string]chan []byte{}, ended: map[int]time.Time{}}
	var shape string
	set := flag.NewFlagSet("stream", flag.ExitOnError)
	kubeconfig := set.String("kubeconfig", "", "file to write, once it serves")
	set.IntVar(&s.pods, "pods", 10000, "how many there are")
	set.IntVar(&s.ats, "ats", 1000, "how many of their Ats there are, of the last pods")
	set.StringVar(&shape, "shape", string(podSmall), "of the pods: small, 1.3 KB, or large, 6 KB")
	_ = set.Parse(args)
	s.shape = podShape(shape)
	return serveTLS(s, *kubeconfig)
}

// serveTLS serves until it is ended. It writes the kubeconfig once it does.
func serveTLS(handler http.Handler, kubeconfig string) error {
	certificate, authority, err := selfSigned()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := writeKubeconfig(kubeconfig, listener.Addr().String(), authority); err != nil {
		return err
	}
	server := http.Server{
		Handler:   handler,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	return server.ServeTLS(listener, "", "")
}
