package groupcommit_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-broker/parley/internal/mail/groupcommit"
	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/spool"
)

// Unless others are set: 40 messages or 8 MB make a batch, what is fewer waits for 100 ms while another batch is under way, and a batch may
// take a minute.
func TestBatchesThatAreMadeUnlessOthersAreSet(t *testing.T) {
	t.Parallel()
	bodies := spool.New(t.TempDir(), 10<<20, 100<<20)
	for _, c := range []struct {
		messages, bytes int
		waits           time.Duration
		want            int
	}{
		{messages: 1, waits: 100 * time.Millisecond, want: 1},
		{messages: 39, waits: 100 * time.Millisecond, want: 39},
		{messages: 40, want: 40},
		{messages: 41, want: 40},
		{messages: 1, bytes: 8<<20 - 1, waits: 100 * time.Millisecond, want: 1},
		{messages: 1, bytes: 8 << 20, want: 1},
		{messages: 2, bytes: 8<<20 - 1, want: 2},
		{messages: 2, bytes: 8 << 20, want: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, limits := newStore(), make(chan time.Duration, 100)
			committer := groupcommit.New(func(ctx context.Context, arrivals []groupcommit.Arrival) ([]int64, error) {
				deadline, _ := ctx.Deadline()
				limits <- time.Until(deadline)
				return s.batch(ctx, arrivals)
			}, groupcommit.Options{})
			var wait sync.WaitGroup
			accept := func() {
				body := bodies.Open()
				if _, err := body.Write(make([]byte, c.bytes)); err != nil {
					t.Fatal(err)
				}
				wait.Go(func() {
					defer func() { _ = body.Close() }()
					if _, err := committer.Accept(message.Envelope{Sender: "1"}, body); err != nil {
						t.Error(err)
					}
				})
			}
			accept()
			<-s.entered
			began := time.Now()
			for range c.messages {
				accept()
			}
			got := <-s.entered
			if waited := time.Since(began); got != c.want || waited != c.waits {
				t.Errorf("%d messages of %d bytes: %d went after %v, want %d after %v", c.messages, c.bytes, got, waited, c.want, c.waits)
			}
			synctest.Wait()
			if limit := <-limits; limit != time.Minute {
				t.Errorf("a batch may take %v", limit)
			}
			if bytes := committer.WaitingBytes(); bytes != int64((c.messages+1)*c.bytes) || committer.Waiting() < c.want+1 {
				t.Errorf("%d messages of %d bytes wait, with %d bytes", committer.Waiting(), c.bytes, bytes)
			}
			for range c.messages + 1 {
				s.release <- struct{}{}
			}
			wait.Wait()
			committer.Close()
			if committer.WaitingBytes() != 0 || committer.Waiting() != 0 {
				t.Errorf("%d messages with %d bytes wait behind the last", committer.Waiting(), committer.WaitingBytes())
			}
		})
	}
}

// While a batch is under way each message waits its own time, the second as the first; what waits when the committer is closed goes at once.
func TestEachMessageWaitsItsOwnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		c := groupcommit.New(s.batch, groupcommit.Options{Wait: time.Second, Concurrent: 4})
		var wait sync.WaitGroup
		send(t, c, &wait, "0")
		<-s.entered
		for range 2 {
			began := time.Now()
			send(t, c, &wait, "1")
			if n, waited := <-s.entered, time.Since(began); n != 1 || waited != time.Second {
				t.Errorf("a batch of %d went after %v", n, waited)
			}
		}
		send(t, c, &wait, "2", "3")
		synctest.Wait()
		began := time.Now()
		go c.Close()
		if n, waited := <-s.entered, time.Since(began); n != 2 || waited != 0 {
			t.Errorf("when it closes, a batch of %d goes after %v", n, waited)
		}
		for range 4 {
			s.release <- struct{}{}
		}
		wait.Wait()
	})
}
