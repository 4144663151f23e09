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

// leased is a queue that says when leases were renewed, and does what a test has it do with them.
type leased struct {
	*queue
	mu       sync.Mutex
	renewals []time.Duration // since the claim
	claimed  time.Time
	// isGone is whether leases are over, and isAway whether the database cannot be asked.
	isGone, isAway bool
}

func (l *leased) Claim(ctx context.Context, hops, each int, lease time.Duration, passedBy []string) ([]send.Batch, error) {
	batches, err := l.queue.Claim(ctx, hops, each, lease, passedBy)
	if len(batches) > 0 {
		l.claimed = time.Now()
	}
	return batches, err
}

func (l *leased) Renew(_ context.Context, leases []int64, _ time.Duration) (renewed, gone []int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewals = append(l.renewals, time.Since(l.claimed))
	switch {
	case l.isAway:
		return nil, nil, errors.New("the database is away")
	case l.isGone:
		return nil, leases, nil
	}
	return leases, nil, nil
}

func (l *leased) set(isAway, isGone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isAway, l.isGone = isAway, isGone
}

// slow is a carrier whose hosts take a message in so much time and answer in so much more.
type slow struct {
	takes, answers time.Duration
	mu             sync.Mutex
	ends           []error // of each message that came to its end, why it must not end
	cancelled      int
}

func (s *slow) Limits(send.Hop) send.Limits { return send.Limits{MessagesEach: 100} }

func (s *slow) Connect(context.Context, send.Hop) (send.Way, error) { return &slowWay{slow: s}, nil }

type slowWay struct {
	roadWay
	slow *slow
}

func (w *slowWay) Send(ctx context.Context, message send.Message) []send.Result {
	select {
	case <-time.After(w.slow.takes):
	case <-ctx.Done():
		w.slow.mu.Lock()
		w.slow.cancelled++
		w.slow.mu.Unlock()
		return []send.Result{{Text: "cancelled"}}
	}
	err := message.Confirm(ctx)
	w.slow.mu.Lock()
	w.slow.ends = append(w.slow.ends, err)
	w.slow.mu.Unlock()
	if err != nil {
		return []send.Result{{Text: err.Error()}}
	}
	select {
	case <-time.After(w.slow.answers):
		return []send.Result{{Class: send.Delivered}}
	case <-ctx.Done():
		return []send.Result{{Class: send.Unknown}}
	}
}
func (w *slowWay) Usable() bool    { return true }
func (w *slowWay) Messages() int   { return 1 }
func (w *slowWay) Ends() send.Ends { return send.Ends{} }
func (w *slowWay) Close()          {}

// pass lets time pass in the bubble of a test.
func pass(t *testing.T, duration time.Duration) {
	t.Helper()
	select {
	case <-time.After(duration):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// underLease sends messages over a carrier under a lease of a minute, has a test do something meanwhile, and gives what was recorded.
func underLease(t *testing.T, s *slow, messages int, meanwhile func(*leased)) (*leased, []send.Outcome) {
	t.Helper()
	l := &leased{queue: newQueue()}
	l.put(hopTo("internet", "b.example"), slices.Repeat([]string{"1"}, messages)...)
	d, err := send.NewDispatcher(send.Config{
		Store: l, Carriers: map[string]send.Carrier{"DNS": s}, Lease: time.Minute, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = d.Run(ctx) })
	meanwhile(l)
	pass(t, time.Hour)
	cancel()
	running.Wait()
	return l, l.outcomes
}

// A lease is renewed several times while it lasts, so that one renewal that fails ends none.
func TestALeaseIsRenewedSixTimesWhileItLasts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, outcomes := underLease(t, &slow{takes: 3 * time.Minute}, 1, func(*leased) {})
		before := time.Duration(0)
		for _, at := range append(l.renewals, 3*time.Minute) {
			if at-before > time.Minute/4 {
				t.Errorf("a lease of a minute was not renewed from %v to %v", before, at)
			}
			before = at
		}
		if n := len(l.renewals); n < 17 || n > 20 || len(outcomes) != 1 || outcomes[0].Results[0].Class != send.Delivered {
			t.Errorf("%d renewals in three minutes, recorded %+v", n, outcomes)
		}
	})
}

// A message that is sent under a lease that is over is cancelled, messages that wait behind it stay, and nothing of either is recorded:
// others have them.
func TestWhatIsSentUnderALeaseThatIsOverIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: 10 * time.Minute}
		_, outcomes := underLease(t, s, 3, func(l *leased) {
			pass(t, 30*time.Second)
			l.set(false, true)
			pass(t, 20*time.Second)
			if s.cancelled != 1 {
				t.Error("a message is sent under a lease that is over")
			}
		})
		if len(s.ends) > 0 || len(outcomes) > 0 {
			t.Errorf("ended %v, recorded %+v", s.ends, outcomes)
		}
	})
}

// The answer of a host that has the end of a message counts: it says whether the recipients have it. Messages behind it in the batch do not
// begin.
func TestAnAnswerIsAwaitedThoughTheLeaseIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: time.Second, answers: 5 * time.Minute}
		_, outcomes := underLease(t, s, 3, func(l *leased) {
			pass(t, 5*time.Second)
			l.set(false, true)
		})
		if len(s.ends) != 1 || len(outcomes) != 1 || outcomes[0].Results[0].Class != send.Delivered {
			t.Errorf("ended %v, recorded %+v", s.ends, outcomes)
		}
	})
}

// While the database is away a message ends as long as its lease holds for certain, and after that not before the database has said so.
func TestNoMessageEndsWhenItsLeaseMayBeOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes  time.Duration
		isGone bool // when the database is back
		back   time.Duration
		ends   bool
	}{
		"within the lease":             {takes: 50 * time.Second, back: time.Hour, ends: true},
		"a moment before its end":      {takes: 58 * time.Second, back: time.Hour},
		"beyond it":                    {takes: 2 * time.Minute, back: time.Hour},
		"the lease is there":           {takes: 2 * time.Minute, back: 90 * time.Second, ends: true},
		"the lease is over":            {takes: 2 * time.Minute, back: 119 * time.Second, isGone: true},
		"it is there at the very last": {takes: 119 * time.Second, back: 118900 * time.Millisecond, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &slow{takes: c.takes}
				underLease(t, s, 1, func(l *leased) {
					l.set(true, false)
					pass(t, c.back)
					l.set(false, c.isGone)
				})
				if ended := len(s.ends) == 1 && s.ends[0] == nil; ended != c.ends {
					t.Errorf("it ended: %v (%v), cancelled %d", ended, s.ends, s.cancelled)
				}
			})
		})
	}
}
