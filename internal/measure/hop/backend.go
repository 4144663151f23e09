package hop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// BackEnd takes bodies, acknowledges them and forgets them.
type BackEnd struct {
	listener net.Listener
	frames   Frames
	taken    atomic.Int64
	handler  func(body []byte)
	mu       sync.Mutex
	open     map[net.Conn]bool
	serving  sync.WaitGroup
}

// Listen opens a back end on loopback. taken, if set, is given each body; it is called at the same time by several connections.
func Listen(ctx context.Context, frames Frames, taken func(body []byte)) (*BackEnd, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the back end: %w", err)
	}
	b := &BackEnd{listener: listener, frames: frames, handler: taken, open: make(map[net.Conn]bool)}
	b.serving.Go(b.accept)
	return b, nil
}

// Address gives host:port.
func (b *BackEnd) Address() string { return b.listener.Addr().String() }

// Taken gives how many bodies came.
func (b *BackEnd) Taken() int64 { return b.taken.Load() }

// Close ends all connections and waits for that.
func (b *BackEnd) Close() {
	_ = b.listener.Close()
	b.mu.Lock()
	for conn := range b.open {
		_ = conn.Close()
	}
	b.mu.Unlock()
	b.serving.Wait()
}

// Await waits until count bodies came. It gives up, with an error, when none came for so long.
func (b *BackEnd) Await(ctx context.Context, count int64, patience time.Duration) error {
	last, since := b.Taken(), time.Now()
	for b.Taken() < count {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
		if now := b.Taken(); now != last {
			last, since = now, time.Now()
		} else if time.Since(since) > patience {
			return fmt.Errorf("the back end has %d of %d messages, and no more came in %s", last, count, patience)
		}
	}
	return nil
}

func (b *BackEnd) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.mu.Lock()
		b.open[conn] = true
		b.mu.Unlock()
		b.serving.Go(func() {
			defer func() {
				b.mu.Lock()
				delete(b.open, conn)
				b.mu.Unlock()
				_ = conn.Close()
			}()
			b.serve(conn)
		})
	}
}

// serve answers all that came together in one write.
func (b *BackEnd) serve(conn net.Conn) {
	in, out := bufio.NewReaderSize(conn, 1<<16), bufio.NewWriterSize(conn, 1<<16)
	buffer := make([]byte, 1<<12)
	for {
		body, answer, err := b.frames.ReadBody(in, buffer)
		if err != nil {
			return
		}
		buffer = body[:cap(body)]
		if b.handler != nil {
			b.handler(body)
		}
		b.taken.Add(1)
		if _, err := out.Write(answer); err != nil {
			return
		}
		if in.Buffered() == 0 && errors.Join(out.Flush()) != nil {
			return
		}
	}
}
