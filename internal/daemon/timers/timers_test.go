package timers_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/daemon/timers"
	"github.com/parley-broker/parley/internal/notifier"
	"github.com/parley-broker/parley/parleytest"
)

func TestFiringTimersPausesWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	away, attempts := parleytest.Away(t)
	logger := slog.New(slog.DiscardHandler)
	term := &daemon.Term{Number: 1, Notifier: notifier.New(notifier.Config{Pool: away, Logger: logger})}
	const tested = 2 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), tested)
	defer cancel()
	timers.New(away, logger).Lead(ctx, term)
	// Pauses of 50 to 100 ms that double.
	if n := attempts(); n < 2 || n > 12 {
		t.Errorf("%d attempts to connect in %v", n, tested)
	}
}
