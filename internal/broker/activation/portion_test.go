package activation_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/activation"
)

// Messages are found on a server on which a scan of all queues takes too long: the scans that follow read fewer.
func TestScansThatTakeTooLongReadFewerQueues(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.exec(`do $$ begin
		for n in 1 .. 20 loop
			perform parley.create_queue('q' || n, activation_procedure => 'app.reader', max_queue_readers => 1, execute_as => 'SELF');
		end loop;
	end $$`)
	b.activate(1)
	b.send(1, 3)
	config := b.pool.Config()
	config.ConnConfig.Tracer = scansOf{2}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b.start(activation.Config{Pool: pool})
	b.awaitDone(3)
	if !strings.Contains(b.log.String(), "queues cannot be scanned") {
		t.Errorf("no scan failed:\n%s", b.log)
	}
}

// scansOf lets no scan of more queues have an answer in time.
type scansOf struct{ most int }

func (s scansOf) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !strings.Contains(data.SQL, "_p_receivable(") {
		return ctx
	}
	if queues, is := data.Args[0].([]int32); !is || len(queues) <= s.most {
		return ctx
	}
	late, cancel := context.WithDeadline(ctx, time.Now())
	cancel()
	return late
}

func (scansOf) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
