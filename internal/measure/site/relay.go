package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// dialTimeout is how long a relay tries to reach where it leads.
const dialTimeout = 5 * time.Second

// Relay is a stretch of cable: what is sent to its address goes to another one, and back, until it is cut.
type Relay struct {
	to       string
	listener net.Listener
	working  sync.WaitGroup
	carried  atomic.Int64
	ctx      context.Context //nolint:containedctx // it ends with the relay, not with a call
	end      context.CancelFunc

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]struct{}
}

// NewRelay opens a relay on a free port of this machine that leads to an address. The caller must Close it.
func NewRelay(ctx context.Context, to string) (*Relay, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a relay: %w", err)
	}
	r := &Relay{to: to, listener: listener, open: map[net.Conn]struct{}{}}
	r.ctx, r.end = context.WithCancel(context.WithoutCancel(ctx))
	r.working.Go(r.accept)
	return r, nil
}

// Address is where it listens, as host:port.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Carried counts the bytes that passed, both ways.
func (r *Relay) Carried() int64 { return r.carried.Load() }

// Connections counts what goes through it now.
func (r *Relay) Connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open) / 2
}

// IsCut reports whether it is cut.
func (r *Relay) IsCut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isCut
}

// Cut breaks all connections, in the middle of whatever they carry, and every new one until Restore.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isCut = true
	for conn := range r.open {
		sever(conn)
	}
}

// Restore lets new connections through.
func (r *Relay) Restore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isCut = false
}

// Close ends the relay and waits until nothing of it runs.
func (r *Relay) Close() {
	r.Cut()
	r.end()
	_ = r.listener.Close()
	r.working.Wait()
}

// sever ends a connection without a farewell: what was not yet delivered is lost, as it is when a cable breaks.
func sever(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func (r *Relay) accept() {
	for {
		conn, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the peer has gone again
		}
		r.working.Go(func() { r.carry(conn) })
	}
}

// carry joins a connection to one that leads on.
func (r *Relay) carry(near net.Conn) {
	if !r.join(near) {
		return
	}
	defer r.leave(near)
	ctx, cancel := context.WithTimeout(r.ctx, dialTimeout)
	defer cancel()
	far, err := new(net.Dialer).DialContext(ctx, "tcp", r.to)
	if err != nil || !r.join(far) {
		return
	}
	defer r.leave(far)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			r.copy(way[1], way[0])
			// An end that stops sending is reported to the other one, which may still answer.
			if tcp, ok := way[1].(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
		})
	}
	both.Wait()
}

// join records a connection, so that a cut finds it; a connection that comes while the relay is cut is broken.
func (r *Relay) join(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isCut {
		sever(conn)
		return false
	}
	r.open[conn] = struct{}{}
	return true
}

func (r *Relay) leave(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, conn)
	_ = conn.Close()
}

func (r *Relay) copy(to io.Writer, from io.Reader) {
	_, _ = io.Copy(to, io.TeeReader(from, counter{&r.carried}))
}

// counter counts what is written to it.
type counter struct{ bytes *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}
