package endpoint

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/link"
	"github.com/parley-broker/parley/internal/broker/transport/router"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
)

// Network is the network side of an endpoint, with which it talks to other servers.
type Network struct {
	// Listener is where others connect; [Endpoint.Run] closes it.
	Listener net.Listener
	// Link reports how to speak with others: who we are, and whom we trust.
	Link link.Config
}

// shutdownTime is how long peers may take to receive the answers to what they have sent when the daemon stops.
const shutdownTime = 2 * time.Second

// links are the ways to other servers, one for each address.
type links struct {
	config link.Config

	mu        sync.Mutex
	byAddress map[string]*link.Link
	isClosed  bool
}

// to gives the way to an address.
func (l *links) to(address string) (*link.Link, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.byAddress[address]; known != nil {
		return known, nil
	}
	if l.isClosed {
		return nil, transport.Fail(notConfigured, "the broker endpoint is closed")
	}
	made, err := link.New(address, l.config)
	if err != nil {
		return nil, err
	}
	l.byAddress[address] = made
	return made, nil
}

func (l *links) all() (all []*link.Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.byAddress {
		all = append(all, one)
	}
	return all
}

func (l *links) close() {
	l.mu.Lock()
	l.isClosed = true
	l.mu.Unlock()
	for _, one := range l.all() {
		one.Close()
	}
}

// complete adds to the settings of a link what the endpoint knows.
func (e *Endpoint) complete(config link.Config) link.Config {
	config.Brokers = func() (brokers []wire.Broker) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for _, one := range e.directory.Brokers(ctx) {
			brokers = append(brokers, wire.Broker{Instance: one.Broker, Epoch: one.Epoch})
		}
		return brokers
	}
	if config.Log == nil {
		config.Log = e.config.Logger
	}
	return config
}

// Run serves the network, if there is one, and reports to the databases until ctx ends.
func (e *Endpoint) Run(ctx context.Context) error {
	var reporting sync.WaitGroup
	defer reporting.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	reporting.Go(func() { e.report(ctx) })
	if e.config.Network == nil {
		<-ctx.Done()
		return nil
	}
	failed := make(chan error, 1)
	go func() {
		failed <- e.server.Serve(e.config.Network.Listener)
		close(failed)
	}()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	e.server.Shutdown(stopping)
	err = cmp.Or(err, <-failed)
	if err != nil {
		return fmt.Errorf("serve the broker endpoint: %w", err)
	}
	return nil
}

// Connections lists the connections with other servers.
func (e *Endpoint) Connections() (all []link.ConnectionState) {
	if e.config.Network == nil {
		return nil
	}
	all = e.server.Connections()
	for _, one := range e.links.all() {
		all = append(all, one.Connections()...)
	}
	return all
}

// Forwarded reports what was passed on for others.
func (e *Endpoint) Forwarded() router.ForwardStatistics {
	if e.forwarder == nil {
		return router.ForwardStatistics{}
	}
	return e.forwarder.Statistics()
}

// totals adds up what all connections have carried.
func (e *Endpoint) totals() (all link.Totals) {
	if e.config.Network == nil {
		return all
	}
	all = e.server.Totals()
	for _, one := range e.links.all() {
		t := one.Totals()
		all.TotalBytesSent += t.TotalBytesSent
		all.TotalBytesReceived += t.TotalBytesReceived
		all.TotalFragmentsSent += t.TotalFragmentsSent
		all.TotalFragmentsReceived += t.TotalFragmentsReceived
		all.TotalSends += t.TotalSends
		all.TotalReceives += t.TotalReceives
	}
	return all
}
