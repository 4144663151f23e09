package transmitter

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/broker/transport/durable"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/notifier"
	"github.com/parley-broker/parley/parleytest"
)

// Without a pause of its own the transmitter alone would try thousands of times in a second.
func TestScansPauseWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	away, attempts := parleytest.Away(t)
	pool, err := durable.Open(t.Context(), away.Config(), "transmitter", 4)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	logger := slog.New(slog.DiscardHandler)
	transmitting := &Transmitter{Config: Config{Logger: logger, Observer: unobserved{}}, pool: pool}
	term := &daemon.Term{Number: 1, Notifier: notifier.New(notifier.Config{Pool: away, Logger: logger})}

	const tested = 2 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), tested)
	defer cancel()
	transmitting.Run(ctx, term)
	// Pauses of 50 to 100 ms that double.
	if n := attempts(); n < 2 || n > 12 {
		t.Errorf("%d attempts to connect in %v", n, tested)
	}
}
