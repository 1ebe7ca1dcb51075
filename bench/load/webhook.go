package main

import (
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	webhooksPath = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	// A label of the objects that the webhook is asked about.
	askedLabel = "load-is-asked"
)

// allow answers every review with yes.
func allow(writer http.ResponseWriter, request *http.Request) {
	var review struct {
		Request struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	body, err := io.ReadAll(request.Body)
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(writer, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",`+
		`"response":{"uid":%q,"allowed":true}}`, review.Request.UID)
}

// configuration has the server ask the webhook at an address about labelled ConfigMaps.
func configuration(address net.Addr, authority []byte) ([]byte, error) {
	type table = map[string]any
	return json.Marshal(table{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": table{"name": "load"},
		"webhooks": []table{{
			"name":         "load.example.com",
			"clientConfig": table{"url": fmt.Sprintf("https://%s/", address), "caBundle": authority},
			"rules": []table{{
				"apiGroups": []string{""}, "apiVersions": []string{"v1"},
				"operations": []string{"CREATE"}, "resources": []string{"configmaps"},
			}},
			"objectSelector":          table{"matchLabels": table{askedLabel: "true"}},
			"sideEffects":             "None",
			"admissionReviewVersions": []string{"v1"},
		}},
	})
}

// runWebhook makes ConfigMaps one after the other, every second one with a webhook that allows it.
func runWebhook(args []string) error {
	var flags createFlags
	set := flag.NewFlagSet("webhook", flag.ExitOnError)
	flags.register(set, "not used")
	_ = set.Parse(args)
	c, err := newClient(flags.kubeconfig)
	if err != nil {
		return err
	}
	identity, authority, err := selfSigned()
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{identity}})
	if err != nil {
		return err
	}
	defer listener.Close()
	go http.Serve(listener, http.HandlerFunc(allow))
	body, err := configuration(listener.Addr(), authority)
	if err == nil {
		err = c.post(webhooksPath, body)
	}
	if err != nil {
		return err
	}
	var took [2][]time.Duration
	for i := range 2 * flags.count {
		object := string(mapBody(fmt.Sprintf("asked-%06d", i)))
		if i%2 == 1 {
			object = strings.Replace(object, `"app"`, fmt.Sprintf("%q:\"true\",\"app\"", askedLabel), 1)
		}
		began := time.Now()
		if err := c.post(fmt.Sprintf(mapsPath, flags.namespace), []byte(object)); err != nil {
			return err
		}
		took[i%2] = append(took[i%2], time.Since(began))
	}
	for i, name := range []string{"alone", "asked"} {
		slices.Sort(took[i])
		fmt.Printf("%s_p50\t%.6f\n", name, took[i][flags.count/2].Seconds())
	}
	fmt.Printf("added_p50\t%.6f\n", (took[1][flags.count/2] - took[0][flags.count/2]).Seconds())
	return nil
}
