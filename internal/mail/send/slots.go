package send

import (
	"context"
	"sync"
)

// connectorOf is the beginning of the names of the queues of a connector or store.
func connectorOf(hop Hop) string { return hop.Kind + "/" + hop.Connector + "/" }

// slots bound the connections of each connector of this daemon (spec section 11.1).
type slots struct {
	mu    sync.Mutex
	used  map[string]int
	freed chan struct{}
}

func newSlots() *slots { return &slots{used: make(map[string]int), freed: make(chan struct{})} }

// take waits for a slot of a connector that may have at most so many, 0 for any number. It says how many are used, and false when ctx
// has ended.
func (s *slots) take(ctx context.Context, connector string, most int) (used int, ok bool) {
	for {
		s.mu.Lock()
		if most <= 0 || s.used[connector] < most {
			s.used[connector]++
			used = s.used[connector]
			s.mu.Unlock()
			return used, true
		}
		freed := s.freed
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return 0, false
		case <-freed:
		}
	}
}

func (s *slots) give(connector string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[connector]--
	if s.used[connector] <= 0 {
		delete(s.used, connector)
	}
	close(s.freed)
	s.freed = make(chan struct{})
}
