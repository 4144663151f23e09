package router

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport/inbox"
	"github.com/parley-broker/parley/internal/broker/transport/transmitter"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

const (
	// memoryTime is how long to rely on what a database has reported of itself; missTime on that it does not have a service.
	memoryTime = time.Second
	missTime   = 200 * time.Millisecond
	// readTime bounds how long databases that do not answer are waited for.
	readTime = 5 * time.Second
	// servicesMax bounds how many services are remembered.
	servicesMax = 10_000
)

// Directory knows the databases that a daemon serves. It is safe for concurrent use.
type Directory struct {
	mu        sync.Mutex
	databases []*served
	readAt    time.Time
	reading   chan struct{} // closed when the databases have been read
	services  map[string]service
}

// served is one of the databases.
type served struct {
	inbox *inbox.Inbox
	// The report that it made of itself last, and whether it ever has; Directory.mu is held.
	transportstore.ServedDatabase
	isKnown bool
}

// service reports which databases have it.
type service struct {
	at        time.Time
	databases []*served
}

// NewDirectory makes a directory without databases.
func NewDirectory() *Directory { return &Directory{services: map[string]service{}} }

// Add adds the database behind an inbox.
func (d *Directory) Add(b *inbox.Inbox) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.databases = append(d.databases, &served{inbox: b})
	d.readAt = time.Time{}
	clear(d.services)
}

// all lists the databases.
func (d *Directory) all() []*served {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.databases)
}

// Brokers lists the brokers that are served, as far as they are known.
func (d *Directory) Brokers(ctx context.Context) (brokers []transportstore.ServedDatabase) {
	d.refresh(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.databases {
		if s.isKnown {
			brokers = append(brokers, s.ServedDatabase)
		}
	}
	return brokers
}

// refresh reads what the databases report of themselves, unless that is young enough. One that cannot be read stays what it was.
func (d *Directory) refresh(ctx context.Context) {
	for ctx.Err() == nil {
		d.mu.Lock()
		reading := d.reading
		isYoung := time.Since(d.readAt) < memoryTime
		if !isYoung && reading == nil {
			d.reading = make(chan struct{})
		}
		d.mu.Unlock()
		switch {
		case isYoung:
			return
		case reading == nil:
			d.read(ctx)
			return
		}
		// Another call refreshes it.
		select {
		case <-reading:
		case <-ctx.Done():
		}
	}
}

// read asks all databases.
func (d *Directory) read(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	var asking sync.WaitGroup
	for _, s := range d.all() {
		asking.Go(func() {
			found, err := transportstore.ReadServedDatabase(within, s.inbox.DB())
			if err != nil {
				return
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			s.ServedDatabase, s.isKnown = found, true
		})
	}
	asking.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if ctx.Err() == nil {
		d.readAt = time.Now()
	}
	close(d.reading)
	d.reading = nil
}

// byBroker finds the database that is a broker instance.
func (d *Directory) byBroker(ctx context.Context, broker parley.UUID) *served {
	d.refresh(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.databases {
		if s.isKnown && s.Broker == broker {
			return s
		}
	}
	return nil
}

// byService finds a database that has a service and whose broker is enabled. Where several have it, a conversation always finds
// the same one, and conversations spread (spec 6.4).
func (d *Directory) byService(ctx context.Context, name string, conversation parley.UUID, besides *parley.UUID) (*served, error) {
	d.refresh(ctx)
	found, err := d.having(ctx, name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var best *served
	var score uint64
	for _, s := range found {
		if !s.IsEnabled || besides != nil && s.Broker == *besides {
			continue
		}
		h := fnv.New64a()
		_, _ = h.Write(s.Broker[:])
		_, _ = h.Write(conversation[:])
		if sum := h.Sum64(); best == nil || sum > score || sum == score && bytes.Compare(s.Broker[:], best.Broker[:]) > 0 {
			best, score = s, sum
		}
	}
	return best, nil
}

// having finds the databases that have a service.
func (d *Directory) having(ctx context.Context, name string) ([]*served, error) {
	d.mu.Lock()
	known, isKnown := d.services[name]
	d.mu.Unlock()
	if isKnown && time.Since(known.at) < memoryTime && (len(known.databases) > 0 || time.Since(known.at) < missTime) {
		return known.databases, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	databases := d.all()
	found := make([]*served, len(databases))
	failures := make([]error, len(databases))
	var asking sync.WaitGroup
	for i, s := range databases {
		asking.Go(func() {
			has, err := transportstore.HasService(ctx, s.inbox.DB(), name)
			if has {
				found[i] = s
			}
			failures[i] = err
		})
	}
	asking.Wait()
	found = slices.DeleteFunc(found, func(s *served) bool { return s == nil })
	if err := errors.Join(failures...); err != nil && len(found) == 0 {
		// It may have it that does not answer.
		return nil, fmt.Errorf("find the service %q: %w", name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.services) >= servicesMax {
		clear(d.services)
	}
	d.services[name] = service{at: time.Now(), databases: found}
	return found, nil
}

const brokerScheme = "broker:"

// Neighbour gives the way from one database of the daemon to another one, with the address broker:GUID.
func (d *Directory) Neighbour(from *inbox.Inbox, address string) (transmitter.Way, error) {
	text, isBroker := strings.CutPrefix(address, brokerScheme)
	broker, err := parley.ParseUUID(text)
	if !isBroker || err != nil {
		return transmitter.Way{}, fmt.Errorf("%q is no address of a neighbour: broker:GUID", address)
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	to := d.byBroker(ctx, broker)
	if to == nil {
		return transmitter.Way{}, fmt.Errorf("the broker instance %s is not served by this daemon, or its database cannot be reached", broker)
	}
	return transmitter.Way{Deliverer: to.inbox.Neighbour(d.keepers(from, to))}, nil
}

// keepers returns the roles that decide ownership in the first of two databases, or nothing when the two do not share their roles.
func (d *Directory) keepers(from *inbox.Inbox, to *served) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.databases {
		if s.inbox == from && s.isKnown && s.Server == to.Server {
			return s.Keepers
		}
	}
	return ""
}

// Locate finds the neighbours of a database to which its conversations with a LOCAL route belong (spec 6.4).
func (d *Directory) Locate(ctx context.Context, from *inbox.Inbox, unresolved []transportstore.Unresolved) ([]transmitter.Location, error) {
	d.refresh(ctx)
	own := d.brokerOf(from)
	locations := make([]transmitter.Location, len(unresolved))
	for i, u := range unresolved {
		switch {
		case u.ToBroker.IsZero():
			to, err := d.byService(ctx, u.ToService, u.ConversationID, own)
			switch {
			case err != nil:
				return nil, err
			case to == nil:
				locations[i].Status = fmt.Sprintf("The target service %q does not exist in this database nor in another one that its daemon "+
					"serves, and there is no route to it.", u.ToService)
			default:
				locations[i].Address = brokerScheme + to.Broker.String()
			}
		default:
			if to := d.byBroker(ctx, u.ToBroker); to != nil && (own == nil || to.Broker != *own) {
				locations[i].Address = brokerScheme + to.Broker.String()
			} else {
				locations[i].Status = fmt.Sprintf(
					"The broker instance %s is not one that the daemon of this database serves, and there is no route to it.", u.ToBroker)
			}
		}
	}
	return locations, nil
}

func (d *Directory) brokerOf(from *inbox.Inbox) *parley.UUID {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.databases {
		if s.inbox == from && s.isKnown {
			return &s.Broker
		}
	}
	return nil
}
