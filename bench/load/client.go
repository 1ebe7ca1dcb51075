package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// userAgent sets our requests apart from the operator's in the audit log.
const userAgent = "moonloop-load"

// client talks to the API server of a kubeconfig as controlplane.sh writes it:
// one cluster, one user with a token, each value on a line of its own.
type client struct {
	server, token string
	http          *http.Client
}

func newClient(kubeconfig string) (*client, error) {
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), ": "); found {
			values[key] = value
		}
	}
	authority, err := base64.StdEncoding.DecodeString(values["certificate-authority-data"])
	if err != nil {
		return nil, fmt.Errorf("%s: certificate-authority-data: %w", kubeconfig, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) || values["server"] == "" || values["token"] == "" {
		return nil, fmt.Errorf("%s: not a kubeconfig of controlplane.sh", kubeconfig)
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}
	return &client{server: values["server"], token: values["token"], http: &http.Client{Transport: transport}}, nil
}

func (c *client) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", userAgent)
	return c.http.Do(request)
}

// post makes an object; it is an error when the server makes none.
func (c *client) post(path string, body []byte) error {
	response, err := c.do(context.Background(), http.MethodPost, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusCreated {
		err = fmt.Errorf("POST %s: %s: %.300s", path, response.Status, answer)
	}
	return err
}

// get reads one object or list.
func (c *client) get(path string, into any) error {
	response, err := c.do(context.Background(), http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// patch changes an object with a JSON merge patch.
func (c *client) patch(path, body string) error {
	request, err := http.NewRequest(http.MethodPatch, c.server+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("PATCH %s: %s", path, response.Status)
	}
	return nil
}

// log is what a pod has said.
func (c *client) log(pod string) (string, error) {
	response, err := c.do(context.Background(), http.MethodGet, pod+"/log", nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	return string(said), err
}

// object is as much of any object as we look at.
type object struct {
	Metadata struct {
		Name string `json:"name"`
		UID  string `json:"uid"`
	} `json:"metadata"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

// watch calls each for every object there is, and every one that changes, until
// it says that it has seen enough or the time is over.
func (c *client) watch(path string, timeout time.Duration, each func(object) (enough bool)) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for {
		enough, err := c.watchOnce(ctx, path, each)
		if enough {
			return nil
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("not within %s", timeout)
		}
		if err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond) // the server ends a watch that is slow: begin again
	}
}

func (c *client) watchOnce(ctx context.Context, path string, each func(object) bool) (enough bool, err error) {
	response, err := c.do(ctx, http.MethodGet, path+
		"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", nil)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var event struct {
			Type   string
			Object object
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return false, err
		}
		if event.Type == "ERROR" {
			return false, fmt.Errorf("watch: %s", lines.Bytes())
		}
		if event.Type != "BOOKMARK" && each(event.Object) {
			return true, nil
		}
	}
	return false, lines.Err()
}

// inParallel calls work(0) to work(count-1), so many at a time, and returns the
// first error.
func inParallel(count, concurrency int, work func(int) error) error {
	var group sync.WaitGroup
	var once sync.Once
	var first error
	numbers := make(chan int, count)
	for i := range count {
		numbers <- i
	}
	close(numbers)
	for range concurrency {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range numbers {
				if err := work(i); err != nil {
					once.Do(func() { first = err })
				}
			}
		}()
	}
	group.Wait()
	return first
}
