package send

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
)

// Hop is a next hop for which something waits and may be sent now.
type Hop struct {
	// Queue is the number of its queue.
	Queue int64
	// Kind says how it is reached; Name is a domain, hosts, or the name of a mailbox store, and Connector the send connector or store.
	Kind, Name, Connector string
	// Waiting is about how many messages wait.
	Waiting int
}

// Delivery is a message that was claimed for a next hop, under a lease.
type Delivery struct {
	// Claim names the claim; an outcome that comes with another is refused.
	Claim int64
	Hop   Hop
	// MessageID is the number of the message; Ordinals are those of the recipients of Message, in their order.
	MessageID int64
	Ordinals  []int32
	Message   Message
}

// Outcome is what became of a delivery.
type Outcome struct {
	Delivery Delivery
	// Results are those of the recipients, in their order. When nothing was tried they are nil, and the message waits on without an attempt
	// being counted.
	Results []Result
}

// HopReport is what a connection to a next hop came to.
type HopReport struct {
	Queue int64
	// Failure is why there is no connection; nil when there was one.
	Failure *Result
}

// Store is what the dispatcher asks of the database.
type Store interface {
	// Hops are the next hops for which something may be sent now, at most limit, those that have waited longest first, and none of the queues
	// in except.
	Hops(ctx context.Context, limit int, except []int64) ([]Hop, error)
	// Claim claims up to counts[i] messages for hops[i], under one lease.
	Claim(ctx context.Context, hops []Hop, counts []int) ([]Delivery, error)
	// Renew keeps the lease of what is not yet finished.
	Renew(ctx context.Context, claims []int64) error
	// Record records outcomes and reports of hops in one transaction. Outcomes whose lease is over are refused, and returned.
	Record(ctx context.Context, outcomes []Outcome, hops []HopReport) (refused int, err error)
}

// Carrier takes messages to one kind of next hop.
type Carrier interface {
	// Connect opens a way to the hop. It fails with an [*OpenError].
	Connect(ctx context.Context, hop Hop) (Way, error)
	// Limits are those of the hop.
	Limits(hop Hop) Limits
}

// Way is an open way to a next hop, used by one goroutine at a time; [Connection] is one.
type Way interface {
	Send(ctx context.Context, message Message) []Result
	Usable() bool
	Messages() int
	Close()
}

// Limits bound what is done for one next hop at once.
type Limits struct {
	// Connections is how many there may be; MessagesEach how many messages one connection carries. 0 means 20.
	Connections, MessagesEach int
	// Idle is how long a connection without work is kept; 0 means 5 s.
	Idle time.Duration
}

// Config says what a dispatcher works with.
type Config struct {
	Store Store
	// Carriers are those for each kind of next hop.
	Carriers map[string]Carrier
	// Wake is sent to when something new waits; nil means that only Interval counts.
	Wake <-chan struct{}
	// Interval is how often the database is asked at least; 0 means 1 s.
	Interval time.Duration
	// Lease is how long a claim holds without being renewed; 0 means 5 min.
	Lease time.Duration
	// Connections bounds all connections of this daemon; 0 means 1000.
	Connections int
	// Paused says whether nothing is to be sent, because the machine is under pressure; nil means never.
	Paused func() bool
	Logger *slog.Logger
}

// hopsAsked bounds the hops that one question to the database is about.
const hopsAsked = 500

// Dispatcher takes what waits to its next hops.
type Dispatcher struct {
	config   Config
	recorder *recorder
	freed    chan struct{}
	workers  sync.WaitGroup

	mu     sync.Mutex
	lines  map[int64]*line
	active int
}

// NewDispatcher makes a dispatcher. Nothing is sent before [Dispatcher.Run].
func NewDispatcher(config Config) (*Dispatcher, error) {
	if config.Store == nil || len(config.Carriers) == 0 {
		return nil, errors.New("send: Store or Carriers are missing")
	}
	config.Interval = cmp.Or(config.Interval, time.Second)
	config.Lease = cmp.Or(config.Lease, 5*time.Minute)
	config.Connections = cmp.Or(config.Connections, 1000)
	if config.Paused == nil {
		config.Paused = func() bool { return false }
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return &Dispatcher{
		config: config, lines: make(map[int64]*line), freed: make(chan struct{}, 1),
		recorder: newRecorder(config.Store, config.Logger),
	}, nil
}

// Run sends until ctx ends; then what is under way is given up, and recorded as not tried or unknown.
func (d *Dispatcher) Run(ctx context.Context) error {
	recording, stopRecording := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	helpers.Go(func() { d.recorder.run(recording) })
	helpers.Go(func() { d.keepLeases(ctx) })
	failures := backoff.NewFailures(d.config.Logger, "the messages to send cannot be claimed")
	for ctx.Err() == nil {
		pause := d.config.Interval
		claimed, err := d.claim(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			pause = failures.Failed(err)
		default:
			failures.Succeeded()
			if claimed > 0 {
				continue
			}
		}
		select {
		case <-ctx.Done():
		case <-d.config.Wake:
		case <-d.freed:
		case <-time.After(pause):
		}
	}
	d.workers.Wait()
	stopRecording()
	helpers.Wait()
	return nil
}

// claim claims for the hops that have room, and gives each its messages. It returns how many there were.
func (d *Dispatcher) claim(ctx context.Context) (int, error) {
	if d.config.Paused() {
		return 0, nil
	}
	hops, err := d.config.Store.Hops(ctx, hopsAsked, d.full())
	if err != nil || len(hops) == 0 {
		return 0, err //nolint:wrapcheck // The store says what it could not do.
	}
	var open []Hop
	var counts []int
	d.mu.Lock()
	free := d.config.Connections - d.active
	for _, hop := range hops {
		room := d.room(hop, free)
		if room > 0 {
			open, counts = append(open, hop), append(counts, min(room, max(hop.Waiting, 1)))
			free--
		}
	}
	d.mu.Unlock()
	if len(open) == 0 {
		return 0, nil
	}
	deliveries, err := d.config.Store.Claim(ctx, open, counts)
	if err != nil {
		return 0, err //nolint:wrapcheck // The store says what it could not do.
	}
	d.hand(ctx, deliveries)
	return len(deliveries), nil
}

// full are the queues for which nothing more can be claimed now.
func (d *Dispatcher) full() []int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	queues := []int64{}
	for queue, l := range d.lines {
		if l.room() <= 0 {
			queues = append(queues, queue)
		}
	}
	return queues
}

// room is how many messages can be claimed for a hop. The caller holds mu.
func (d *Dispatcher) room(hop Hop, free int) int {
	carrier, known := d.config.Carriers[hop.Kind]
	if !known {
		return 0
	}
	l := d.lines[hop.Queue]
	if l == nil {
		if free <= 0 {
			return 0
		}
		l = newLine(hop, carrier)
	}
	return l.room()
}

// hand gives claimed messages to the workers of their hops, and starts workers where there are too few.
func (d *Dispatcher) hand(ctx context.Context, deliveries []Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	touched := make(map[*line]struct{})
	for _, delivery := range deliveries {
		l := d.lines[delivery.Hop.Queue]
		if l == nil {
			l = newLine(delivery.Hop, d.config.Carriers[delivery.Hop.Kind])
			d.lines[delivery.Hop.Queue] = l
		}
		l.waiting = append(l.waiting, delivery)
		touched[l] = struct{}{}
	}
	for l := range touched {
		for l.wantsWorker() && d.active < d.config.Connections {
			l.workers++
			d.active++
			d.workers.Go(func() { d.work(ctx, l) })
		}
		l.wakeIdle()
	}
}

// keepLeases renews what is under way until ctx ends.
func (d *Dispatcher) keepLeases(ctx context.Context) {
	ticker := time.NewTicker(d.config.Lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var claims []int64
		d.mu.Lock()
		for _, l := range d.lines {
			claims = l.appendClaims(claims)
		}
		d.mu.Unlock()
		if len(claims) == 0 {
			continue
		}
		if err := d.config.Store.Renew(ctx, claims); err != nil && ctx.Err() == nil {
			d.config.Logger.Warn("leases of messages that are being sent cannot be renewed; others may send them too", "error", err)
		}
	}
}
