// Answers the cases of spec/unit/codec/yaml.txt with the library by which kubectl and kube-apiserver read YAML.
// Usage: go run . FILE; the file is written anew. Lines "= TEXT" are the cases, and lines "* WHY" say that our reader
// differs: both stay, as comments do. All else is written here.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// The text as a JSON string, on one line.
func quote(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		log.Fatal(err)
	}
	return out.String()
}

func answer(out *bytes.Buffer, text []byte) {
	value, err := yaml.YAMLToJSON(text)
	if err != nil {
		fmt.Fprintf(out, "! %s", quote(err.Error()))
		return
	}
	fmt.Fprintf(out, "> %s\n", value)
	if _, err := yaml.YAMLToJSONStrict(text); err != nil {
		for _, line := range strings.Split(err.Error(), "\n")[1:] {
			fmt.Fprintf(out, "~ %s", quote(strings.TrimSpace(line)))
		}
	}
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: go run . FILE")
	}
	file, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var out bytes.Buffer
	for _, line := range strings.Split(strings.TrimSuffix(string(file), "\n"), "\n") {
		switch {
		case line == "" || line[0] == '#' || line[0] == '*':
			fmt.Fprintln(&out, line)
		case line[0] == '=':
			var text string
			if err := json.Unmarshal([]byte(line[2:]), &text); err != nil {
				log.Fatalf("%s: %v", line, err)
			}
			fmt.Fprintln(&out, line)
			answer(&out, []byte(text))
		}
	}
	if err := os.WriteFile(os.Args[1], out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
