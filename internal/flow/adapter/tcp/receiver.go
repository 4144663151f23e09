package tcp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/flow/adapter"
)

// receiver takes in what clients send on connections.
type receiver struct {
	endpoint     adapter.Endpoint
	settings     receiveSettings
	certificates certificates
	budget       *budget
	opened       func(net.Addr) // of tests, which have no port of their own

	failed atomic.Int64 // when it was reported last that nothing could be stored, nanoseconds since 1970
}

func newReceiver(e adapter.Endpoint) (adapter.Receiver, error) {
	r := &receiver{endpoint: e, settings: receiveDefaults(), certificates: certificates{endpoint: e}, opened: func(net.Addr) {}}
	if err := checkEndpoint(adapter.Receive, e, &r.settings); err != nil {
		return nil, err
	}
	r.budget = newBudget(largest + requestHeader + 2 + longestKey)
	return r, e.Permission.CheckListen(e.Address)
}

// grace is how long what was read is still stored and acknowledged when a location stops.
const grace = 5 * time.Second

// Run listens until ctx ends. Requests that were read by then are stored and answered.
func (r *receiver) Run(ctx context.Context, in adapter.Intake) error {
	if r.settings.TLS {
		if _, err := r.config(ctx); err != nil {
			return err
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", r.endpoint.Address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	r.opened(listener.Addr())

	storing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, stop) })()
	lanes := make([]chan delivery, r.settings.Lanes)
	var takers, connections sync.WaitGroup
	for n := range lanes {
		lanes[n] = make(chan delivery, r.settings.BatchCount)
		takers.Go(func() { r.takeAll(storing, in, lanes[n]) })
	}
	err = r.accept(ctx, listener, func(conn net.Conn, n int) {
		connections.Go(func() { r.serve(ctx, storing, in, conn, lanes[n%len(lanes)]) })
	})
	connections.Wait()
	for _, lane := range lanes {
		close(lane)
	}
	takers.Wait()
	return err
}

// accept accepts connections until ctx ends, up to as many at once as a setting says.
func (r *receiver) accept(ctx context.Context, listener net.Listener, serve func(conn net.Conn, n int)) error {
	free := make(chan struct{}, r.settings.MaxConnections)
	failures := 0
	for n := 0; ; n++ {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept a connection: %w", err)
		case err != nil: // such as too many open files
			failures++
			r.endpoint.Logger.Warn("a connection cannot be accepted", slog.Any("error", err))
			if backoff.Wait(ctx, backoff.Statement.Pause(failures)) != nil {
				return nil //nolint:nilerr // the location ends
			}
			continue
		}
		failures = 0
		select {
		case free <- struct{}{}:
			serve(&counted{Conn: conn, free: free}, n)
		default:
			r.turnAway(conn)
		}
	}
}

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	free chan struct{}
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { <-c.free })
	return c.Conn.Close()
}

// turnAway closes a connection that is one too many; a client of the protocol is told why.
func (r *receiver) turnAway(conn net.Conn) {
	if r.settings.Framing == framingLength && !r.settings.TLS {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = conn.Write(appendAnswer(nil, r.settings.PrefixBytes, answer{status: notTaken, why: "there are too many connections"}))
	}
	_ = conn.Close()
	r.endpoint.Logger.Warn("a connection is turned away, since there are as many as may be",
		slog.Int("connections", r.settings.MaxConnections))
}

// config gives the configuration of TLS.
func (r *receiver) config(ctx context.Context) (*tls.Config, error) {
	return r.certificates.of(ctx, func(own []tls.Certificate, authorities *x509.CertPool) *tls.Config {
		c := &tls.Config{Certificates: own, MinVersion: tls.VersionTLS12}
		if r.settings.ClientCertificates {
			c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, authorities
		}
		return c
	})
}

// delivery is a request on its way to the intake.
type delivery struct {
	request
	from *connection
	size int64 // of the budget
}

// takeAll takes what comes in a lane, as much at once as is there, until the lane is closed.
func (r *receiver) takeAll(ctx context.Context, in adapter.Intake, lane <-chan delivery) {
	var batch []delivery
	for first := range lane {
		batch = append(batch[:0], first)
		size := first.size
	more:
		for len(batch) < r.settings.BatchCount && size < r.settings.BatchBytes {
			select {
			case next, is := <-lane:
				if !is {
					break more
				}
				batch = append(batch, next)
				size += next.size
			default:
				break more
			}
		}
		r.take(ctx, in, batch)
		clear(batch)
	}
}

// take stores a batch, and answers. Messages that have no answer are tried until they are stored: their clients
// do not send them again.
func (r *receiver) take(ctx context.Context, in adapter.Intake, batch []delivery) {
	inputs := make([]adapter.Input, len(batch))
	for n, d := range batch {
		inputs[n] = adapter.Input{Key: d.from.ledgerKey(d.key), Body: d.body, Size: int64(len(d.body))}
	}
	results, err := in.Take(ctx, inputs)
	for failures := 1; err != nil; failures++ {
		r.report(err)
		if r.settings.Framing == framingLength || backoff.Wait(ctx, backoff.Statement.Pause(failures)) != nil {
			break
		}
		results, err = in.Take(ctx, inputs)
	}
	for n, d := range batch {
		a := answer{id: d.id, status: notTaken, why: "the message could not be stored; send it again later"}
		if err == nil {
			a = answerOf(d.id, results[n])
		}
		d.from.answer(a, n+1 < len(batch) && batch[n+1].from == d.from)
		r.budget.giveBack(d.size)
	}
}

// answerOf gives the answer to a request that was taken.
func answerOf(id uint64, result adapter.Result) answer {
	a := answer{id: id, message: result.Message}
	switch result.Outcome {
	case adapter.Repeated:
		a.status = repeated
	case adapter.Suspended:
		a.status = suspended
		if result.Failure != nil {
			a.why = result.Failure.Error()
		}
	default:
		a.status = published
	}
	return a
}

// reportInterval is how often it is reported that nothing can be stored.
const reportInterval = 10 * time.Second

func (r *receiver) report(err error) {
	before, now := r.failed.Load(), time.Now().UnixNano()
	if now-before >= int64(reportInterval) && r.failed.CompareAndSwap(before, now) {
		r.endpoint.Logger.Warn("messages could not be stored", slog.Any("error", err))
	}
}
