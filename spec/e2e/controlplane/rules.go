package main

import (
	"fmt"
	"net/http"
	"regexp"
	"sync"
)

// Rule is a fault, and which requests it befalls. README.md explains the fields.
type Rule struct {
	Name         string `json:"name,omitempty"`
	Method       string `json:"method,omitempty"` // "" is any
	Path         string `json:"path,omitempty"`   // a regular expression on path?query; "" is any
	Skip         int    `json:"skip,omitempty"`   // requests let through first
	Times        int    `json:"times,omitempty"`  // requests it then befalls; 0 is all
	Action       string `json:"action"`
	Code         int    `json:"code,omitempty"`
	Reason       string `json:"reason,omitempty"`
	Message      string `json:"message,omitempty"`
	RetryAfter   int    `json:"retryAfter,omitempty"` // seconds
	Milliseconds int    `json:"ms,omitempty"`         // wait before the action, whichever it is
	Bytes        int    `json:"bytes,omitempty"`
	Body         string `json:"body,omitempty"`
	BodyBase64   []byte `json:"bodyBase64,omitempty"` // the body, where it is no text; decoded by encoding/json
	Connection   bool   `json:"connection,omitempty"` // end the whole connection, not this stream alone
	Hits         int    `json:"hits"`                 // requests it has befallen; counted here, ignored in a POST

	path *regexp.Regexp
	seen int
}

// actions maps the name of each action to what it does.
var actions = map[string]action{
	"status":     answerStatus,
	"drop-reply": dropReply,
	"cut":        cutReply,
	"stall":      stallReply,
	"delay":      forward, // the wait is in "ms", which every action heeds
	"inject":     inject,
	"goaway":     sendAway,
}

// prepare checks a rule that came from outside and makes it ready to match.
func (r *Rule) prepare() error {
	if actions[r.Action] == nil {
		return fmt.Errorf("unknown action %q", r.Action)
	}
	if r.Code != 0 && (r.Code < 200 || r.Code > 599) {
		return fmt.Errorf("code %d is not from 200 to 599", r.Code)
	}
	if r.Action == "status" && r.Code == 0 {
		return fmt.Errorf("action status needs a code")
	}
	if r.Skip < 0 || r.Times < 0 || r.Milliseconds < 0 || r.Bytes < 0 || r.RetryAfter < 0 {
		return fmt.Errorf("skip, times, ms, bytes and retryAfter cannot be negative")
	}
	if len(r.BodyBase64) > 0 {
		r.Body, r.BodyBase64 = string(r.BodyBase64), nil
	}
	path, err := regexp.Compile(r.Path)
	if err != nil {
		return err
	}
	r.path, r.seen, r.Hits = path, 0, 0
	return nil
}

// take tells whether the rule befalls this request, and counts it.
func (r *Rule) take(request *http.Request) bool {
	if r.Method != "" && r.Method != request.Method || !r.path.MatchString(request.RequestURI) {
		return false
	}
	r.seen++
	if r.seen <= r.Skip || r.Times > 0 && r.Hits >= r.Times {
		return false
	}
	r.Hits++
	return true
}

// ruleSet is the rules in force, oldest first.
type ruleSet struct {
	mu    sync.Mutex
	rules []*Rule
	added int // since the start: names those that have no name
}

// take returns the first rule that befalls the request, or nil.
func (s *ruleSet) take(request *http.Request) *Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rule := range s.rules {
		if rule.take(request) {
			return rule
		}
	}
	return nil
}

// add puts rules behind those there are: all of them, or none if one is bad.
func (s *ruleSet) add(rules []*Rule) error {
	for i, rule := range rules {
		if rule == nil {
			return fmt.Errorf("rule %d is null", i)
		}
		if err := rule.prepare(); err != nil {
			return fmt.Errorf("rule %d: %w", i, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rule := range rules {
		s.added++
		if rule.Name == "" {
			rule.Name = fmt.Sprintf("%s-%d", rule.Action, s.added)
		}
	}
	s.rules = append(s.rules, rules...)
	return nil
}

func (s *ruleSet) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
}

// list copies the rules as they stand.
func (s *ruleSet) list() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	rules := make([]Rule, 0, len(s.rules))
	for _, rule := range s.rules {
		rules = append(rules, *rule)
	}
	return rules
}
