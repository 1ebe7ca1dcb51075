package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const floodTick = 5 * time.Millisecond

// A flood is so many events of pods at a rate. In each second's first event a pod ends that ran:
// the operator has to write that to its At, and how long this takes from when the event
// was due is the lag of all that came before it. With no rate the next event is due when
// the last one was taken, and only the last event is such a marker.
type flood struct {
	server   *streamServer
	lines    chan []byte
	rate     int
	count    int
	began    time.Time
	deadline time.Time
}

func (f *flood) due(event int) time.Time {
	if f.rate == 0 {
		return time.Now()
	}
	return f.began.Add(time.Duration(event) * time.Second / time.Duration(f.rate))
}

func (f *flood) isMarker(event int) bool {
	return event == f.count-1 || (f.rate > 0 && event%f.rate == 0)
}

// appendEvent goes through the pods with a stride, so that no two neighbours follow each other.
func (f *flood) appendEvent(out []byte, event int) ([]byte, int) {
	s := f.server
	number := event * 7919 % (s.pods - markersMax)
	marker := -1
	if f.isMarker(event) {
		s.markers++
		number = s.pods - s.markers
		marker = number
	}
	out = append(out, `{"type":"MODIFIED","object":`...)
	out = appendPod(out, s.shape, number, s.nextVersion(), "Succeeded")
	return append(out, "}\n"...), marker
}

// write sends all events and returns when each marker was due, by the number of its At.
func (f *flood) write() map[int]time.Time {
	markers := map[int]time.Time{}
	for event := 0; event < f.count; {
		var batch []byte
		last := event + 100
		for event < f.count && (f.rate == 0 && event < last || f.rate > 0 && !f.due(event).After(time.Now())) {
			due, marker := f.due(event), -1
			batch, marker = f.appendEvent(batch, event)
			if marker >= 0 {
				markers[marker] = due
			}
			event++
		}
		if batch != nil {
			f.lines <- batch
		}
		if f.rate > 0 {
			time.Sleep(floodTick)
		}
	}
	return markers
}

// lags waits for the writes that the markers ask for.
func (f *flood) lags(markers map[int]time.Time) (lags []float64, last time.Time) {
	for len(lags) < len(markers) && time.Now().Before(f.deadline) {
		time.Sleep(floodTick)
		f.server.mu.Lock()
		lags = lags[:0]
		for number, due := range markers {
			if ended, found := f.server.ended[number]; found {
				lags = append(lags, ended.Sub(due).Seconds())
				if ended.After(last) {
					last = ended
				}
			}
		}
		f.server.mu.Unlock()
	}
	return lags, last
}

func (s *streamServer) flood(w http.ResponseWriter, r *http.Request) {
	rate, _ := strconv.Atoi(r.URL.Query().Get("rate"))
	count, _ := strconv.Atoi(r.URL.Query().Get("count"))
	f := flood{server: s, rate: rate, count: count, lines: s.watchOf(streamPods), began: time.Now()}
	if f.lines == nil || count <= 0 || s.pods <= markersMax || s.ats < markersMax {
		http.Error(w, "nobody watches the pods, or there are too few of them", http.StatusConflict)
		return
	}
	lists := s.listed()
	markers := f.write()
	f.deadline = time.Now().Add(time.Minute)
	lags, last := f.lags(markers)
	if again := s.listed() - lists; len(lags) < len(markers) || again > 0 {
		http.Error(w, fmt.Sprintf("%d of %d markers answered, %d lists meanwhile", len(lags), len(markers), again),
			http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprintf(w, "rate\t%.0f\n", float64(count)/last.Sub(f.began).Seconds())
	printQuantiles(w, "lag", lags)
}

func (s *streamServer) listed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

// cpuSeconds is what a process has used so far.
func cpuSeconds(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100, nil
}

// runFlood asks the server of a stream for a flood, and says what it cost the operator.
func runFlood(args []string) error {
	set := flag.NewFlagSet("flood", flag.ExitOnError)
	kubeconfig := set.String("kubeconfig", "", "of the stream")
	pid := set.Int("pid", 0, "the operator's")
	rate := set.Int("rate", 0, "events a second; 0: as fast as they are taken")
	count := set.Int("count", 100000, "how many events")
	_ = set.Parse(args)
	c, err := newClient(*kubeconfig)
	if err != nil {
		return err
	}
	before, err := cpuSeconds(*pid)
	if err != nil {
		return err
	}
	response, err := c.do(context.Background(), http.MethodPost, fmt.Sprintf("/flood?rate=%d&count=%d", *rate, *count), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("flood: %s", text)
	}
	if err != nil {
		return err
	}
	after, err := cpuSeconds(*pid)
	if err == nil {
		_, err = fmt.Printf("%scpu_us\t%.1f\n", text, (after-before)*1e6/float64(*count))
	}
	return err
}
