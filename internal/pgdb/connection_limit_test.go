package pgdb

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"
)

func TestAttemptsToConnectAreAtMostTenInAnySecondWhileNoneSucceeds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := NewConnectionLimit()
		now := time.Unix(1_000_000, 0)
		var begun []time.Time
		for _, step := range rapid.SliceOfN(rapid.IntRange(0, 700), 50, 400).Draw(t, "milliseconds between requests") {
			now = now.Add(time.Duration(step) * time.Millisecond)
			if pause, _ := l.begin(now); pause <= 0 {
				begun = append(begun, now)
			} else if pause > attemptInterval {
				t.Fatalf("an attempt has to wait %v", pause)
			}
		}
		for i := range begun {
			within := 0
			for _, later := range begun[i:] {
				if later.Sub(begun[i]) < time.Second {
					within++
				}
			}
			if within > 10 {
				t.Fatalf("%d attempts within a second", within)
			}
		}
	})
}

func TestAnEstablishedConnectionLiftsTheLimitForThoseThatWait(t *testing.T) {
	t.Parallel()
	l := NewConnectionLimit()
	for range attemptsAtOnce {
		if err := l.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var waiting sync.WaitGroup
	began := time.Now()
	for range 3 * attemptsAtOnce {
		waiting.Go(func() {
			if err := l.wait(t.Context()); err != nil {
				t.Error(err)
			}
			l.lift()
		})
	}
	l.lift()
	waiting.Wait()
	if took := time.Since(began); took > 3*attemptsAtOnce*attemptInterval/2 {
		t.Errorf("they waited %v though connections succeed", took)
	}
}

func TestAnAttemptThatWaitsEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l := NewConnectionLimit()
	for range attemptsAtOnce {
		_ = l.wait(t.Context())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

func TestTheLimitCountsEachAddressOfAConnection(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig("postgres://nobody@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/none?sslmode=prefer")
	if err != nil {
		t.Fatal(err)
	}
	var dials atomic.Int32
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		return nil, errors.New("refused")
	}
	NewConnectionLimit().Apply(config)
	ctx, cancel := context.WithTimeout(t.Context(), attemptInterval/2)
	defer cancel()
	for ctx.Err() == nil {
		_, _ = pgx.ConnectConfig(ctx, config.Copy())
	}
	if n := dials.Load(); n != attemptsAtOnce {
		t.Errorf("%d addresses were dialled", n)
	}
}
