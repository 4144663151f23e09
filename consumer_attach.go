package parley

import (
	"context"
	"errors"
	"fmt"
)

// attach refuses to work on a copy of a database before somebody has said that it may, and with a schema that does not
// fit. That the database cannot be reached just now is no reason: readers try again by themselves.
func (execution *consumerExecution) attach(ctx context.Context) error {
	broker, err := Attach(ctx, execution.Pool)
	switch {
	case errors.Is(err, ErrUpgradeNeeded) || errors.Is(err, ErrReleaseTooOld):
		return fmt.Errorf("consumer of queue %s: %w", execution.Queue, err)
	case err == nil && broker.State == BrokerElsewhere:
		return fmt.Errorf("consumer of queue %s: %w: %s", execution.Queue, ErrBrokerElsewhere, broker.Advice)
	}
	return nil
}
