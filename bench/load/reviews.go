package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// reviewBody is what an API server asks about a new At.
func reviewBody(uid string) []byte {
	at := atBody(uid, "2030-01-01T00:00:00Z")
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":%q,`+
		`"kind":{"group":"cnat.programming-kubernetes.info","version":"v1alpha1","kind":"At"},`+
		`"resource":{"group":"cnat.programming-kubernetes.info","version":"v1alpha1","resource":"ats"},`+
		`"name":%q,"namespace":"default","operation":"CREATE","userInfo":{"username":"load"},"object":%s,`+
		`"oldObject":null,"dryRun":false}}`, uid, uid, at)
}

// checkReview takes an answer that allows this request, by warnings of one version of the script.
func checkReview(uid string, body []byte) error {
	var review struct {
		Response struct {
			UID      string   `json:"uid"`
			Allowed  bool     `json:"allowed"`
			Warnings []string `json:"warnings"`
		} `json:"response"`
	}
	if err := json.Unmarshal(body, &review); err != nil {
		return err
	}
	answer := review.Response
	if answer.UID != uid || !answer.Allowed || len(answer.Warnings) != 2 || answer.Warnings[0] != answer.Warnings[1] {
		return fmt.Errorf("not what was asked for: %.300s", body)
	}
	return nil
}

func ask(client *http.Client, url, uid string) error {
	response, err := client.Post(url, "application/json", bytes.NewReader(reviewBody(uid)))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.300s", response.Status, body)
	}
	if err != nil {
		return err
	}
	return checkReview(uid, body)
}

func reviewClient(authority string, fresh bool) (*http.Client, error) {
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New(authority + ": no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	// A server that is behind gets no more of them: an API server has at most so many requests under way by default.
	transport.MaxConnsPerHost = 600
	if transport.DisableKeepAlives = fresh; !fresh {
		transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost = 64, 64
	}
	return &http.Client{Timeout: 30 * time.Second, Transport: transport}, nil
}

// runReviews sends each request at its instant, whether those before are answered or not. A time begins at that
// instant, so it includes what a request waited behind others.
func runReviews(args []string) error {
	set := flag.NewFlagSet("reviews", flag.ExitOnError)
	url := set.String("url", "", "of the webhook")
	authority := set.String("ca", "", "file with whom to trust")
	rate := set.Int("rate", 100, "requests a second")
	count := set.Int("count", 1000, "how many")
	fresh := set.Bool("fresh", false, "each on a connection of its own")
	_ = set.Parse(args)
	client, err := reviewClient(*authority, *fresh)
	if err != nil {
		return err
	}
	for range 20 { // a server and a client that have done it before
		if err := ask(client, *url, "warm"); err != nil {
			return err
		}
	}
	took, failed := make([]float64, *count), make([]error, *count)
	var group sync.WaitGroup
	begin := time.Now()
	for i := range *count {
		due := begin.Add(time.Duration(i) * time.Second / time.Duration(*rate))
		time.Sleep(time.Until(due))
		group.Add(1)
		go func() {
			defer group.Done()
			failed[i] = ask(client, *url, fmt.Sprintf("review-%d", i))
			took[i] = time.Since(due).Seconds()
		}()
	}
	group.Wait()
	errs := slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	if len(errs) > 0 {
		fmt.Fprintf(os.Stderr, "load reviews: %d failed; the first: %v\n", len(errs), errs[0])
	}
	fmt.Printf("failed\t%d\n", len(errs))
	printFine("took", took)
	return nil
}

// printFine is for times below a millisecond.
func printFine(name string, values []float64) {
	slices.Sort(values)
	for _, each := range []struct {
		name string
		of   float64
	}{{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}} {
		rank := max(int(math.Ceil(each.of*float64(len(values))))-1, 0)
		fmt.Printf("%s_%s\t%.6f\n", name, each.name, values[rank])
	}
}

// runReviewed makes Ats one after the other. The label is what the webhook's objectSelector asks for.
func runReviewed(args []string) error {
	var flags createFlags
	set := flag.NewFlagSet("reviewed", flag.ExitOnError)
	flags.register(set, "not used")
	label := set.String("label", "", "of every second one")
	_ = set.Parse(args)
	c, err := newClient(flags.kubeconfig)
	if err != nil {
		return err
	}
	var took [2][]float64
	for i := range 2 * flags.count {
		at := string(atBody(atName(flags.first+i), "2030-01-01T00:00:00Z"))
		if i%2 == 1 {
			at = strings.Replace(at, `"metadata":{`, fmt.Sprintf(`"metadata":{"labels":{%q:"true"},`, *label), 1)
		}
		began := time.Now()
		if err := c.post(fmt.Sprintf(atsPath, flags.namespace), []byte(at)); err != nil {
			return err
		}
		took[i%2] = append(took[i%2], time.Since(began).Seconds())
	}
	printFine("alone", took[0])
	printFine("asked", took[1])
	fmt.Printf("added_p50\t%.6f\n", took[1][flags.count/2]-took[0][flags.count/2])
	return nil
}
