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
	// Kind says how it is reached; Name is a domain, hosts, or the name of a mailbox store, and Connector the send connector or store.
	Kind, Name, Connector string
}

// Batch are messages that were claimed for one next hop, under one lease.
type Batch struct {
	// Lease names the claim: an outcome that comes with a lease that is over is refused.
	Lease      int64
	Hop        Hop
	Deliveries []Delivery

	under *held
}

// Delivery is a message that was claimed for a next hop.
type Delivery struct {
	// Item is its number among the work of the hop.
	Item int64
	// MessageID is the number of the message; Ordinals are those of the recipients of Message, in their order.
	MessageID int64
	// Holder is the number of the message whose body this one shares, its own for most.
	Holder   int64
	Ordinals []int32
	Message  Message
}

// Outcome is the outcome of a delivery.
type Outcome struct {
	Lease    int64
	Delivery Delivery
	// Results are those of the recipients, in their order. When nothing was tried they are nil, and the message waits on without an
	// attempt being counted.
	Results []Result
	// Connect is how long it took to connect, 0 where the connection was there, and Transfer how long it took to send the message.
	Connect, Transfer time.Duration
}

// HopReport is the outcome of a connection to a next hop.
type HopReport struct {
	Hop Hop
	// Failure is why there is no connection; nil when there was one.
	Failure *Result
	// Began is when the connection was begun.
	Began time.Time
}

// Store is the dispatcher's side of the database.
type Store interface {
	// Claim claims messages of at most hops next hops, at most each of one. How many claims of one hop there are side by side is bounded
	// by the database. Hops whose names, KIND/CONNECTOR/NAME, begin with one of passedBy are left to others.
	Claim(ctx context.Context, hops, each int, lease time.Duration, passedBy []string) ([]Batch, error)
	// Permit gives the items of a batch that may be sent now, by the rates of their connector. The others are put off, and no more under
	// the lease. Ends are empty where there is no connection yet.
	Permit(ctx context.Context, batch Batch, ends Ends) (items []int64, err error)
	// Renew keeps leases of what is not yet finished. It gives those that it has renewed and those that are over: others may have their
	// messages. One that it cannot say anything of is in neither.
	Renew(ctx context.Context, leases []int64, lease time.Duration) (renewed, gone []int64, err error)
	// Record records outcomes and reports of hops in one transaction. Outcomes whose lease is over are refused, and counted.
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
	// Offers is whether the host knows an extension, by its name in capitals.
	Offers(extension string) bool
	Ends() Ends
	Close()
}

// Ends are those of a way: the name of the host, the address from which we connect and the address of the host; "" where there is none.
type Ends struct{ Host, Source, Remote string }

// Limits bound what is done for one next hop. How many connections there are is bounded by the database, for all daemons.
type Limits struct {
	// MessagesEach is how many messages one connection carries; 0 means 20.
	MessagesEach int
	// Idle is how long a connection without work is kept; 0 means 5 s.
	Idle time.Duration
	// Connections bounds those of this daemon for the connector; 0 means any number.
	Connections int
	// IsRated is whether there are rates for the connector, and IsRatedByHost whether one asks to which host the connection is.
	IsRated, IsRatedByHost bool
}

// Config holds the parts and the settings of a dispatcher.
type Config struct {
	Store Store
	// Carriers are those for each kind of next hop.
	Carriers map[string]Carrier
	// Wake is sent to when something new waits; nil means that only Interval counts.
	Wake <-chan struct{}
	// Interval is how often the database is asked at least; 0 means 1 s.
	Interval time.Duration
	// Lease is how long a claim holds without being renewed; 0 means [DefaultLease].
	Lease time.Duration
	// Connections bounds the connections in use of this daemon; 0 means 1000.
	Connections int
	// Each bounds the messages of one claim of a hop; 0 means 20.
	Each int
	// PassedBy are the beginnings of names of hops that this daemon does not reach; nil means none.
	PassedBy func() []string
	// Paused says whether nothing is to be sent, because the machine is under pressure; nil means never.
	Paused func() bool
	Logger *slog.Logger
}

// DefaultLease is how long what a daemon has in its hands waits for others when it is killed. It is renewed every sixth of that.
const DefaultLease = 30 * time.Second

// pace is how often messages are claimed, and outcomes recorded, at most: under load there are more of them at a time then.
const pace = 10 * time.Millisecond

// hopsAtOnce bounds the hops of one claim.
const hopsAtOnce = 50

// Dispatcher takes what waits to its next hops.
type Dispatcher struct {
	config   Config
	recorder *recorder
	idle     *idleWays
	slots    *slots
	freed    chan struct{}

	mu     sync.Mutex
	leases map[int64]*held
	// claimed is how many batches of each connector are under way.
	claimed map[string]claimedOf
	workers sync.WaitGroup
}

// claimedOf is how many batches of a connector are under way, of how many.
type claimedOf struct{ batches, most int }

// NewDispatcher makes a dispatcher. Nothing is sent before [Dispatcher.Run].
func NewDispatcher(config Config) (*Dispatcher, error) {
	if config.Store == nil || len(config.Carriers) == 0 {
		return nil, errors.New("send: Store or Carriers are missing")
	}
	config.Interval = cmp.Or(config.Interval, time.Second)
	config.Lease = cmp.Or(config.Lease, DefaultLease)
	config.Connections = cmp.Or(config.Connections, 1000)
	config.Each = cmp.Or(config.Each, 20)
	if config.Paused == nil {
		config.Paused = func() bool { return false }
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return &Dispatcher{
		config: config, leases: make(map[int64]*held), freed: make(chan struct{}, 1), idle: newIdleWays(), slots: newSlots(),
		claimed:  make(map[string]claimedOf),
		recorder: newRecorder(config.Store, config.Logger),
	}, nil
}

// Run sends until ctx ends. Then connections are closed, and what was not finished goes back untried, or is unknown.
func (d *Dispatcher) Run(ctx context.Context) error {
	recording, stopRecording := context.WithCancel(context.WithoutCancel(ctx))
	var beside sync.WaitGroup
	beside.Go(func() { d.recorder.run(recording) })
	beside.Go(func() { d.keepLeases(ctx) })
	failures := backoff.NewFailures(d.config.Logger, "the messages to send cannot be claimed")
	for ctx.Err() == nil {
		pause, began := d.config.Interval, time.Now()
		claimed, err := d.claim(ctx)
		ended := time.Now()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			pause = failures.Failed(err)
		default:
			failures.Succeeded()
			if claimed > 0 {
				pause = 0
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-d.config.Wake:
		case <-d.freed:
		case <-timer.C:
		}
		timer.Stop()
		_ = backoff.Wait(ctx, backoff.Rest(ended.Sub(began), time.Since(ended), pace))
	}
	d.workers.Wait()
	d.idle.close()
	stopRecording()
	beside.Wait()
	return nil
}

// claim claims what there are free connections for, and starts a worker for each batch. It returns how many there were.
func (d *Dispatcher) claim(ctx context.Context) (int, error) {
	var passedBy []string
	if d.config.PassedBy != nil {
		passedBy = d.config.PassedBy()
	}
	d.mu.Lock()
	free := d.config.Connections - len(d.leases)
	for connector, claimed := range d.claimed {
		if claimed.most > 0 && claimed.batches >= claimed.most {
			passedBy = append(passedBy, connector)
		}
	}
	d.mu.Unlock()
	if free <= 0 || d.config.Paused() {
		return 0, nil
	}
	asked := time.Now()
	batches, err := d.config.Store.Claim(ctx, min(free, hopsAtOnce), d.config.Each, d.config.Lease, passedBy)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, batch := range batches {
		working, cancel := context.WithCancel(ctx)
		batch.under = &held{cancel: cancel, asked: asked, lasts: d.config.Lease}
		d.leases[batch.Lease] = batch.under
		d.count(batch.Hop, 1)
		d.workers.Go(func() {
			defer cancel()
			d.work(working, batch)
			d.mu.Lock()
			delete(d.leases, batch.Lease)
			d.count(batch.Hop, -1)
			d.mu.Unlock()
			select {
			case d.freed <- struct{}{}:
			default:
			}
		})
	}
	return len(batches), nil
}

// count counts batches of a connector that are under way. The caller holds mu.
func (d *Dispatcher) count(hop Hop, more int) {
	connector := connectorOf(hop)
	claimed := d.claimed[connector]
	claimed.batches += more
	if carrier, known := d.config.Carriers[hop.Kind]; known {
		claimed.most = carrier.Limits(hop).Connections
	}
	if d.claimed[connector] = claimed; claimed.batches <= 0 {
		delete(d.claimed, connector)
	}
}
