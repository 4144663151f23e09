package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/parley-broker/parley/internal/mail/send"
)

// guardedCarrier keeps a message on which the sending fails in an unforeseen way from taking the daemon, and all that it has in its hands,
// down with it: its recipients are tried again, on another connection.
type guardedCarrier struct {
	send.Carrier
	logger *slog.Logger
}

// guarded guards carriers.
func guarded(carriers map[string]send.Carrier, logger *slog.Logger) map[string]send.Carrier {
	for kind, carrier := range carriers {
		carriers[kind] = guardedCarrier{Carrier: carrier, logger: logger}
	}
	return carriers
}

// Connect opens a way that is guarded.
func (c guardedCarrier) Connect(ctx context.Context, hop send.Hop) (send.Way, error) {
	way, err := c.Carrier.Connect(ctx, hop)
	if err != nil {
		return nil, err
	}
	return &guardedWay{Way: way, logger: c.logger}, nil
}

type guardedWay struct {
	send.Way
	logger   *slog.Logger
	isBroken bool
}

// Usable reports whether another message may be sent.
func (w *guardedWay) Usable() bool { return !w.isBroken && w.Way.Usable() }

// Send sends a message.
func (w *guardedWay) Send(ctx context.Context, message send.Message) (results []send.Result) {
	defer func() {
		reason := recover()
		if reason == nil {
			return
		}
		w.isBroken = true
		w.logger.Error("the sending of a message has failed in an unforeseen way", "message", message.ID, "reason", reason,
			"stack", string(debug.Stack()))
		results = make([]send.Result, len(message.Recipients))
		for i := range results {
			results[i] = send.Result{Class: send.Deferred, Enhanced: "4.3.0", Text: fmt.Sprintf("internal error: %v", reason)}
		}
	}()
	return w.Way.Send(ctx, message)
}
