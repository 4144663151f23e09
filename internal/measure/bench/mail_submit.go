package bench

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/driver"
)

// submitTrials measure parley_mail.send, one message a transaction, beside the bare INSERT of as many bytes.
func submitTrials(b *bench, variant string) []trial {
	sessions, size := or(b.Sessions, mailSubmitters), or(b.Size, mailSubmitted)
	text := strings.Repeat("X", size)
	send := func(ctx context.Context, conn *pgx.Conn, session int) (int, error) {
		return 1, explicit(ctx, conn, func(db parley.DB) error {
			_, err := db.Exec(ctx, "select parley_mail.send($1, array[$2], subject => $3, text => $4)",
				mailSender, fmt.Sprintf("someone%d@%s", session, mailDomain), "Order", text)
			return err
		})
	}
	return []trial{
		b.submitTrial(variant, sessions, 1, size, send),
		b.sizedInsertTrial(variant, sessions, 1, size),
	}
}

// submitBatchTrials measure parley_mail.send_batch.
func submitBatchTrials(b *bench, variant string) []trial {
	sessions, batch, size := or(b.Sessions, 1), or(b.Batch, mailBatch), or(b.Size, mailSubmitted)
	text, recipients := strings.Repeat("X", size), make([]string, batch)
	for i := range recipients {
		recipients[i] = fmt.Sprintf("someone%d@%s", i, mailDomain)
	}
	send := func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		return batch, explicit(ctx, conn, func(db parley.DB) error {
			_, err := db.Exec(ctx, "select count(*) from parley_mail.send_batch($1, $2, subject => $3, text => $4)",
				mailSender, recipients, "Order", text)
			return err
		})
	}
	return []trial{
		b.submitTrial(variant, sessions, batch, size, send),
		b.sizedInsertTrial(variant, sessions, batch, size),
	}
}

func (b *bench) sizedInsertTrial(variant string, sessions, batch, size int) trial {
	t := b.insertTrial(variant, sessions, batch, inserting(size, batch, explicit))
	t.result.Size = size
	return t
}

func (b *bench) submitTrial(variant string, sessions, batch, size int, send driver.Operation) trial {
	return trial{
		result: Result{System: systemParley, Variant: variant, Sessions: sessions, Size: size, Batch: batch},
		run: func(ctx context.Context) (float64, error) {
			s, err := b.stage(ctx, "a database that submits", func(ctx context.Context, conn *pgx.Conn, _ *stage) error {
				connectors, err := smartHosts(map[string]string{"*": "127.0.0.1:25"})
				if err != nil {
					return err
				}
				return configureMail(ctx, conn, "127.0.0.1:25", connectors)
			})
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) { return b.driveCounted(ctx, d, sessions, send, moreMail()) })
		},
	}
}
