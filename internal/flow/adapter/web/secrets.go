package web

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// secretLife is how long the value of a secret is kept. Reading one may start a program, and anybody can send requests.
const secretLife = 15 * time.Second

// secrets keeps the values of secrets for a while.
type secrets struct {
	read func(ctx context.Context, name string) (value string, found bool, err error)
	now  func() time.Time

	mu   sync.Mutex
	kept map[string]keptSecret
}

type keptSecret struct {
	value string
	until time.Time
}

func newSecrets(e adapter.Endpoint) *secrets {
	return &secrets{read: e.Secret, now: time.Now, kept: map[string]keptSecret{}}
}

// get gives the value of a secret without the end of its line. An empty one is an error: it would let everybody in.
func (s *secrets) get(ctx context.Context, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept, ok := s.kept[name]; ok && s.now().Before(kept.until) {
		return kept.value, nil
	}
	value, found, err := s.read(ctx, name)
	value = strings.TrimRight(value, "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("read the secret %s: %w", name, err)
	case !found:
		return "", fmt.Errorf("there is no secret %s; give it under secrets", name)
	case value == "":
		return "", fmt.Errorf("the secret %s is empty", name)
	}
	s.kept[name] = keptSecret{value: value, until: s.now().Add(secretLife)}
	return value, nil
}
