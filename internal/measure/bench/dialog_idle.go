package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/statistics"
)

const (
	// idleReaders is how many wait at once, and idleSettle how long before that is measured, or ten times as long as it is measured: a
	// reader wakes the more seldom the longer nothing has come.
	idleReaders = 10
	idleSettle  = 6 * time.Second
)

// idleTrials measure what a reader costs that waits in RECEIVE for what does not come.
func idleTrials(b *bench, variant string) []trial {
	readers := or(b.Dialog.Readers, idleReaders)
	var costs []float64
	return []trial{{
		result: Result{System: systemParley, Variant: variant, Sessions: readers},
		run: func(ctx context.Context) (float64, error) {
			s, err := b.stage(ctx, "database with service "+dialogQueue, func(ctx context.Context, conn *pgx.Conn, _ *stage) error {
				return addService(ctx, conn, dialogQueue)
			})
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) {
				cost, err := b.waitIdly(ctx, d, readers)
				costs = append(costs, cost)
				return 0, err
			})
		},
		conclude: func(r *Result) { r.ProcessorMSPerMinute = new(statistics.Median(costs)) },
	}}
}

// waitIdly lets sessions wait and gives what one of them uses of a processor, in milliseconds for a minute.
func (b *bench) waitIdly(ctx context.Context, d database, readers int) (cost float64, err error) {
	conns, err := d.sessions(ctx, readers)
	if err != nil {
		return 0, err
	}
	defer closeAll(ctx, conns)
	ctx, cancel := context.WithCancel(ctx)
	left := make(chan error, readers)
	for _, conn := range conns {
		go func() {
			_, err := conn.Exec(ctx, "select from parley.receive('"+dialogQueue+"', timeout => -1)")
			left <- err
		}()
	}
	defer func() {
		cancel()
		for range readers {
			if cut := <-left; err == nil && !errors.Is(cut, context.Canceled) {
				err = fmt.Errorf("a reader did not wait: %w", cut)
			}
		}
	}()
	if !waitUntil(ctx, time.Now().Add(min(idleSettle, 10*b.Duration))) {
		return 0, context.Cause(ctx)
	}
	before, err := processorTimeOf(conns)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	select {
	case err := <-left:
		left <- err
		return 0, fmt.Errorf("a reader did not wait: %w", err)
	case <-time.After(b.Duration):
	}
	after, err := processorTimeOf(conns)
	if err != nil {
		return 0, err
	}
	return float64((after - before).Milliseconds()) / float64(readers) / time.Since(begun).Minutes(), nil
}

// processorTimeOf is the processor time of the backends of some sessions together.
func processorTimeOf(conns []*pgx.Conn) (sum time.Duration, err error) {
	for _, conn := range conns {
		one, err := processorTime(conn.PgConn().PID())
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

// processorTime is the processor time of a backend, as Linux reports it for a process of this machine.
func processorTime(pid uint32) (time.Duration, error) {
	text, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/schedstat")
	if err != nil {
		return 0, fmt.Errorf("read what a backend uses of the processor, which takes a server on this machine and Linux: %w", err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	nanoseconds, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read what a backend uses of the processor: %w", err)
	}
	return time.Duration(nanoseconds), nil
}
