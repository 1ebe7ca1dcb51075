// Stands in for the web servers of Kubernetes' tests, which only have to be there.
package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "It works!") })
	fmt.Fprintln(os.Stderr, http.ListenAndServe(":80", nil))
	os.Exit(1)
}
