package daemon

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

var errFailed = errors.New("it failed")

// scripted is a part that records what is done with it.
type scripted struct {
	name     string
	record   *[]string // written by Prepare and Close alone, which are called one after the other
	prepared error
	run      func(ctx context.Context) error
}

func (p scripted) Prepare(context.Context) error {
	*p.record = append(*p.record, "prepare "+p.name)
	return p.prepared
}

func (p scripted) Run(ctx context.Context) error { return p.run(ctx) }

func (p scripted) Close() { *p.record = append(*p.record, "close "+p.name) }

func TestPartsArePreparedInOrderAndClosedInTheOppositeOne(t *testing.T) {
	t.Parallel()
	untilEnd := func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}
	for _, test := range []struct {
		name        string
		second      error // of its Prepare
		third       func(ctx context.Context) error
		want        error
		wantRecords string
	}{
		{
			"one cannot be prepared", errFailed, untilEnd, errFailed,
			"prepare first, prepare second, close second, close first",
		},
		{
			"one fails, which ends the others", nil, func(context.Context) error { return errFailed }, errFailed,
			"prepare first, prepare second, prepare third, ready, close third, close second, close first",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var records []string
			err := Run(t.Context(), []Part{
				scripted{name: "first", record: &records, run: untilEnd},
				scripted{name: "second", record: &records, run: untilEnd, prepared: test.second},
				scripted{name: "third", record: &records, run: test.third},
			}, func() { records = append(records, "ready") })
			if !errors.Is(err, test.want) {
				t.Errorf("it returns %v, want %v", err, test.want)
			}
			if got := strings.Join(records, ", "); got != test.wantRecords {
				t.Errorf("done: %s\nwant: %s", got, test.wantRecords)
			}
		})
	}
}

func TestAPartThatHasNothingToDoEndsNoOther(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var records []string
	working := scripted{name: "working", record: &records, run: func(ctx context.Context) error {
		stop()
		<-ctx.Done()
		return ctx.Err()
	}}
	err := Run(ctx, []Part{Simple{}, working}, func() {})
	if !errors.Is(err, context.Canceled) || !slices.Equal(records, []string{"prepare working", "close working"}) {
		t.Errorf("it returns %v after %v", err, records)
	}
}
