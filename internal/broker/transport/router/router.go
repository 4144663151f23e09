package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// Numbers of Service Broker for why a run goes nowhere from here (spec 6.12, 8.5).
const (
	noSuchBroker    = 9795
	noSuchService   = 9796
	notForwarded    = 9792
	targetDisabled  = 28012
	tooManyInMemory = 9749
)

// Config reports where a router sends what arrives. Only Directory is needed.
type Config struct {
	Directory *Directory
	// Route finds the way on of what no database here is the broker instance of: LOCAL or tcp://host:port, "" when it must not go on,
	// and beside LOCAL where else it goes when no database here has the service. Nil means LOCAL.
	Route func(ctx context.Context, target Target) (address, otherwise string, err error)
	// Forwarder passes on what goes to other servers; nil when this daemon does not forward.
	Forwarder *Forwarder
	// Logger receives what goes nowhere; nil means [slog.Default].
	Logger *slog.Logger
}

// Target is where a run or a fragment wants to go.
type Target struct {
	ToService      string
	ToBroker       parley.UUID
	ConversationID parley.UUID
}

// Router is the Deliverer for what comes over links. It is safe for concurrent use.
type Router struct {
	Config

	dropped atomic.Int64
}

// Dropped is how many messages have gone nowhere from here.
func (r *Router) Dropped() int64 { return r.dropped.Load() }

var _ transport.Deliverer = (*Router)(nil)

// New makes a router.
func New(config Config) (*Router, error) {
	if config.Directory == nil {
		return nil, errors.New("router: Directory is missing")
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return &Router{Config: config}, nil
}

// place is where something goes: to a database or to an address.
type place struct {
	to      *served
	address string
}

// Deliver takes a batch apart by where its runs go. Those that go to one place go together, in their order. The runs for places that do
// not answer are held: the others need not wait for them.
func (r *Router) Deliver(ctx context.Context, batch transport.Batch) ([]transportstore.Result, error) {
	results := make([]transportstore.Result, len(batch.Runs))
	parts := map[place][]int{}
	known := map[Target]place{}
	reasons := map[Target]*transportstore.Result{}
	for i, run := range batch.Runs {
		target := Target{ToService: run.ToService, ToBroker: run.ToBroker, ConversationID: run.ConversationID}
		at, isKnown := known[target]
		if !isKnown {
			var err error
			if at, reasons[target], err = r.place(ctx, target); err != nil {
				if r.isAlone() {
					return nil, err
				}
				reasons[target] = unavailable(err)
			}
			known[target] = at
			r.classified(ctx, target, at, reasons[target])
		}
		if reason := reasons[target]; reason != nil {
			results[i] = *reason
			if reason.Outcome == transportstore.Unroutable {
				r.dropped.Add(messages(batch.Runs[i : i+1]))
			}
			continue
		}
		parts[at] = append(parts[at], i)
	}
	failed := r.deliverParts(ctx, batch, parts, results)
	switch {
	case ctx.Err() != nil: // this server stops: another one may take it at once
		return nil, ctx.Err()
	case failed != nil && r.isAlone():
		return nil, failed
	}
	return results, nil
}

// deliverParts delivers to all places at once, and gives what has failed.
func (r *Router) deliverParts(
	ctx context.Context, batch transport.Batch, parts map[place][]int, results []transportstore.Result,
) (failed error) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	failures := make(chan error, len(parts))
	for at, indexes := range parts {
		go func() { failures <- r.deliverPart(ctx, batch, at, indexes, results) }()
	}
	var late <-chan time.Time
	for answered := 0; answered < len(parts); {
		select {
		case err := <-failures:
			answered++
			failed = errors.Join(failed, err)
			if err == nil && late == nil {
				late = time.After(lateTime)
			}
		case <-late:
			cut()
		}
	}
	return failed
}

// lateTime is how long the answers of some databases wait for those of others that the same batch was for.
const lateTime = 5 * time.Second

// isAlone reports whether there is but one place to deliver to: then a failure of that is one of this whole server, and the caller does
// better to leave it alone altogether than conversation by conversation.
func (r *Router) isAlone() bool { return r.Forwarder == nil && len(r.Directory.all()) == 1 }

// unavailable is the answer for what goes to a place that does not answer. It may have been taken in all the same: it comes again.
func unavailable(err error) *transportstore.Result {
	return &transportstore.Result{
		Outcome: transportstore.Held, ErrorNumber: targetDisabled, Description: fmt.Sprintf("The target broker is unavailable: %s", err),
	}
}

// deliverPart delivers what goes to one place. Its runs are held when that does not answer.
func (r *Router) deliverPart(ctx context.Context, batch transport.Batch, at place, indexes []int, results []transportstore.Result) error {
	part := batch
	if len(indexes) < len(batch.Runs) {
		part.Runs = make([]transportstore.Run, len(indexes))
		for n, i := range indexes {
			part.Runs[n] = batch.Runs[i]
		}
	}
	answers, err := r.deliverTo(ctx, at, part)
	if err == nil && len(answers) != len(indexes) {
		err = fmt.Errorf("%d results came for %d runs", len(answers), len(indexes))
	}
	for n, i := range indexes {
		if err != nil {
			results[i] = *unavailable(err)
			continue
		}
		results[i] = answers[n]
	}
	return err
}

func (r *Router) deliverTo(ctx context.Context, at place, part transport.Batch) ([]transportstore.Result, error) {
	if at.to != nil {
		return at.to.inbox.Deliver(ctx, part)
	}
	return r.Forwarder.deliver(ctx, at.address, part)
}

// DeliverFragment delivers a part of a large message to where the message goes. Of one that goes nowhere nothing is kept; the
// run has the reason.
func (r *Router) DeliverFragment(ctx context.Context, fragment transportstore.Fragment, passage transport.Passage) (int64, error) {
	stored, err := r.deliverFragment(ctx, fragment, passage)
	if err != nil && !r.isAlone() {
		r.Logger.Debug("a part of a large message was not taken in",
			"to_service", fragment.ToService, "to_broker", fragment.ToBroker, "error", err)
		return 0, nil
	}
	return stored, err
}

func (r *Router) deliverFragment(ctx context.Context, fragment transportstore.Fragment, passage transport.Passage) (int64, error) {
	at, reason, err := r.place(ctx, Target{
		ToService: fragment.ToService, ToBroker: fragment.ToBroker, ConversationID: fragment.ConversationID,
	})
	switch {
	case err != nil:
		return 0, err
	case reason != nil:
		return 0, nil
	case at.to != nil:
		return at.to.inbox.DeliverFragment(ctx, fragment, passage)
	}
	return r.Forwarder.deliverFragment(ctx, at.address, fragment, passage)
}

// place finds where something goes (spec 6.1 to 6.4), or the reason why that is nowhere.
func (r *Router) place(ctx context.Context, target Target) (at place, nowhere *transportstore.Result, err error) {
	if !target.ToBroker.IsZero() {
		if to := r.Directory.byBroker(ctx, target.ToBroker); to != nil {
			return place{to: to}, nil, nil
		}
	}
	address, otherwise := transportstore.LocalAddress, ""
	if r.Route != nil {
		if address, otherwise, err = r.Route(ctx, target); err != nil {
			return place{}, nil, fmt.Errorf("find an inbound route: %w", err)
		}
	}
	if address == transportstore.LocalAddress {
		if target.ToBroker.IsZero() {
			to, err := r.Directory.byService(ctx, target.ToService, target.ConversationID, nil)
			if err != nil || to != nil {
				return place{to: to}, nil, err
			}
		}
		address = otherwise
	}
	switch {
	case address != "" && r.Forwarder != nil:
		return place{address: address}, nil, nil
	case address != "":
		return place{}, r.nowhere(target, notForwarded,
			"The target does not forward messages, and the service %q is not there.", target.ToService), nil
	case target.ToBroker.IsZero():
		return place{}, r.nowhere(target, noSuchService, "The service %q does not exist at the target.", target.ToService), nil
	}
	return place{}, r.nowhere(target, noSuchBroker, "The broker instance %s is not served at the target.", target.ToBroker), nil
}

// classified logs where something from the network goes, at level debug.
func (r *Router) classified(ctx context.Context, target Target, at place, nowhere *transportstore.Result) {
	if !r.Logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	event, address, reason := transport.ClassifiedLocal, transportstore.LocalAddress, ""
	switch {
	case nowhere != nil:
		event, address, reason = transport.ClassifiedDelayed, "", nowhere.Description
	case at.to == nil:
		event, address = transport.ClassifiedRemote, at.address
	}
	event.In(r.Logger).Debug("messages from the network were classified", "address", address, "conversation_id", target.ConversationID,
		"to_service", target.ToService, "to_broker", target.ToBroker, "reason", reason)
}

// nowhere reports why something is dropped here. Its sender gets the reason, and tries again later.
func (r *Router) nowhere(target Target, number int32, text string, args ...any) *transportstore.Result {
	result := &transportstore.Result{Outcome: transportstore.Unroutable, ErrorNumber: number, Description: fmt.Sprintf(text, args...)}
	transport.MessageUndeliverable.In(r.Logger).Info("a message goes nowhere from here", "number", number,
		"reason", result.Description, "conversation", target.ConversationID, "service", target.ToService)
	return result
}
