package trust

import "time"

// Forget lets the next check read the lists anew.
func (t *Trust) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.triedAt = time.Time{}
}
