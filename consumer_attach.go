package parley

import (
	"context"
	"errors"
	"fmt"
)

// attach refuses to work on a copy of a database before somebody has said that it may, and with a schema that does not
// fit. That the database cannot be reached just now is no reason: readers try again by themselves.
func (run *consumerRun) attach(ctx context.Context) error {
	broker, err := Attach(ctx, run.Pool)
	switch {
	case errors.Is(err, ErrUpgradeNeeded) || errors.Is(err, ErrReleaseTooOld):
		return fmt.Errorf("consumer of queue %s: %w", run.Queue, err)
	case err == nil && broker.State == BrokerElsewhere:
		return fmt.Errorf("consumer of queue %s: %w: %s", run.Queue, ErrBrokerElsewhere, broker.Advice)
	}
	return nil
}
