package send_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-broker/parley/internal/mail/send"
)

// timed is a carrier whose ways say when they are opened and closed, since the test began.
type timed struct {
	road
	began          time.Time
	times          sync.Mutex
	opened, closed []time.Duration
}

type timedWay struct {
	roadWay
	timed *timed
}

func (c *timed) Connect(context.Context, send.Hop) (send.Way, error) {
	c.times.Lock()
	defer c.times.Unlock()
	c.opened = append(c.opened, time.Since(c.began))
	return &timedWay{roadWay: roadWay{road: &c.road}, timed: c}, nil
}

func (w *timedWay) Close() {
	w.timed.times.Lock()
	defer w.timed.times.Unlock()
	w.timed.closed = append(w.timed.closed, time.Since(w.timed.began))
}

// dispatched runs a dispatcher in the bubble of a test for as long as something takes, and stops it.
func dispatched(t *testing.T, config send.Config, meanwhile func()) (stopped time.Duration) {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	d, err := send.NewDispatcher(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = d.Run(ctx) })
	meanwhile()
	began := time.Now()
	cancel()
	running.Wait()
	return time.Since(began)
}

// A connection carries 20 messages and is kept for 5 seconds without work, unless the connector says otherwise.
func TestConnectionCarriesTwentyMessagesAndIsKeptForFiveSeconds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limits   send.Limits
		messages int
		opened   int
		kept     time.Duration // of the last; 0 where it is full
	}{
		{messages: 19, opened: 1, kept: 5 * time.Second},
		{messages: 20, opened: 1},
		{messages: 21, opened: 2, kept: 5 * time.Second},
		{limits: send.Limits{MessagesEach: 3, Idle: time.Minute}, messages: 7, opened: 3, kept: time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			q, carrier := newQueue(), &timed{road: road{limits: c.limits}, began: time.Now()}
			q.put(hopTo("internet", "b.example"), slices.Repeat([]string{"1"}, c.messages)...)
			dispatched(t, send.Config{Store: q, Carriers: map[string]send.Carrier{"DNS": carrier}}, func() { pass(t, time.Hour) })
			if len(carrier.opened) != c.opened || len(carrier.closed) != c.opened || carrier.closed[c.opened-1] != c.kept {
				t.Errorf("%d messages, %+v: opened %v, closed %v, want %d and %v", c.messages, c.limits, carrier.opened, carrier.closed, c.opened, c.kept)
			}
		})
	}
}

// asked is a store that says when it was asked for messages, and refuses what a test says.
type asked struct {
	*queue
	began    time.Time
	mu       sync.Mutex
	claims   []time.Duration
	each     int
	leases   time.Duration
	records  []time.Duration
	refusal  error
	takes    time.Duration      // each recording
	renewing chan time.Duration // how long a renewal may take
}

func (a *asked) Claim(ctx context.Context, hops, each int, lease time.Duration, passedBy []string) ([]send.Batch, error) {
	a.mu.Lock()
	a.claims, a.each, a.leases = append(a.claims, time.Since(a.began)), each, lease
	a.mu.Unlock()
	return a.queue.Claim(ctx, hops, each, lease, passedBy)
}

func (a *asked) Renew(ctx context.Context, _ []int64, _ time.Duration) (renewed, gone []int64, err error) {
	began := time.Now()
	<-ctx.Done()
	select {
	case a.renewing <- time.Since(began):
	default:
	}
	return nil, nil, ctx.Err()
}

func (a *asked) Record(ctx context.Context, outcomes []send.Outcome, hops []send.HopReport) (int, error) {
	a.mu.Lock()
	a.records = append(a.records, time.Since(a.began))
	a.mu.Unlock()
	select {
	case <-time.After(a.takes):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if a.refusal != nil {
		return 0, a.refusal
	}
	return a.queue.Record(ctx, outcomes, hops)
}

// While nothing waits the database is asked once a second, and while a claim has given something at once, but no more often than a hundred
// times a second; what waits is announced.
func TestDatabaseIsAskedOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, wake := &asked{queue: newQueue(), began: time.Now()}, make(chan struct{})
		dispatched(t, send.Config{Store: a, Carriers: map[string]send.Carrier{"DNS": &road{}}, Wake: wake}, func() {
			pass(t, 3500*time.Millisecond)
			wake <- struct{}{}
			pass(t, 400*time.Millisecond)
		})
		want := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 3500 * time.Millisecond}
		if !slices.Equal(a.claims, want) || a.each != 20 || a.leases != 30*time.Second {
			t.Errorf("asked at %v for %d messages of a hop under a lease of %v", a.claims, a.each, a.leases)
		}
	})
}

// A record that fails is tried again at least twice a second, as leases run out meanwhile; and for ten seconds when the daemon stops.
func TestOutcomesThatCannotBeRecordedAreTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &asked{queue: newQueue(), began: time.Now(), refusal: errors.New("the database is away")}
		a.put(hopTo("internet", "b.example"), "1")
		took := dispatched(t, send.Config{Store: a, Carriers: map[string]send.Carrier{"DNS": &road{}}}, func() { pass(t, time.Minute) })
		if took != 10*time.Second {
			t.Errorf("a daemon that stops tries for %v", took)
		}
		longest := time.Duration(0)
		for i := range a.records[1:] {
			longest = max(longest, a.records[i+1]-a.records[i])
		}
		if longest > 500*time.Millisecond || len(a.records) < 120 || len(a.records) > 1000 {
			t.Errorf("tried %d times in 70 seconds, at the longest with %v in between", len(a.records), longest)
		}
	})
}

// An outcome that is being recorded when the daemon stops is recorded: the host has the message, which would be sent once more.
func TestOutcomeThatIsBeingRecordedWhenTheDaemonStopsIsRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &asked{queue: newQueue(), began: time.Now(), takes: 2 * time.Second}
		a.put(hopTo("internet", "b.example"), "1", "2")
		took := dispatched(t, send.Config{Store: a, Carriers: map[string]send.Carrier{"DNS": &road{}}}, func() { pass(t, time.Second) })
		if len(a.outcomes) != 2 || took > 5*time.Second {
			t.Errorf("%d of 2 outcomes were recorded in %v", len(a.outcomes), took)
		}
	})
}

// A renewal that hangs is given up after a third of the lease, so that others are tried while it lasts; the question whether a message may end,
// after five seconds.
func TestRenewalThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &asked{queue: newQueue(), began: time.Now(), renewing: make(chan time.Duration, 100)}
		s := &slow{takes: 5 * time.Minute}
		a.put(hopTo("internet", "b.example"), "1")
		dispatched(t, send.Config{Store: a, Carriers: map[string]send.Carrier{"DNS": s}, Lease: time.Minute}, func() { pass(t, time.Hour) })
		close(a.renewing)
		var bounds []time.Duration
		for bound := range a.renewing {
			if !slices.Contains(bounds, bound) {
				bounds = append(bounds, bound)
			}
		}
		if !slices.Equal(bounds, []time.Duration{20 * time.Second, 5 * time.Second}) || len(s.ends) != 1 || s.ends[0] == nil {
			t.Errorf("renewals were given up after %v, and the message ended with %v", bounds, s.ends)
		}
	})
}
