package parley

import (
	"runtime/debug"
	"time"
)

// Turn is one call of a handler, for metrics.
type Turn struct {
	Queue    string
	Messages int           // that the call got
	Took     time.Duration // the handler alone, without what the broker does
	Err      error         // nil when it succeeded
}

// observe gives a turn to the observer. The work is done whatever the observer does with it.
func (execution *consumerExecution) observe(turn Turn) {
	if execution.Observer == nil {
		return
	}
	defer func() {
		if value := recover(); value != nil {
			execution.Logger.Error("the observer panicked", "panic", value, "stack", string(debug.Stack()))
		}
	}()
	execution.Observer(turn)
}
