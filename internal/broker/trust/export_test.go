package trust

import "time"

// Forget lets the next check read the lists anew. A read that is under way may have begun before what the check is to see: it ends first.
func (t *Trust) Forget() {
	t.loading.Lock()
	defer t.loading.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.triedAt = time.Time{}
}
