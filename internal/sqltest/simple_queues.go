package sqltest

import (
	"slices"
	"strings"
	"testing"
)

// NewJobs gives a test a simple queue.
func NewJobs(t *testing.T) *Broker {
	t.Helper()
	b := NewWorld(t)
	b.Exec("select parley.create_queue('jobs', kind => 'simple', poison_rollbacks => 3)")
	return b
}

// Put puts messages into the queue "jobs".
func (s Session) Put(bodies ...string) {
	s.Helper()
	for _, body := range bodies {
		s.Exec("select parley.put('jobs', $1::text)", body)
	}
}

// PutKeyed puts "key:number" for each key.
func (s Session) PutKeyed(messages ...string) {
	s.Helper()
	for _, message := range messages {
		s.Exec("select parley.put('jobs', $1::text, key => $2)", message, strings.Split(message, ":")[0])
	}
}

// Take takes messages from "jobs" and gives their bodies.
func (s Session) Take(count int) []string {
	s.Helper()
	return Values[string](s, "select coalesce(parley.body_text(body), '') from parley.take('jobs', $1)", count)
}

// RequireTaken takes messages from "jobs" and compares their bodies.
func (s Session) RequireTaken(count int, want ...string) {
	s.Helper()
	if got := s.Take(count); !slices.Equal(got, want) {
		s.Errorf("take of %d gives %q, want %q", count, got, want)
	}
}
