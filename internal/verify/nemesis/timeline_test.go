//go:build unix

package nemesis_test

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"
)

// timeline records the acts of clients and the nemesis, in lines of JSON: when, who, what, and what about it.
type timeline struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *timeline) add(at time.Duration, who, what string, about ...any) {
	line, err := json.Marshal(append([]any{at.Microseconds(), who, what}, about...))
	if err != nil {
		line = []byte(err.Error())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(line)
	l.text.WriteByte('\n')
}

func (l *timeline) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.text.Bytes())
}
