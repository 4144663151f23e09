package bench

import (
	"bytes"
	"context"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/driver"
	contentstore "github.com/parley-broker/parley/internal/store/content"
	workstore "github.com/parley-broker/parley/internal/store/work"
)

const (
	storeSystem    = "bench"
	storeBodyMB    = 8
	storeBodyBytes = storeBodyMB * 1_000_000
	storeItems     = 100
)

// storeVariant is a variant with the operations of the store and of what it is measured beside.
type storeVariant struct {
	Variant
	store, bare driver.Operation
}

func storeVariants() []storeVariant {
	body := randomBodies(1, storeBodyBytes)[0]
	return []storeVariant{
		{
			Variant{"content_in", "bodies of 8 MB streamed in, beside a bare COPY of their chunks; MB for messages"},
			contentIn(body), copyIn(body),
		},
		{Variant{"content_out", "the same body streamed out, beside a bare COPY of its chunks"}, contentOut, copyOut},
		{Variant{"work", "100 items put, claimed and completed, beside a bare INSERT and DELETE"}, workDone, rowsDone},
	}
}

func storeScenario() Scenario {
	s := Scenario{
		Name:  "store",
		Short: "content and work of the store against a bare COPY, and INSERT with DELETE",
		measure: func(ctx context.Context, b *bench) ([]Result, error) {
			var trials []trial
			for _, v := range storeVariants() {
				if b.wants(v.Name) {
					trials = append(trials, b.storeTrial(v.Name, systemParley, v.store), b.storeTrial(v.Name, systemInsert, v.bare))
				}
			}
			return b.measure(ctx, trials)
		},
	}
	for _, v := range storeVariants() {
		s.Variants = append(s.Variants, v.Variant)
	}
	return s
}

func (b *bench) storeTrial(variant, system string, op driver.Operation) trial {
	sessions := or(b.Sessions, 1)
	return trial{
		result: Result{System: system, Variant: variant, Sessions: sessions, Size: b.Size, Batch: storeItems},
		run: func(ctx context.Context) (float64, error) {
			s, err := b.stage(ctx, "a store with a body of 8 MB", func(ctx context.Context, conn *pgx.Conn, _ *stage) error {
				_, err := conn.Exec(ctx, `
					create table bench.chunk (number integer, body bytea);
					alter table bench.chunk alter column body set storage external;
					create table bench.item (like parley_store._p_item including all);
					select parley_store.add_system('`+storeSystem+`')`)
				if err != nil {
					return err
				}
				body := randomBodies(1, storeBodyBytes)[0]
				if _, err := contentIn(body)(ctx, conn, 0); err != nil {
					return err
				}
				_, err = copyIn(body)(ctx, conn, 0)
				return err
			})
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) { return b.drive(ctx, d, sessions, op) })
		},
	}
}

func contentIn(body []byte) driver.Operation {
	return func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		return storeBodyMB, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			w := contentstore.NewWriter(ctx, tx, contentstore.Holder{System: storeSystem, Number: 1})
			if _, err := w.ReadFrom(bytes.NewReader(body)); err != nil {
				return err
			}
			_, err := w.Finish()
			return err
		})
	}
}

func copyIn(body []byte) driver.Operation {
	return func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		var rows [][]any
		for chunk := range slices.Chunk(body, contentstore.ChunkBytes) {
			rows = append(rows, []any{len(rows), chunk})
		}
		_, err := conn.CopyFrom(ctx, pgx.Identifier{"bench", "chunk"}, []string{"number", "body"}, pgx.CopyFromRows(rows))
		return storeBodyMB, err
	}
}

func contentOut(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
	r, err := contentstore.Open(ctx, conn, 1, contentstore.Holder{System: storeSystem, Number: 1})
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, r)
	return storeBodyMB, err
}

func copyOut(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
	_, err := conn.PgConn().CopyTo(ctx, io.Discard, "copy (select body from bench.chunk order by number) to stdout (format binary)")
	return storeBodyMB, err
}

func workDone(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
	items := make([]workstore.Item, storeItems)
	for i := range items {
		items[i] = workstore.Item{Lane: "lane", Subject: int64(i)}
	}
	if _, err := workstore.Put(ctx, conn, storeSystem, items, workstore.PutOptions{}); err != nil {
		return 0, err
	}
	claimed, err := workstore.ClaimLane(ctx, conn, storeSystem, "lane", workstore.ClaimOptions{Items: storeItems})
	if err != nil || len(claimed) == 0 {
		return 0, err
	}
	return workstore.Complete(ctx, conn, claimed[0].LeaseID, nil)
}

func rowsDone(ctx context.Context, conn *pgx.Conn, session int) (int, error) {
	return storeItems, explicit(ctx, conn, func(db parley.DB) error {
		_, err := db.Exec(ctx, `
			insert into bench.item (lane_id, priority, item_id, subject, since)
			select $1, 5, n, n, now() from generate_series(1, $2) as n`, session, storeItems)
		if err != nil {
			return err
		}
		_, err = db.Exec(ctx, "delete from bench.item where lane_id = $1", session)
		return err
	})
}
