// Writes spec/lua/regex_matches.tsv: what Go's regexp, by which Kubernetes matches patterns, answers to expressions and
// texts that are put together at random, always the same ones. Usage: go run . FILE
//
// A line: expression, text, place of the first match (from 1), the groups of each match (";" behind a match, "," behind
// a group, "-" for one that took no part), and the text with each match replaced by "<$0|$1>" ("<$0>" without groups).
package main

import (
	"bytes"
	"fmt"
	"log"
	"math/rand"
	"os"
	"regexp"
	"strings"
)

const cases = 400

var (
	atoms = []string{"a", "b", "é", ".", "[ab]", "[^a]", "\\d", "\\w", "\\pL", "(a)", "(b|a)", "(?:ab|a)", "(?P<n>b)",
		"(?i)A", "\\b", "^", "$", "(a*)", "(a|b)*?", "()", "x|y", "[[:alpha:]]", "\\x61", "ab"}
	repeats = []string{"", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{2,}?"}
	letters = []string{"a", "b", "a", "b", "é", "x", "A", "1", " ", "-", "ß"}
)

func expression(random *rand.Rand) string {
	for {
		var out strings.Builder
		for i := random.Intn(4) + 1; i > 0; i-- {
			out.WriteString(atoms[random.Intn(len(atoms))] + repeats[random.Intn(len(repeats))])
		}
		if _, err := regexp.Compile(out.String()); err == nil {
			return out.String()
		}
	}
}

func text(random *rand.Rand) string {
	var out strings.Builder
	for i := random.Intn(9); i > 0; i-- {
		out.WriteString(letters[random.Intn(len(letters))])
	}
	return out.String()
}

func answer(out *bytes.Buffer, pattern, text string) {
	re := regexp.MustCompile(pattern)
	first, groups := "none", ""
	if at := re.FindStringIndex(text); at != nil {
		first = fmt.Sprintf("%d-%d", at[0]+1, at[1])
	}
	for _, match := range re.FindAllStringSubmatchIndex(text, -1) {
		for i := 2; i < len(match); i += 2 {
			group := "-"
			if match[i] >= 0 {
				group = text[match[i]:match[i+1]]
			}
			groups += group + ","
		}
		groups += ";"
	}
	template := "<$0|$1>"
	if re.NumSubexp() == 0 {
		template = "<$0>"
	}
	fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", pattern, text, first, groups, re.ReplaceAllString(text, template))
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: go run . FILE")
	}
	var out bytes.Buffer
	random := rand.New(rand.NewSource(1))
	for range cases {
		answer(&out, expression(random), text(random))
	}
	if err := os.WriteFile(os.Args[1], out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
