package router

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/transport"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// DefaultForwardSize is how much a forwarder holds in memory unless it is configured otherwise: MESSAGE_FORWARD_SIZE of Service Broker.
const DefaultForwardSize = 10 << 20

// Forwarder passes on what goes to other servers. It holds it in memory until the next server has answered, and that answer is what it
// answers; it never acknowledges anything itself. It is safe for concurrent use.
type Forwarder struct {
	// Link gives the way to an address, tcp://host:port.
	Link func(address string) (transport.Deliverer, error)
	// SizeMax is how many bytes it holds at most; what comes on top is dropped and counted.
	SizeMax int64
	// Logger receives what is dropped.
	Logger *slog.Logger

	held, messages, bytes, dropped atomic.Int64

	mu      sync.Mutex
	passing map[*passing]struct{}
}

// passing is a batch on its way through.
type passing struct {
	address string
	began   time.Time
	passage transport.Passage
	runs    []transportstore.Run
	size    int64
}

// ForwardedMessage is a run on its way through: a row of dm_broker_forwarded_messages.
type ForwardedMessage struct {
	transportstore.Run

	// Address is the next hop. Passage is as it came; Consumed includes the time that it has been here.
	Address  string
	Passage  transport.Passage
	Consumed time.Duration
}

// ForwardStatistics counts what was forwarded since the daemon began.
type ForwardStatistics struct {
	Messages, Bytes, Dropped int64
	PendingMessages          int64
	PendingBytes             int64
}

// Statistics reports what was forwarded.
func (f *Forwarder) Statistics() ForwardStatistics {
	s := ForwardStatistics{Messages: f.messages.Load(), Bytes: f.bytes.Load(), Dropped: f.dropped.Load(), PendingBytes: f.held.Load()}
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range f.passing {
		s.PendingMessages += messages(p.runs)
	}
	return s
}

// Passing lists what is on its way through, the oldest first, at most so many.
func (f *Forwarder) Passing(most int) (list []ForwardedMessage) {
	f.mu.Lock()
	all := slices.Collect(maps.Keys(f.passing))
	f.mu.Unlock()
	slices.SortFunc(all, func(a, b *passing) int { return a.began.Compare(b.began) })
	for _, p := range all {
		for _, run := range p.runs {
			if len(list) == most {
				return list
			}
			run.Bodies = nil
			list = append(list, ForwardedMessage{
				Run: run, Address: p.address, Passage: p.passage, Consumed: p.passage.TimeConsumed + time.Since(p.began),
			})
		}
	}
	return list
}

func (f *Forwarder) deliver(ctx context.Context, address string, batch transport.Batch) ([]transportstore.Result, error) {
	all := batch.Runs
	batch.Runs = slices.DeleteFunc(slices.Clone(all), isForThisLinkOnly)
	passed, err := f.pass(ctx, address, batch)
	if err != nil || len(passed) == len(all) {
		return passed, err
	}
	results, next := make([]transportstore.Result, len(all)), 0
	for i, run := range all {
		if isForThisLinkOnly(run) {
			results[i] = transportstore.Result{
				Outcome: transportstore.Held, Next: run.FirstSequence, ErrorNumber: unbound, Description: unboundReason,
			}
			continue
		}
		results[i] = passed[next]
		next++
	}
	return results, nil
}

// A run that must be encrypted, and was protected by nothing but the link on which it came, would be in clear here.
const (
	unbound       = 9727
	unboundReason = "9727: the dialog is to be encrypted, and there is a forwarder on the way: create a remote service binding for the " +
		"target service, or begin dialogs with encryption => false."
)

func isForThisLinkOnly(run transportstore.Run) bool {
	return !dialogsecurity.MayBeForwarded(run.Security, run.IsEncrypted)
}

// pass passes on what may be passed on.
func (f *Forwarder) pass(ctx context.Context, address string, batch transport.Batch) ([]transportstore.Result, error) {
	if len(batch.Runs) == 0 {
		return nil, nil
	}
	p := &passing{address: address, began: time.Now(), passage: batch.Passage, runs: batch.Runs}
	for _, run := range batch.Runs {
		for _, body := range run.Bodies {
			p.size += int64(len(body))
		}
		p.size += int64(len(run.Security))
	}
	onward, reason := f.admit(p)
	if reason != "" {
		f.drop(p, reason)
		results := make([]transportstore.Result, len(batch.Runs))
		for i := range results {
			results[i] = transportstore.Result{Outcome: transportstore.Held, ErrorNumber: tooManyInMemory, Description: reason}
		}
		return results, nil
	}
	defer f.dismiss(p)
	link, err := f.Link(address)
	if err != nil {
		return nil, fmt.Errorf("forward to %s: %w", address, err)
	}
	batch.Passage = onward
	ctx, cancel := context.WithTimeout(ctx, onward.TimeToLive-onward.TimeConsumed)
	defer cancel()
	results, err := link.Deliver(ctx, batch)
	if err != nil {
		f.drop(p, err.Error())
		return nil, fmt.Errorf("forward to %s: %w", address, err)
	}
	f.messages.Add(messages(batch.Runs))
	f.bytes.Add(p.size)
	f.report(ctx, p, onward)
	return results, nil
}

// report logs what was passed on, at level debug.
func (f *Forwarder) report(ctx context.Context, p *passing, onward transport.Passage) {
	if !f.Logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	for _, run := range p.runs {
		transport.ForwardedMessageSent.In(f.Logger).Debug("messages were forwarded", "address", p.address,
			"conversation_id", run.ConversationID,
			"from_initiator", run.FromInitiator, "first_sequence", run.FirstSequence, "messages", messages([]transportstore.Run{run}),
			"from_service", run.FromService, "to_service", run.ToService, "to_broker", run.ToBroker, "hops_remaining", onward.HopsRemaining,
			"time_to_live", onward.TimeToLive, "time_consumed", p.passage.TimeConsumed+time.Since(p.began))
	}
}

func (f *Forwarder) deliverFragment(
	ctx context.Context, address string, fragment transportstore.Fragment, passage transport.Passage,
) (int64, error) {
	if !dialogsecurity.MayBeForwarded(fragment.Security, false) {
		return -1, nil // not wanted: the answer to the run has the reason
	}
	p := &passing{address: address, began: time.Now(), passage: passage, size: int64(len(fragment.Data)), runs: []transportstore.Run{{
		ConversationID: fragment.ConversationID, FromInitiator: fragment.FromInitiator, FirstSequence: fragment.Sequence,
		ToService: fragment.ToService, ToBroker: fragment.ToBroker, Size: fragment.Size,
	}}}
	onward, reason := f.admit(p)
	if reason != "" {
		f.drop(p, reason)
		return 0, transport.Fail(tooManyInMemory, "%s", reason)
	}
	defer f.dismiss(p)
	link, err := f.Link(address)
	if err != nil {
		return 0, fmt.Errorf("forward to %s: %w", address, err)
	}
	ctx, cancel := context.WithTimeout(ctx, onward.TimeToLive-onward.TimeConsumed)
	defer cancel()
	stored, err := link.DeliverFragment(ctx, fragment, onward)
	if err != nil {
		return 0, fmt.Errorf("forward to %s: %w", address, err)
	}
	f.bytes.Add(p.size)
	return stored, nil
}

// admit takes up memory for a batch and gives its passage from here, or the reason why it is dropped.
func (f *Forwarder) admit(p *passing) (onward transport.Passage, reason string) {
	onward = p.passage
	onward.Identity, onward.Name = "", ""
	onward.HopsRemaining--
	switch {
	case onward.HopsRemaining < 0:
		return onward, "A forwarder dropped it: it has passed as many brokers as it may."
	case onward.TimeConsumed >= onward.TimeToLive:
		return onward, "A forwarder dropped it: its time to live is over."
	}
	for {
		held := f.held.Load()
		if held+p.size > f.SizeMax {
			return onward, "A forwarder dropped it: it has no more memory for messages."
		}
		if f.held.CompareAndSwap(held, held+p.size) {
			break
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.passing == nil {
		f.passing = map[*passing]struct{}{}
	}
	f.passing[p] = struct{}{}
	return onward, ""
}

func (f *Forwarder) dismiss(p *passing) {
	f.held.Add(-p.size)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.passing, p)
}

func (f *Forwarder) drop(p *passing, reason string) {
	f.dropped.Add(messages(p.runs))
	transport.ForwardedMessageDropped.In(f.Logger).Info("messages were not forwarded", "address", p.address,
		"hops_remaining", p.passage.HopsRemaining, "time_consumed", p.passage.TimeConsumed, "messages", messages(p.runs), "reason", reason)
}

// messages counts those in some runs.
func messages(runs []transportstore.Run) (count int64) {
	for _, run := range runs {
		count += int64(max(1, len(run.Bodies)))
	}
	return count
}
