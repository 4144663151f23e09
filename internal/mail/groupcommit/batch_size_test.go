package groupcommit_test

import (
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/groupcommit"
	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/spool"
	"github.com/parley-broker/parley/parleytest"
)

// A batch that is full by its bytes goes at once, and takes no more.
func TestBatchIsBoundedByItsBytes(t *testing.T) {
	t.Parallel()
	s := newStore()
	c := groupcommit.New(s.batch, groupcommit.Options{Most: 100, Bytes: 3000, Wait: time.Hour, Concurrent: 1})
	bodies := spool.New(t.TempDir(), 10_000, 1_000_000)
	var wait sync.WaitGroup
	accept := func() {
		body := bodies.Open()
		if _, err := body.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			defer func() { _ = body.Close() }()
			if _, err := c.Accept(message.Envelope{Sender: "1"}, body); err != nil {
				t.Error(err)
			}
		})
	}
	accept()
	if n := <-s.entered; n != 1 {
		t.Fatalf("the first batch has %d messages", n)
	}
	for range 5 {
		accept()
	}
	until(t, c, 6)
	s.release <- struct{}{}
	if n := parleytest.Receive(t, s.entered, "a batch that is full by its bytes"); n != 3 {
		t.Errorf("a batch of 3,000 bytes has %d messages of 1,000", n)
	}
	for range 2 {
		s.release <- struct{}{}
	}
	wait.Wait()
	c.Close()
}
