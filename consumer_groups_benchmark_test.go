package parley_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/parleytest"
)

// BenchmarkConsumerOfManyGroups drains conversations of one message each, of which the handler does an INSERT. One in so many fails at the
// first call.
func BenchmarkConsumerOfManyGroups(b *testing.B) {
	for name, failing := range map[string]int64{"none fails": 0, "one in 1000 fails": 1000} {
		b.Run(name, func(b *testing.B) {
			const conversations = 20_000
			for range b.N {
				b.StopTimer()
				pool := parleytest.Database(b)
				for _, statement := range []string{
					"create table handled (body text)",
					"select parley.create_queue('initiator'), parley.create_queue('target')",
					"select parley.create_service('initiator', 'initiator'), parley.create_service('target', 'target', contracts => array['DEFAULT'])",
					"select parley.begin_and_send('initiator', 'target', body => n::text) from generate_series(1, 20000) as s (n)",
					"vacuum analyze",
				} {
					if _, err := pool.Exec(b.Context(), statement); err != nil {
						b.Fatal(err)
					}
				}
				ctx, stop := context.WithCancel(b.Context())
				var calls atomic.Int64
				consumer := parley.Consumer{
					Pool: pool, Queue: "target", Groups: 100, Logger: slog.New(slog.DiscardHandler),
					Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
						if n := calls.Add(1); failing > 0 && n%failing == 0 {
							return errors.New("fails")
						}
						for _, message := range messages {
							if _, err := tx.Exec(ctx, "insert into handled values ($1)", string(message.MessageBody)); err != nil {
								return err
							}
						}
						return nil
					},
				}
				b.StartTimer()
				began := time.Now()
				done := make(chan error, 1)
				go func() { done <- consumer.Run(ctx) }()
				ticker := time.NewTicker(20 * time.Millisecond)
				for handled := 0; handled < conversations; {
					<-ticker.C
					if err := pool.QueryRow(b.Context(), "select count(*) from handled").Scan(&handled); err != nil {
						b.Fatal(err)
					}
				}
				took := time.Since(began)
				b.StopTimer()
				ticker.Stop()
				stop()
				if err := <-done; err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(conversations/took.Seconds(), "messages/s")
				b.ReportMetric(float64(calls.Load())/conversations, "calls/message")
			}
		})
	}
}
