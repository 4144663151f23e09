package host_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// A node that loses its lease breaks off what it was sending, and another sends it.
func TestLeaseThatIsGoneBreaksOffItsMessages(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	begun, ended := make(chan struct{}, 10), make(chan error, 10)
	first := sync.OnceFunc(func() { begun <- struct{}{} })
	var once sync.Once
	e.destination("Out", func(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
		hangs := false
		once.Do(func() { hangs = true })
		if !hangs {
			return e.record("Out")(ctx, messages)
		}
		first()
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return failsWith(adapter.Failure{Code: "send.transport", Err: ctx.Err()})(ctx, messages)
	})
	e.serve()
	e.take("one")
	parleytest.Receive(t, begun, "the message is being sent")
	// As if the node had been paused for longer than the lease: others have taken it back.
	e.Exec("update parley_store._p_lease set until = clock_timestamp() - interval '1 second'; select parley_flow.maintain()")
	if cause := parleytest.Receive(t, ended, "sending is broken off"); cause == nil || !strings.Contains(cause.Error(), "lease") {
		t.Errorf("it was broken off by %v", cause)
	}
	e.untilSent(1)
	e.untilEmpty()
}

// Backends are terminated at random, in all nodes, while messages flow: each that was acknowledged comes out, and none is left.
func TestNothingIsLostWhenBackendsAreTerminated(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.port("Out", `{"ordered": true, "order_key": "urn:p#Key", "retry_policy": null}`)
	e.serve()
	e.serve()
	in := e.intake("Source")
	done := make(chan struct{})
	var killing sync.WaitGroup
	killing.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(150 * time.Millisecond):
			}
			_, _ = e.DB.Exec(context.Background(), `select pg_terminate_backend(pid) from pg_stat_activity
				where datname = current_database() and pid <> pg_backend_pid() and query ~ 'parley_flow' order by random() limit 1`)
		}
	})
	var taking sync.WaitGroup
	const senders, each = 8, 40
	for sender := range senders {
		taking.Go(func() {
			for n := range each {
				input := adapter.Input{
					Key: fmt.Sprintf("%d:%d", sender, n), Body: fmt.Appendf(nil, "%d:%d", sender, n),
					Promoted: map[string]any{"urn:p#Key": fmt.Sprint(sender)},
				}
				for {
					if err := in.Await(t.Context()); err != nil {
						return
					}
					if _, err := in.Take(t.Context(), []adapter.Input{input}); err == nil {
						break
					}
				}
			}
		})
	}
	taking.Wait()
	close(done)
	killing.Wait()
	e.untilEmpty()
	sent := e.sentBy("Out")
	for sender := range senders {
		last, seen := -1, map[string]bool{}
		for n := range strings.FieldsSeq(ofKey(sent, sender)) {
			if seen[n] {
				continue
			}
			seen[n] = true
			var number int
			if _, err := fmt.Sscan(n, &number); err != nil || number != last+1 {
				t.Errorf("of key %d came %s", sender, ofKey(sent, sender))
				break
			}
			last = number
		}
		if len(seen) != each {
			t.Errorf("of key %d came %d of %d", sender, len(seen), each)
		}
	}
}

// A port that writes in the transaction of the record writes each message once, whatever fails.
func TestTransactionsOfAPortAreExactlyOnce(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.Exec("create table taken (body text)")
	var mu sync.Mutex
	calls := 0
	e.sendIn["Out"] = func(ctx context.Context, tx adapter.Transaction, messages []*adapter.Message) ([]adapter.Delivery, error) {
		mu.Lock()
		calls++
		call := calls
		mu.Unlock()
		deliveries := make([]adapter.Delivery, len(messages))
		for i, m := range messages {
			text, err := body(ctx, m)
			if err != nil {
				return nil, err
			}
			if text == "refused" {
				deliveries[i].Err = &adapter.Failure{Code: "send.refused", Err: io.ErrNoProgress, Permanent: true}
				continue
			}
			if _, err := tx.Exec(ctx, "insert into public.taken values ($1)", text); err != nil {
				return nil, err
			}
		}
		switch {
		case call%3 == 1: // the connection is lost behind the write
			_ = tx.Conn().Close(ctx)
		case call == 2: // the port fails
			return nil, io.ErrUnexpectedEOF
		}
		return deliveries, nil
	}
	e.serve()
	texts := []string{"refused"}
	for n := range 100 {
		texts = append(texts, fmt.Sprint(n))
	}
	e.take(texts...)
	parleytest.Until(t, "all are written, and one is suspended", func() bool {
		messages, _ := e.inBox()
		return messages == 1 && sqltest.Value[int](e.Session, "select count(*)::integer from parley_flow.suspended") == 1
	})
	sqltest.Equal(e.Session, "100 100", "select count(*) || ' ' || count(distinct body) from taken")
	sqltest.Equal(e.Session, "send.refused", "select code from parley_flow.suspended")
}

// A node that stops finishes what it sends, gives the rest back at once, and takes nothing more.
func TestNodeThatStopsFinishesAndGivesBack(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.port("Out", `{"concurrency": 1, "batch": 1}`)
	begun, goOn := make(chan string, 100), make(chan struct{})
	e.destination("Out", func(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
		text, _ := body(ctx, messages[0])
		begun <- text
		select {
		case <-goOn:
			return e.record("Out")(ctx, messages)
		case <-ctx.Done():
			return failsWith(adapter.Failure{Code: "send.transport", Err: ctx.Err()})(ctx, messages)
		}
	})
	n := e.serve(func(c *host.Config) { c.Drain = 2 * time.Second })
	e.take("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	parleytest.Receive(t, begun, "one is being sent")
	go func() { goOn <- struct{}{} }()
	parleytest.Receive(t, begun, "the next one is being sent")
	n.stop()
	// One was sent; the second was broken off, and all nine wait for whoever comes, with no attempt counted.
	sqltest.Equal(e.Session, "9 0 0", `select (select count(*) from parley_store._p_item) || ' ' || (select count(*) from parley_store._p_in_flight)
		|| ' ' || (select max(attempts) from parley_store._p_item)`)
	e.destination("Out", nil)
	e.serve()
	sent := e.untilSent(10)
	slices.Sort(sent)
	if got := strings.Join(sent, ""); got != "0123456789" {
		t.Errorf("were sent %s", got)
	}
}

// A node of which the database goes away and comes back goes on.
func TestNodeGoesOnWhenTheDatabaseIsBack(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.serve()
	e.take("before")
	e.untilSent(1)
	name := sqltest.Value[string](e.Session, "select current_database()")
	other := e.Pool.Config().ConnConfig.Copy()
	other.Database = "postgres"
	conn, err := pgx.ConnectConfig(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	administer := func(statement string) {
		if _, err := conn.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	administer("alter database " + sqltest.Quote(name) + " with allow_connections false")
	administer("select pg_terminate_backend(pid) from pg_stat_activity where datname = '" + name + "'")
	in := e.intake("Source")
	if _, err := in.Take(t.Context(), []adapter.Input{{Body: []byte("lost")}}); err == nil {
		t.Error("it was taken although the database is away")
	}
	if !in.Throttled() {
		t.Error("receivers are not asked to wait")
	}
	administer("alter database " + sqltest.Quote(name) + " with allow_connections true")
	parleytest.Until(t, "it takes in again", func() bool {
		if err := in.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := in.Take(t.Context(), []adapter.Input{{Body: []byte("after")}})
		return err == nil
	})
	e.untilSent(2)
}
