package bench

import (
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/driver"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/measure/statistics"
)

// mixedObjects are the tables of a business transaction.
//
//go:embed mixed.sql
var mixedObjects string

const (
	mixedQueue         = "orders"
	mixedConversations = 1000
	mixedSessions      = 16
)

// The operations that a transaction consists of.
const (
	onlyWrites   = "writes"
	writesSend   = "writes_and_send"
	writesOutbox = "writes_and_outbox"
)

// mixedVariant is how many sessions there are.
type mixedVariant struct {
	Variant
	sessions int
}

func (c Config) mixedVariants() []mixedVariant {
	return []mixedVariant{
		{Variant{"business", "16 sessions: an order, a balance and a line in one transaction, alone, with a SEND, and with a row of an " +
			"outbox"}, or(c.Sessions, mixedSessions)},
		{Variant{"business_one_session", "the same in one session"}, 1},
	}
}

func mixedScenario() Scenario {
	s := Scenario{
		Name: "mixed", Short: "a business transaction of three writes, and what a send in it adds to its commit", Takes: TakesRows,
		Changes: []string{bottleneck.SettingBatch, bottleneck.SettingSessions, bottleneck.SettingRows},
		measure: func(ctx context.Context, b *bench) ([]Result, error) {
			var trials []trial
			for _, v := range b.mixedVariants() {
				if !b.wants(v.Name) {
					continue
				}
				for _, operation := range []string{onlyWrites, writesSend, writesOutbox} {
					trials = append(trials, b.mixedTrial(v, operation))
				}
			}
			return b.measure(ctx, trials)
		},
		conclude: func(_ *bench, head *record.Head, results []Result) {
			head.Figures = append(head.Figures, added(results)...)
		},
	}
	for _, v := range (Config{}).mixedVariants() {
		s.Variants = append(s.Variants, v.Variant)
	}
	return s
}

// added is how much longer the transactions take with a send than without, in the median.
func added(results []Result) (list []record.Figure) {
	alone := map[string]Result{}
	for _, r := range results {
		if r.Operation == onlyWrites {
			alone[r.Variant] = r
		}
	}
	for _, r := range results {
		if base, is := alone[r.Variant]; is && r.Operation == writesSend && r.Latency != nil && base.Latency != nil {
			list = append(list, record.Figure{
				Name: r.Variant + ": added by the send", Unit: "ms", Value: max(0, r.Latency.P50MS-base.Latency.P50MS), IsCost: true,
			})
		}
	}
	return list
}

func (b *bench) mixedTrial(v mixedVariant, operation string) trial {
	rows, batch := or(b.Rows, DefaultRows), or(b.Batch, 1)
	conversations := or(b.Conversations, mixedConversations)
	var rounds []Latency
	t := trial{
		result: Result{
			System: systemParley, Variant: v.Name, Operation: operation, Sessions: v.sessions, Conversations: conversations, Size: b.Size,
			Batch: batch,
			Unit:  "transactions/s",
		},
		run: func(ctx context.Context) (float64, error) {
			name := fmt.Sprintf("%d accounts, %d conversations", rows, conversations)
			s, err := b.stage(ctx, name, func(ctx context.Context, conn *pgx.Conn, s *stage) error {
				if _, err := conn.Exec(ctx, mixedObjects); err != nil {
					return fmt.Errorf("make the tables of the business: %w", err)
				}
				if _, err := conn.Exec(ctx, "insert into bench.account (id, balance) select n, 0 from generate_series(1, $1::integer) as g (n)",
					rows); err != nil {
					return fmt.Errorf("open accounts: %w", err)
				}
				return s.addQueue(ctx, conn, mixedQueue, conversations)
			})
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) {
				m := mixedRun{bench: b, operation: operation, rows: rows, batch: batch, handles: s.dialogs[mixedQueue]}
				rate, latency, err := m.drive(ctx, d, v.sessions)
				rounds = append(rounds, latency)
				return rate, err
			})
		},
		conclude: func(r *Result) { r.Latency = medianLatency(rounds) },
	}
	if operation != onlyWrites {
		t.result.Base = onlyWrites
	}
	return t
}

// mixedRun is one run of business transactions.
type mixedRun struct {
	*bench

	operation   string
	rows, batch int
	handles     []parley.UUID

	mu    sync.Mutex
	times []float64
	done  atomic.Int64
}

// drive runs transactions, and has the database count what they did.
func (m *mixedRun) drive(ctx context.Context, d database, sessions int) (float64, Latency, error) {
	conns, err := d.sessions(ctx, sessions)
	if err != nil {
		return 0, Latency{}, err
	}
	defer closeAll(ctx, conns)
	counts := time.Now().Add(m.WarmUp)
	body := randomBodies(1, m.Size)[0]
	rate, err := driver.Drive(ctx, conns, m.WarmUp, m.Duration, func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		begun := time.Now()
		if err := m.transact(ctx, conn, body); err != nil {
			return 0, err
		}
		m.done.Add(int64(m.batch))
		if begun.After(counts) {
			m.mu.Lock()
			m.times = append(m.times, float64(time.Since(begun))/float64(time.Millisecond))
			m.mu.Unlock()
		}
		return m.batch, nil
	})
	if err != nil {
		return 0, Latency{}, err
	}
	return rate, percentilesOf(m.times), m.account(ctx, conns[0])
}

// transact is one transaction: so many times three writes, and what goes with them.
func (m *mixedRun) transact(ctx context.Context, conn *pgx.Conn, body []byte) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for range m.batch {
			account, amount := 1+rand.IntN(m.rows), 1+rand.IntN(100)
			for _, statement := range []string{
				"insert into bench.placed_order (account_id, amount) values ($1, $2)",
				"update bench.account set balance = balance + $2 where id = $1",
				"insert into bench.account_line (account_id, amount) values ($1, $2)",
			} {
				if _, err := tx.Exec(ctx, statement, account, amount); err != nil {
					return fmt.Errorf("do business: %w", err)
				}
			}
			switch m.operation {
			case writesSend:
				if err := parley.Send(ctx, tx, m.handles[rand.IntN(len(m.handles))], messageType, body); err != nil {
					return err
				}
			case writesOutbox:
				if _, err := tx.Exec(ctx, "insert into bench.outbox (body) values ($1)", body); err != nil {
					return fmt.Errorf("write to the outbox: %w", err)
				}
			}
		}
		return nil
	})
}

// account compares what the clients counted with what is in the database: orders, balances, and a message or a row for each.
func (m *mixedRun) account(ctx context.Context, conn *pgx.Conn) error {
	var orders, sum, balance, messages, outbox int64
	err := conn.QueryRow(ctx, `
		select
			(select count(*) from bench.placed_order), (select coalesce(sum(o.amount), 0) from bench.placed_order as o),
			(select coalesce(sum(a.balance), 0) from bench.account as a)::bigint, (select count(*) from parley.queue_contents($1)),
			(select count(*) from bench.outbox)`, mixedQueue).Scan(&orders, &sum, &balance, &messages, &outbox)
	if err != nil {
		return fmt.Errorf("count what was done: %w", err)
	}
	want := map[string]int64{onlyWrites: 0, writesSend: orders, writesOutbox: 0}[m.operation]
	rows := map[string]int64{writesOutbox: orders}[m.operation]
	if orders != m.done.Load() || sum != balance || messages != want || outbox != rows {
		return fmt.Errorf("the clients counted %d transactions; the database has %d orders of %d, balances of %d, %d messages, %d rows "+
			"in the outbox",
			m.done.Load(), orders, sum, balance, messages, outbox)
	}
	return nil
}

func percentilesOf(times []float64) Latency {
	if len(times) == 0 {
		return Latency{}
	}
	sorted := slices.Sorted(slices.Values(times))
	return Latency{
		P50MS: statistics.Percentile(sorted, 0.50), P90MS: statistics.Percentile(sorted, 0.90), P99MS: statistics.Percentile(sorted, 0.99),
		MaxMS: sorted[len(sorted)-1],
	}
}

// medianLatency is made of the medians of some runs; nil without times.
func medianLatency(rounds []Latency) *Latency {
	of := func(field func(Latency) float64) float64 {
		var values []float64
		for _, round := range rounds {
			if round.MaxMS > 0 {
				values = append(values, field(round))
			}
		}
		return statistics.Median(values)
	}
	l := Latency{
		P50MS: of(func(l Latency) float64 { return l.P50MS }), P90MS: of(func(l Latency) float64 { return l.P90MS }),
		P99MS: of(func(l Latency) float64 { return l.P99MS }), MaxMS: of(func(l Latency) float64 { return l.MaxMS }),
	}
	if l.MaxMS == 0 {
		return nil
	}
	return &l
}
