package send

import (
	"context"
	"time"
)

const (
	// configurationDelay is how much later than the database a daemon may know of an object of the configuration, with room to spare: mail is
	// routed by the one and sent by the other.
	configurationDelay = 10 * time.Second
	configurationPoll  = 100 * time.Millisecond
)

// awaitKnown finds what has a name in the configuration, and waits for it as long as the configuration may be late.
func awaitKnown[T any](ctx context.Context, find func(name string) (T, bool), name string) (found T, known bool) {
	ctx, cancel := context.WithTimeout(ctx, configurationDelay)
	defer cancel()
	for {
		if found, known = find(name); known {
			return found, true
		}
		select {
		case <-ctx.Done():
			return found, false
		case <-time.After(configurationPoll):
		}
	}
}
