package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// names reads a watch from a version until it ends, or has that many events.
func names(t *testing.T, url string, version uint64, most int) (found []string, last uint64) {
	request, err := http.NewRequest(http.MethodGet,
		fmt.Sprintf("%s%s?watch=1&timeoutSeconds=1&resourceVersion=%d", url, streamAts, version), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+streamToken)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for last = version; len(found) < most && lines.Scan(); {
		var event struct {
			Object struct {
				Metadata struct{ Name, ResourceVersion string }
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		found = append(found, event.Object.Metadata.Name)
		_, _ = fmt.Sscan(event.Object.Metadata.ResourceVersion, &last)
	}
	return found, last
}

// A watch that ends, in whatever way, costs no event: the next one has what came after the version.
func TestLivesNoEventIsLostBetweenTwoWatches(t *testing.T) {
	s := newLivesServer(3, 0)
	server := httptest.NewServer(s)
	defer server.Close()
	for i := range 3 {
		s.changeAt("ADDED", i, "")
	}
	first, version := names(t, server.URL, 1000, 1)
	rest, _ := names(t, server.URL, version, 2)
	if got := fmt.Sprint(append(first, rest...)); got != fmt.Sprint([]string{atName(0), atName(1), atName(2)}) {
		t.Fatal(got)
	}
}

func TestLivesWatchEndsAfterItsTime(t *testing.T) {
	server := httptest.NewServer(newLivesServer(1, 0))
	defer server.Close()
	began := time.Now()
	if found, _ := names(t, server.URL, 1000, 1); len(found) > 0 || time.Since(began) > 10*time.Second {
		t.Fatal(found, time.Since(began))
	}
}
