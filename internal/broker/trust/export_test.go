package trust

import "time"

// Forget lets the next look at the lists be a fresh one.
func (t *Trust) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.triedAt = time.Time{}
}
