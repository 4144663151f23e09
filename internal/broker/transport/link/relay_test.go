package link

import (
	"context"
	"net"
	"sync"
	"testing"
)

// relay passes bytes between a link and a server, and can stop doing so.
type relay struct {
	listener net.Listener
	target   string
	// pass is asked before bytes go on: how many of n may; fewer than n cut the connection.
	pass func(isAnswer bool, n int) int

	mu      sync.Mutex
	conns   []net.Conn
	running sync.WaitGroup
	stalled [2]chan struct{} // questions, answers: closed when they go on
}

func newRelay(t *testing.T, target string, pass func(isAnswer bool, n int) int) *relay {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener, target: target, pass: pass}
	ctx, cancel := context.WithCancel(t.Context())
	r.running.Go(func() { r.accept(ctx) })
	t.Cleanup(func() {
		cancel()
		listener.Close()
		r.mu.Lock()
		for _, conn := range r.conns {
			conn.Close()
		}
		r.mu.Unlock()
		r.running.Wait()
	})
	return r
}

func (r *relay) address() string { return r.listener.Addr().String() }

func (r *relay) accept(ctx context.Context) {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		far, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.target)
		if err != nil {
			near.Close()
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, near, far)
		r.mu.Unlock()
		r.running.Go(func() { r.copy(ctx, near, far, false) })
		r.running.Go(func() { r.copy(ctx, far, near, true) })
	}
}

// stall lets nothing pass in one direction, without closing anything, for good.
func (r *relay) stall(isAnswer bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalled[direction(isAnswer)] = make(chan struct{})
}

func direction(isAnswer bool) int {
	if isAnswer {
		return 1
	}
	return 0
}

// cut closes all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.conns {
		conn.Close()
	}
}

func (r *relay) copy(ctx context.Context, from, to net.Conn, isAnswer bool) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		r.mu.Lock()
		stalled := r.stalled[direction(isAnswer)]
		r.mu.Unlock()
		if stalled != nil {
			select {
			case <-stalled:
			case <-ctx.Done():
				return
			}
		}
		allowed := n
		if r.pass != nil {
			allowed = r.pass(isAnswer, n)
		}
		if _, err := to.Write(buffer[:allowed]); err != nil || allowed < n {
			return
		}
	}
}
