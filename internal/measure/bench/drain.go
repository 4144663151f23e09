package bench

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/observe"
	"github.com/parley-broker/parley/internal/pgdb"
)

// drainObjects are the tables and procedures of the scenario drain.
//
//go:embed drain.sql
var drainObjects string

// The queue of the article of 2006: conversations, and messages in all.
const (
	drainQueue         = "drain"
	drainConversations = 100
	drainMessages      = 10_000
)

// timesPublished is how many times the published rate ours has to be.
const timesPublished = 10

// drainVariant is one way to empty the queue.
type drainVariant struct {
	Variant
	procedure string
	body      func() []byte
	published float64 // messages a second, on the machine of the article
	answers   bool
	system    string
	audit     string // the table that it fills
	call      func(ctx context.Context, conn *pgx.Conn) error
	atLeast   float64
}

// compiled gives a way to drain whose procedure is in PL/pgSQL.
func compiled(v drainVariant) drainVariant {
	v.system, v.audit, v.atLeast = systemParley, "bench.audit", timesPublished*v.published
	v.call = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "call "+pgx.Identifier{"bench", v.procedure}.Sanitize()+"($1)", drainQueue)
		return err
	}
	return v
}

func drainVariants() []drainVariant {
	way := func(name, short, procedure string, body func() []byte, published float64, answers bool) drainVariant {
		return drainVariant{Variant: Variant{name, short}, procedure: procedure, body: body, published: published, answers: answers}
	}
	return []drainVariant{
		way("basic", "RECEIVE TOP (1), one message a transaction, an echo for each", "drain_basic", shortBody, 312, true),
		way("batched", "the same, a commit every 100 messages", "drain_batched", shortBody, 383, true),
		way(
			"cursor", "all messages of a group a call and a transaction, then one by one, an echo for each",
			"drain_cursor", shortBody, 1676, true,
		),
		way("cursor_by_id", "the same by the number of the message type in place of its name", "drain_cursor_by_id", shortBody, 1725, true),
		way(
			"set_xml", "all messages of a group in one INSERT, XML taken apart into columns, no answer", "drain_set_xml", xmlBody, 2038, false,
		),
		way("set_binary", "the same of bytes", "drain_set_binary", binaryBody, 2712, false),
	}
}

func drainScenario() Scenario {
	s := Scenario{
		Name: "drain", Short: "six ways to empty a queue of 100 conversations of 100 messages, beside those published in 2006",
		Messages: drainMessages, hasSize: true,
		Paper: "312, 383, 1,676, 1,725, 2,038 and 2,712 messages/s: one processor of 2.4 GHz, two IDE disks",
		measure: func(ctx context.Context, b *bench) ([]Result, error) {
			var trials []trial
			for _, v := range drainVariants() {
				if !b.wants(v.Name) {
					continue
				}
				trials = append(trials, b.drainTrial(compiled(v)))
				if b.TSQL != nil {
					trials = append(trials, b.drainTrial(b.interpreted(v)))
				}
			}
			results, err := b.measure(ctx, trials)
			b.shareOfTSQL(results)
			return results, err
		},
	}
	for _, v := range drainVariants() {
		s.Variants = append(s.Variants, v.Variant)
	}
	return s
}

func (b *bench) drainTrial(v drainVariant) trial {
	conversations := or(b.Conversations, drainConversations)
	each := max(1, b.Messages/conversations)
	body := v.body()
	return trial{
		result: Result{
			System: v.system, Variant: v.Name, Sessions: 1, Conversations: conversations, Size: len(body), Batch: each,
			published: v.published, atLeast: v.atLeast,
		},
		run: func(ctx context.Context) (float64, error) {
			name := fmt.Sprintf("%d conversations of %d messages of %d bytes", conversations, each, len(body))
			s, err := b.stage(ctx, name, func(ctx context.Context, conn *pgx.Conn, s *stage) error {
				if _, err := conn.Exec(ctx, drainObjects); err != nil {
					return fmt.Errorf("install the ways to drain: %w", err)
				}
				if err := b.installTSQL(ctx, conn); err != nil {
					return err
				}
				if err := s.addQueue(ctx, conn, drainQueue, conversations); err != nil {
					return err
				}
				if _, err := conn.Exec(ctx, "call bench.load($1::uuid[], $2, $3)", pgdb.UUIDTexts(s.dialogs[drainQueue]), each, body); err != nil {
					return fmt.Errorf("load the queue: %w", err)
				}
				return nil
			})
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) { return v.time(ctx, d, conversations*each) })
		},
	}
}

// time lets the procedure empty the queue, and has the database count what it did.
func (v drainVariant) time(ctx context.Context, d database, messages int) (rate float64, err error) {
	err = d.withConnection(ctx, func(conn *pgx.Conn) error {
		defer observe.From(ctx).Window()()
		begun := time.Now()
		if err := v.call(ctx, conn); err != nil {
			return fmt.Errorf("drain the queue by %s of %s: %w", v.procedure, v.system, err)
		}
		took := time.Since(begun)
		observe.From(ctx).Out(messages)
		var left, done int
		counted := "select (select count(*) from parley.queue_contents($1)), (select count(*) from " + v.audit + " where $2::text is not null)"
		if v.answers {
			counted = "select (select count(*) from parley.queue_contents($1)), (select count(*) from parley.queue_contents($2))"
		}
		if err := conn.QueryRow(ctx, counted, drainQueue, initiator(drainQueue)).Scan(&left, &done); err != nil {
			return fmt.Errorf("count what was received: %w", err)
		}
		if left > 0 {
			return fmt.Errorf("%d messages are left in the queue", left)
		}
		rate = float64(messages) / took.Seconds()
		return requireAll(done, messages)
	})
	return rate, err
}

func shortBody() []byte { return []byte("<Test/>") }

// The content of a record of an audit.
const (
	auditPayload = "Some Data"
	auditUser    = "parley"
)

func xmlBody() []byte {
	return fmt.Appendf(nil, `<Datagram xmlns="http://bench.example/audit" date-time="%s" user="%s" payload="%s"/>`,
		time.Now().UTC().Format("2006-01-02T15:04:05"), auditUser, auditPayload)
}

func binaryBody() []byte {
	body := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMicro()))
	body = binary.BigEndian.AppendUint32(body, uint32(len(auditPayload)))
	body = append(body, auditPayload...)
	body = binary.BigEndian.AppendUint32(body, uint32(len(auditUser)))
	return append(body, auditUser...)
}
