package tcp

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// discard is an intake that stores nothing.
type discard struct{}

func (discard) Await(context.Context) error                              { return nil }
func (discard) Throttled() bool                                          { return false }
func (discard) Known(context.Context, []string) (map[string]bool, error) { return nil, nil }

func (discard) Taken(context.Context) ([]adapter.Entry, error) { return nil, nil }
func (discard) Removed(context.Context, []string) error        { return nil }
func (discard) Take(_ context.Context, in []adapter.Input) ([]adapter.Result, error) {
	return make([]adapter.Result, len(in)), nil
}

func (discard) Responds() bool { return false }
func (discard) Request(context.Context, adapter.Input, <-chan struct{}) (adapter.Reply, error) {
	return adapter.Reply{}, nil
}

func (d discard) TakeIn(ctx context.Context, _ adapter.Transaction, in []adapter.Input) ([]adapter.Result, error) {
	return d.Take(ctx, in)
}

const small = 188

// One connection, 200 messages of 188 bytes in flight, an intake that does nothing.
func BenchmarkReceive(b *testing.B) {
	address, _ := serve(b, discard{}, `{}`, nil)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	frame := append(appendRequest(nil, 4, request{id: 1}, small), strings.Repeat("x", small)...)
	answers := make(chan error, 1)
	slots := make(chan struct{}, 200)
	count := b.N
	b.ResetTimer()
	go func() {
		in := bufio.NewReaderSize(conn, 64<<10)
		for range count {
			if _, err := io.CopyN(io.Discard, in, 4+answerHeader); err != nil {
				answers <- err
				return
			}
			<-slots
		}
		answers <- nil
	}()
	out := bufio.NewWriterSize(conn, 64<<10)
	for range count {
		select {
		case slots <- struct{}{}:
		default:
			if err := out.Flush(); err != nil {
				b.Fatal(err)
			}
			slots <- struct{}{}
		}
		if _, err := out.Write(frame); err != nil {
			b.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := <-answers; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "messages/s")
}

// The same from a port, in batches of 100.
func BenchmarkSend(b *testing.B) {
	address, _ := serve(b, discard{}, `{}`, nil)
	p := port(b, address, `{}`, nil)
	batch := messages(1, 100)
	for _, m := range batch {
		*m = *message(m.ID, strings.Repeat("x", small))
	}
	count := 0
	for b.Loop() {
		for _, d := range p.Send(b.Context(), batch) {
			if d.Err != nil {
				b.Fatal(d.Err)
			}
		}
		count += len(batch)
	}
	b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "messages/s")
}
