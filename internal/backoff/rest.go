package backoff

import "time"

// restMost bounds how long is waited after work that took long.
const restMost = 100 * time.Millisecond

// Rest gives how long to wait before the same work is done again. The work is then done neither more often than the pace nor more than a
// third of the time: most of its cost is for each time, and when it takes long the machine has much to do. Took is how long it took, and
// since how long ago it ended; when that is long enough ago the rest is not positive.
func Rest(took, since, pace time.Duration) time.Duration {
	return max(pace-took, min(2*took, restMost)) - since
}
