package dialogsecurity

import (
	"sync"
	"time"
)

// memory remembers what was asked last. Half of it is forgotten when it is full, so it needs no order and no list.
// Safe for concurrent use.
type memory[K comparable, V any] struct {
	max int

	mu         sync.Mutex
	young, old map[K]V
}

func newMemory[K comparable, V any](entriesMax int) *memory[K, V] {
	return &memory[K, V]{max: entriesMax, young: map[K]V{}}
}

func (m *memory[K, V]) get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, ok := m.young[key]; ok {
		return value, true
	}
	value, ok := m.old[key]
	if ok {
		m.keep(key, value)
	}
	return value, ok
}

func (m *memory[K, V]) put(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(key, value)
}

func (m *memory[K, V]) keep(key K, value V) {
	if len(m.young) >= m.max/2 {
		m.young, m.old = map[K]V{}, m.young
	}
	m.young[key] = value
}

func (m *memory[K, V]) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.young, m.old = map[K]V{}, nil
}

// dated is something that was true at a time.
type dated[V any] struct {
	value V
	at    time.Time
}

func now[V any](value V) dated[V] { return dated[V]{value: value, at: time.Now()} }

func (d dated[V]) isYoungerThan(age time.Duration) bool {
	return !d.at.IsZero() && time.Since(d.at) < age
}
