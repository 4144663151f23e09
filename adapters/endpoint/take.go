package endpoint

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/parley-broker/parley/flow/adapter"
)

// ErrLost says that a source has closed the connection over which it gave inputs: it gives them again over the next one.
var ErrLost = errors.New("the connection was lost while inputs waited to be stored")

// The pauses between attempts to store what the source keeps meanwhile.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 30 * time.Second
)

// Take takes inputs that their source keeps until they are acknowledged. While they cannot be stored it tries again, at growing intervals,
// until ctx ends or lost is closed. After nil all are in the message box.
func Take(ctx context.Context, e adapter.Endpoint, in adapter.Intake, inputs []adapter.Input, lost <-chan struct{}) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if err := in.Await(ctx); err != nil {
			return err
		}
		_, err := in.Take(ctx, inputs)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if e.Logger != nil {
			e.Logger.Warn("inputs cannot be stored, and are kept by their source", slog.Int("inputs", len(inputs)), slog.Any("error", err))
		}
		select {
		case <-time.After(pause):
		case <-lost:
			return ErrLost
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Ended gives nil where a receiver ends because its context has, and otherwise the error by which it ends.
func Ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // a location that stops has no error
	}
	return err
}
