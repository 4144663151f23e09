//go:build unix

package nemesis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/verify/checker"
	"github.com/parley-broker/parley/internal/verify/ledger"
)

// probe samples running streams: first what the receivers have, then what the senders had sent by then; keeps S6.
func (w *workload) probe() {
	conns := make([]*pgx.Conn, len(w.parties))
	defer func() {
		for _, conn := range conns {
			if conn != nil {
				_ = conn.Close(context.Background())
			}
		}
	}()
	for !w.over.Load() {
		pause(500 * time.Millisecond)
		complete := true
		for i, p := range w.parties {
			if conns[i] == nil || conns[i].IsClosed() {
				var err error
				if conns[i], err = tryConnect(p.dsn()); err != nil {
					conns[i], complete = nil, false
				}
			}
		}
		if complete && !w.lossy {
			w.sample(conns)
		}
	}
}

func (w *workload) sample(conns []*pgx.Conn) {
	ctx := context.Background()
	type stream struct {
		checker.Direction
		name string
	}
	received := map[stream]int64{}
	for _, conn := range conns {
		rows, err := conn.Query(ctx, "select dialog::text, from_initiator, stream, max(n) from ledger.received group by 1, 2, 3")
		if err != nil {
			return
		}
		var s stream
		var n int64
		if _, err := pgx.ForEachRow(rows, []any{&s.Dialog, &s.FromInitiator, &s.name, &n}, func() error {
			received[s] = n
			return nil
		}); err != nil {
			return
		}
	}
	sent := map[stream]int64{}
	for _, conn := range conns {
		rows, err := conn.Query(ctx, "select dialog::text, from_initiator, stream, n from ledger.sent_counter")
		if err != nil {
			return
		}
		var s stream
		var n int64
		if _, err := pgx.ForEachRow(rows, []any{&s.Dialog, &s.FromInitiator, &s.name, &n}, func() error {
			sent[s] = n
			return nil
		}); err != nil {
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done["samples"]++
	for s, n := range received {
		if n > sent[s] {
			w.observed.Prefixes = append(w.observed.Prefixes, checker.Prefix{Direction: s.Direction, Stream: s.name, Received: n, Sent: sent[s]})
		}
	}
}

// drain receives all that comes and ends all that is open, until nothing is left anywhere or quietMax is over; keeps L1.
func (w *workload) drain() {
	w.observed.Healed, w.observed.QuietMax = w.now(), quietMax
	drainers := make([]*actor, len(w.parties))
	for i, p := range w.parties {
		conn, err := tryConnect(p.dsn())
		if err != nil {
			w.t.Errorf("drain %s: %v", p.name, err)
			return
		}
		defer conn.Close(context.Background())
		drainers[i] = &actor{workload: w, party: p, conn: conn}
	}
	reported := time.Now()
	for deadline := time.Now().Add(quietMax); ; {
		moved, left := 0, []string(nil)
		for _, d := range drainers {
			n, err := d.drainOnce()
			if err != nil {
				w.t.Errorf("drain %s: %v", d.party.name, err)
				return
			}
			moved += n
			more, err := d.left()
			if err != nil {
				w.t.Errorf("find what is left in %s: %v", d.party.name, err)
				return
			}
			left = append(left, more...)
		}
		if moved == 0 && len(left) == 0 {
			w.observed.Quiet = w.now()
			return
		}
		if time.Now().After(deadline) {
			w.observed.Left = left
			return
		}
		if time.Now().After(reported.Add(5 * time.Second)) {
			reported = time.Now()
			w.t.Logf("%v after the last fault there is left: %s", (w.now() - w.observed.Healed).Round(time.Millisecond), strings.Join(left, "; "))
		}
		if moved == 0 {
			pause(50 * time.Millisecond)
		}
	}
}

// drainOnce receives what is in the queues of a party and ends what can be ended; it gives how much that was.
func (a *actor) drainOnce() (moved int, err error) {
	for _, queue := range []string{"target_queue", "initiator_queue"} {
		for {
			if err := a.try("begin"); err != nil {
				return moved, err
			}
			rows, err := a.conn.Query(context.Background(), `
				select handle::text, is_end, dialog::text, from_initiator, stream, n, hash, seq from ledger.receive($1, null)`, queue)
			if err != nil {
				return moved, err
			}
			got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[delivery])
			if err != nil {
				return moved, err
			}
			for _, d := range got {
				if d.IsEnd {
					if err := a.try("select ledger.end_conversation($1::uuid, null)", d.Handle); err != nil {
						return moved, err
					}
				}
			}
			if err := a.try("commit"); err != nil {
				return moved, err
			}
			moved += len(got)
			if len(got) == 0 {
				break
			}
		}
	}
	// A dialog that is open is ended by its initiator; its far side receives the end, and ends too.
	rows, err := a.conn.Query(context.Background(), `
		select conversation_handle::text
		from parley.conversation_endpoints
		where state in ('SO', 'CO', 'ER', 'DI') and (is_initiator = 1 or state in ('ER', 'DI')) and not is_system
		limit 100`)
	if err != nil {
		return moved, err
	}
	open, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return moved, err
	}
	for _, handle := range open {
		if err := a.try("select ledger.end_conversation($1::uuid, null)", handle); err != nil && !harmless[code(err)] {
			return moved, err
		}
		moved++
	}
	return moved, nil
}

// left reports what a party still has that should be gone.
func (a *actor) left() ([]string, error) {
	var left []string
	for what, sql := range map[string]string{
		"open conversations":                     "select state || ' ' || conversation_id || ' ' || is_initiator from parley.conversation_endpoints where state <> 'CD'",
		"messages in the transmission queue":     "select conversation_handle || ' ' || coalesce(transmission_status, '') from parley.transmission_queue",
		"messages in the queue of the target":    "select conversation_handle::text from parley_queue.target_queue",
		"messages in the queue of the initiator": "select conversation_handle::text from parley_queue.initiator_queue",
	} {
		rows, err := a.conn.Query(context.Background(), sql)
		if err != nil {
			return nil, err
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			left = append(left, fmt.Sprintf("%s: %d %s, such as %s", a.party.name, len(list), what, list[0]))
		}
	}
	return left, nil
}

// judge brings the ledgers together, in an empty one, and asks both checkers.
func (w *workload) judge(t testing.TB, bench *pgx.Conn) checker.History {
	t.Helper()
	h := checker.History{Observed: w.observed}
	for _, p := range w.parties {
		conn := connect(t, p.dsn())
		part, err := ledger.Read(t.Context(), conn)
		if err == nil {
			err = ledger.Collect(t.Context(), bench, conn)
		}
		_ = conn.Close(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		h.Sent = append(h.Sent, part.Sent...)
		h.Received = append(h.Received, part.Received...)
		h.Waiting = append(h.Waiting, part.Waiting...)
		h.Ended = append(h.Ended, part.Ended...)
		h.EndsReceived = append(h.EndsReceived, part.EndsReceived...)
	}
	for i, s := range h.Sent {
		h.Sent[i].Committed = w.committed[checker.Undone{Direction: s.Direction, Hash: s.Hash}]
	}
	for i, v := range checker.Check(h) {
		if i == 20 {
			t.Error("and more")
			break
		}
		t.Error(v)
	}
	if len(h.Waiting) == 0 && len(h.LostHistory) == 0 {
		lines, err := ledger.Verdict(t.Context(), bench)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			t.Errorf("by SQL, violations of %s", line)
		}
	}
	return h
}
