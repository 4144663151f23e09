package activation_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/notifier"
	"github.com/parley-broker/parley/parleytest"
)

func TestActivationPausesWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	away, attempts := parleytest.Away(t)
	logger := slog.New(slog.DiscardHandler)
	engine, err := activation.New(activation.Config{Pool: away, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	term := &daemon.Term{Number: 1, Notifier: notifier.New(notifier.Config{Pool: away, Logger: logger})}
	const tested = 2 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), tested)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() {
		if err := engine.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	engine.Lead(ctx, term)
	running.Wait()
	if n := attempts(); n < 1 || n > 12 {
		t.Errorf("%d attempts to connect in %v", n, tested)
	}
}
