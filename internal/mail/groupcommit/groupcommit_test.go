package groupcommit_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/groupcommit"
	"github.com/parley-broker/parley/internal/mail/message"
)

var errMessage = errors.New("a message is refused")

// store records batches, and holds them until it is released.
type store struct {
	mu      sync.Mutex
	batches [][]string
	entered chan int
	release chan struct{}
}

func newStore() *store {
	return &store{entered: make(chan int, 1000), release: make(chan struct{}, 1000)}
}

func (s *store) batch(_ context.Context, arrivals []groupcommit.Arrival) (ids []int64, err error) {
	s.entered <- len(arrivals)
	<-s.release
	var senders []string
	for _, arrival := range arrivals {
		number, parseErr := strconv.ParseInt(arrival.Envelope.Sender, 10, 64)
		if parseErr != nil {
			err = errMessage
		}
		senders, ids = append(senders, arrival.Envelope.Sender), append(ids, number)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, senders)
	return ids, err
}

// send accepts messages, each in a goroutine of its own, and checks the outcome of each.
func send(t *testing.T, c *groupcommit.Committer, wait *sync.WaitGroup, senders ...string) {
	t.Helper()
	for _, sender := range senders {
		wait.Go(func() {
			id, err := c.Accept(message.Envelope{Sender: sender}, nil)
			want, parseErr := strconv.ParseInt(sender, 10, 64)
			switch {
			case parseErr != nil && !errors.Is(err, errMessage):
				t.Errorf("message %q: %v", sender, err)
			case parseErr == nil && (err != nil || id != want):
				t.Errorf("message %q got %d, %v", sender, id, err)
			}
		})
	}
}

func until(t *testing.T, c *groupcommit.Committer, waiting int) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for c.Waiting() != waiting {
		if time.Now().After(deadline) {
			t.Fatalf("%d messages wait, want %d", c.Waiting(), waiting)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // nothing announces it
	}
}

func numbers(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

func TestMessageGoesAtOnceWhenIdleAndOthersWaitForEachOther(t *testing.T) {
	t.Parallel()
	s := newStore()
	c := groupcommit.New(s.batch, groupcommit.Options{Most: 10, Wait: time.Hour})
	var wait sync.WaitGroup
	send(t, c, &wait, "0")
	if n := <-s.entered; n != 1 {
		t.Fatalf("the first batch has %d messages", n)
	}
	send(t, c, &wait, numbers(1, 10)...)
	until(t, c, 1+9)
	select {
	case n := <-s.entered:
		t.Fatalf("a batch of %d went before it was full", n)
	default:
	}
	send(t, c, &wait, "10")
	if n := <-s.entered; n != 10 {
		t.Fatalf("the full batch has %d messages", n)
	}
	send(t, c, &wait, numbers(11, 14)...)
	until(t, c, 1+10+3)
	s.release <- struct{}{}
	s.release <- struct{}{}
	if n := <-s.entered; n != 3 {
		t.Fatalf("with nothing under way %d messages went", n)
	}
	s.release <- struct{}{}
	wait.Wait()
	c.Close()
}

func TestMessageWaitsNoLongerThanItsTime(t *testing.T) {
	t.Parallel()
	s := newStore()
	c := groupcommit.New(s.batch, groupcommit.Options{Wait: 10 * time.Millisecond})
	var wait sync.WaitGroup
	send(t, c, &wait, "0")
	<-s.entered
	send(t, c, &wait, "1")
	if n := <-s.entered; n != 1 { // the first batch is under way still
		t.Fatalf("%d messages went", n)
	}
	s.release <- struct{}{}
	s.release <- struct{}{}
	wait.Wait()
	c.Close()
}

func TestBatchesAreWrittenSideBySide(t *testing.T) {
	t.Parallel()
	s := newStore()
	c := groupcommit.New(s.batch, groupcommit.Options{Most: 1, Wait: time.Hour})
	var wait sync.WaitGroup
	send(t, c, &wait, numbers(0, groupcommit.Writers()+1)...)
	until(t, c, groupcommit.Writers()+1)
	if n := groupcommit.Writers(); n != max(runtime.NumCPU()/2, 4) {
		t.Errorf("%d batches are written at a time", n)
	}
	for range groupcommit.Writers() {
		<-s.entered
	}
	select {
	case <-s.entered:
		t.Error("more batches are under way than there are writers")
	default:
	}
	for range groupcommit.Writers() + 1 {
		s.release <- struct{}{}
	}
	wait.Wait()
	c.Close()
}

func TestMessageThatFailsDoesNotFailOthers(t *testing.T) {
	t.Parallel()
	s := newStore()
	c := groupcommit.New(s.batch, groupcommit.Options{Most: 3, Wait: time.Hour, Concurrent: 1, IsAlone: func(err error) bool { return errors.Is(err, errMessage) }})
	var wait sync.WaitGroup
	send(t, c, &wait, "0")
	<-s.entered
	send(t, c, &wait, "1", "bad", "2")
	until(t, c, 1+3)
	for range 5 {
		s.release <- struct{}{}
	}
	wait.Wait()
	c.Close()
	if sizes := sizes(s.batches); !slices.Equal(sizes, []int{1, 3, 1, 1, 1}) {
		t.Errorf("the batches were %v", s.batches)
	}
}

func TestCloseWaitsForWhatHasComeAndRefusesTheRest(t *testing.T) {
	t.Parallel()
	s := newStore()
	c := groupcommit.New(s.batch, groupcommit.Options{Concurrent: 1, Wait: time.Hour})
	var wait sync.WaitGroup
	send(t, c, &wait, "0")
	<-s.entered
	send(t, c, &wait, "1", "2")
	until(t, c, 1+2)
	s.release <- struct{}{}
	s.release <- struct{}{}
	c.Close()
	wait.Wait()
	if _, err := c.Accept(message.Envelope{}, nil); !errors.Is(err, groupcommit.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestStoreThatPanicsOrCountsWronglyIsAnError(t *testing.T) {
	t.Parallel()
	for name, batch := range map[string]groupcommit.Batch{
		"panic": func(context.Context, []groupcommit.Arrival) ([]int64, error) { panic("bad") },
		"count": func(context.Context, []groupcommit.Arrival) ([]int64, error) { return nil, nil },
	} {
		c := groupcommit.New(batch, groupcommit.Options{})
		if _, err := c.Accept(message.Envelope{}, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
		c.Close()
	}
}

func sizes(batches [][]string) (all []int) {
	for _, batch := range batches {
		all = append(all, len(batch))
	}
	return all
}
