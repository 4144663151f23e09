// Package logtest gives tests a log that they can read while daemons write it.
package logtest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/parleytest"
)

// Log keeps what is logged. Its zero value is empty; many goroutines may write and read it at once.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds to the log.
func (l *Log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// String gives all that was logged so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger gives a logger that writes to the log whatever has the level, or a higher one.
func (l *Log) Logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}

// Count counts how often the log holds a text.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }

// Await waits until the log holds a text, and fails the test with the log when it never does.
func (l *Log) Await(t testing.TB, text string) {
	t.Helper()
	deadline := time.Now().Add(parleytest.Patience)
	for !strings.Contains(l.String(), text) {
		if time.Now().After(deadline) {
			t.Fatalf("%q was never logged; logged was\n%s", text, l)
		}
		<-time.After(5 * time.Millisecond)
	}
}
