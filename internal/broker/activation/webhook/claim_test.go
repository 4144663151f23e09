package webhook_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/activation/webhook"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/parleytest"
)

// slow is an answer that comes when the test lets it, to the first request alone.
type slow struct {
	arrived, released chan struct{}
	arrive, release   func()
	// brokenOff is closed when the reader has broken the first request off.
	brokenOff chan struct{}
}

func newSlow() *slow {
	s := &slow{arrived: make(chan struct{}), released: make(chan struct{}), brokenOff: make(chan struct{})}
	s.arrive = sync.OnceFunc(func() { close(s.arrived) })
	s.release = sync.OnceFunc(func() { close(s.released) })
	return s
}

func (s *slow) answer(_ http.ResponseWriter, r request) {
	if r.number > 1 {
		return
	}
	s.arrive()
	select {
	case <-s.released:
	case <-r.brokenOff:
		close(s.brokenOff)
	case <-r.over:
	}
}

// newEither gives a test two messages in order, of one conversation or of one key of a simple queue.
func newEither(t *testing.T, simple bool, answer func(http.ResponseWriter, request)) *fixture {
	t.Helper()
	if simple {
		b := newSimpleFixture(t, "", answer)
		b.put("k", "x", "y")
		return b
	}
	b := newFixture(t, "", answer)
	b.dialog("x", "y")
	return b
}

// twin gives another daemon of the same database, with connections of its own.
func (b *fixture) twin(lease time.Duration) *fixture {
	b.Helper()
	pool, err := pgxpool.NewWithConfig(b.Context(), b.pool.Config().Copy())
	b.require(err)
	b.Cleanup(pool.Close)
	permission, err := webhook.ParsePermission([]string{b.server.URL})
	b.require(err)
	starter := webhook.NewStarter(pool, 20, permission, dialogsecurity.WebhookSecrets{}, b.log.Logger(slog.LevelInfo))
	b.Cleanup(starter.Close)
	starter.SetLease(lease)
	return &fixture{T: b.T, pool: pool, server: b.server, starter: starter, log: b.log}
}

// moveLeases has all leases end at another time.
func (b *fixture) moveLeases(by string) {
	b.Helper()
	for _, table := range []string{"parley._p_delivery_claim", "parley._p_message_claim"} {
		b.exec("update " + table + " set leased_until = leased_until + interval '" + by + "'")
	}
}

func (b *fixture) bodies(db parley.DB) string {
	b.Helper()
	messages, err := parley.Receive(b.Context(), db, "target")
	b.require(err)
	var bodies []string
	for _, m := range messages {
		bodies = append(bodies, string(m.MessageBody))
	}
	return strings.Join(bodies, " ")
}

// A transaction would keep dead rows of the whole server from being removed, and the group locked when its host is gone.
func TestNoTransactionIsOpenWhileARequestIsUnderWay(t *testing.T) {
	t.Parallel()
	for _, simple := range []bool{false, true} {
		t.Run(fmt.Sprintf("simple=%v", simple), func(t *testing.T) {
			t.Parallel()
			s := newSlow()
			b := newEither(t, simple, s.answer)
			daemon := b.twin(time.Minute)
			pid := value[int](daemon, "select pg_backend_pid()")
			stop := daemon.start(1)
			parleytest.Receive(t, s.arrived, "the request")
			b.waitUntil("the claim is committed", func() bool { return value[int](b, "select count(*) from parley.delivery_claims") == 1 })
			if got := value[string](b, `
				select coalesce(string_agg(a.query, '; '), '') from pg_stat_activity as a
				where a.datname = current_database() and a.pid <> pg_backend_pid()
					and (a.xact_start is not null or a.backend_xmin is not null)`); got != "" {
				t.Errorf("a transaction is open, of %q", got)
			}
			if value[int](b, "select count(*) from pg_stat_activity where pid = $1", pid) != 1 {
				t.Error("the daemon has no session, so this says nothing")
			}
			s.release()
			b.waitUntil("it is received", func() bool { return value[int](b, "select count(*) from parley._p_message") == 0 })
			b.require(stop())
		})
	}
}

func TestReaderBesideARequestGetsEverythingElse(t *testing.T) {
	t.Parallel()
	s := newSlow()
	b := newFixture(t, "", s.answer)
	handle := b.dialog("1", "2")
	stop := b.start(1)
	parleytest.Receive(t, s.arrived, "the request")
	b.dialog("other")
	tx, err := b.pool.Begin(t.Context())
	b.require(err)
	if got := b.bodies(tx); got != "other" {
		t.Errorf("received %q beside the delivery", got)
	}
	if got := b.bodies(tx); got != "" {
		t.Errorf("received %q beside the delivery", got)
	}
	b.send(handle, "3")
	s.release()
	b.waitUntil("the rest was delivered", func() bool { return len(b.seen()) == 3 })
	b.require(tx.Commit(t.Context()))
	b.require(stop())
	if seen := b.seen(); seen[0].text() != "1" || seen[1].text() != "2" || seen[2].text() != "3" {
		t.Errorf("delivered were %q, %q, %q", seen[0].text(), seen[1].text(), seen[2].text())
	}
}

func TestLeaseIsRenewedAsLongAsTheRequestTakes(t *testing.T) {
	t.Parallel()
	s := newSlow()
	b := newFixture(t, "", s.answer)
	b.starter.SetLease(3 * time.Second)
	b.dialog("x")
	stop := b.start(1)
	parleytest.Receive(t, s.arrived, "the request")
	b.waitUntil("two leases would be over", func() bool {
		return value[bool](b, "select leased_until > claimed_at + interval '6 seconds' from parley.delivery_claims")
	})
	if got := b.bodies(b.pool); got != "" {
		t.Errorf("received %q beside the delivery", got)
	}
	s.release()
	b.waitUntil("it is received", func() bool { return value[int](b, "select count(*) from parley._p_message") == 0 })
	b.require(stop())
	if got := len(b.seen()); got != 1 {
		t.Errorf("%d requests came", got)
	}
}

// Its connections are cut, as by a crash of its host: it can neither renew nor record. It breaks the request off when its lease is over.
func TestMessageOfADaemonThatIsGoneComesAgainFromAnother(t *testing.T) {
	t.Parallel()
	for _, simple := range []bool{false, true} {
		t.Run(fmt.Sprintf("simple=%v", simple), func(t *testing.T) {
			t.Parallel()
			s := newSlow()
			b := newEither(t, simple, s.answer)
			gone := b.twin(2 * time.Second)
			gone.start(1)
			parleytest.Receive(t, s.arrived, "the request")
			gone.pool.Close()
			// It lasts for as long as this machine needs to look.
			b.moveLeases("1 hour")
			b.run(1)
			if value[int](b, "select count(*) from parley._p_message") != 2 || len(b.seen()) != 1 {
				t.Errorf("%d requests came while the lease lasts", len(b.seen()))
			}
			parleytest.Receive(t, s.brokenOff, "the end of the request")
			b.moveLeases("-1 hour")
			b.waitUntil("the lease is over", func() bool { return value[int](b, "select count(*) from parley.delivery_claims") == 0 })
			b.run(1)
			seen := b.seen()
			if len(seen) != 3 || seen[1].header.Get("Webhook-Id") != seen[0].header.Get("Webhook-Id") ||
				seen[2].header.Get("Webhook-Id") == seen[0].header.Get("Webhook-Id") {
				t.Errorf("%d requests came: %v", len(seen), seen)
			}
			if got := value[int](b, "select count(*) from parley._p_message"); got != 0 {
				t.Errorf("%d messages are left", got)
			}
		})
	}
}

func TestRequestWhoseClaimIsLostIsBrokenOffAndRecordsNothing(t *testing.T) {
	t.Parallel()
	s := newSlow()
	b := newFixture(t, ", max_attempts => 1", s.answer)
	b.starter.SetLease(3 * time.Second)
	b.dialog("x")
	stop := b.start(1)
	parleytest.Receive(t, s.arrived, "the request")
	b.exec("select parley.release_delivery(queue_name, claim) from parley.delivery_claims")
	tx, err := b.pool.Begin(t.Context())
	b.require(err)
	if got := b.bodies(tx); got != "x" {
		t.Errorf("received %q after the claim was released", got)
	}
	parleytest.Receive(t, s.brokenOff, "the end of the request")
	b.waitUntil("it is in the log", func() bool { return strings.Contains(b.log.String(), "records nothing of a request") })
	b.require(tx.Rollback(t.Context()))
	stopSecond := b.start(2) // the first one leaves where it found nothing while the message was held
	b.waitUntil("it was delivered again", func() bool { return len(b.seen()) == 2 })
	b.require(stop())
	b.require(stopSecond())
	if got := value[int](b, "select count(*) from parley.poison_conversations"); got != 0 {
		t.Error("it counts as a refusal")
	}
}

// A message that was accepted, and whose receive could not be committed, comes again under the same id.
func TestRecordThatIsRolledBackComesAgain(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", accept)
	b.exec(`create function public.refuse() returns trigger language plpgsql as $$ begin raise 'not now'; end $$`)
	b.exec(`create constraint trigger refuse after delete on parley._p_message deferrable initially deferred
		for each row execute function public.refuse()`)
	b.dialog("x")
	if err := b.reader(1).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Errorf("the reader ended with %v", err)
	}
	b.requireWaiting(1)
	if got := value[int](b, "select count(*) from parley.delivery_claims"); got != 0 {
		t.Error("the claim was not released")
	}
	b.exec("drop trigger refuse on parley._p_message")
	b.run(1)
	b.requireWaiting(0)
	if seen := b.seen(); len(seen) != 2 || seen[0].header.Get("Webhook-Id") != seen[1].header.Get("Webhook-Id") {
		t.Errorf("%d requests came", len(seen))
	}
}

func TestRequestIsOverWithTheQueueTheServiceAndTheSchema(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, statement string }{
		{"END CONVERSATION", "select parley.end_conversation(conversation_handle) from parley.conversation_endpoints where service_name = 'target'"},
		{"DROP SERVICE", "select parley.drop_service('target'), parley.drop_queue('target')"},
		{"DROP SCHEMA", "drop schema parley cascade"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSlow()
			b := newFixture(t, "", s.answer)
			b.dialog("x")
			reader := b.reader(1)
			ended := make(chan error, 1)
			go func() { ended <- reader.Run(t.Context()) }()
			parleytest.Receive(t, s.arrived, "the request")
			b.exec(c.statement)
			s.release()
			err := parleytest.Receive(t, ended, "the end of the reader")
			if (err == nil) != (c.name == "END CONVERSATION") {
				t.Errorf("the reader ended with %v", err)
			}
			if c.name == "END CONVERSATION" && !strings.Contains(b.log.String(), "records nothing of a request") {
				t.Errorf("the log does not say so:\n%s", b.log)
			}
		})
	}
}

func TestWebhookThatIsAlteredOrDroppedFinishesItsRequest(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{
		"select parley.alter_webhook_activation('target', timeout_ms => 1000)", "select parley.drop_external_activation('target')",
	} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			s := newSlow()
			b := newFixture(t, "", s.answer)
			b.dialog("x")
			stop := b.start(1)
			parleytest.Receive(t, s.arrived, "the request")
			b.exec(statement)
			s.release()
			b.waitUntil("it is received", func() bool { return value[int](b, "select count(*) from parley.queue_contents('target')") == 0 })
			b.require(stop())
		})
	}
}

func TestRequestsUnderWayAreLimited(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now, most := 0, 0
	b := newFixture(t, "", func(_ http.ResponseWriter, r request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		timer := time.NewTimer(20 * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.over:
		}
		mu.Lock()
		now--
		mu.Unlock()
	})
	permission, err := webhook.ParsePermission([]string{b.server.URL})
	b.require(err)
	b.starter = webhook.NewStarter(b.pool, 2, permission, dialogsecurity.WebhookSecrets{}, b.log.Logger(slog.LevelInfo))
	t.Cleanup(b.starter.Close)
	for range 10 {
		b.dialog("x")
	}
	b.run(5)
	b.requireWaiting(0)
	if most > 2 {
		t.Errorf("%d requests were under way at once", most)
	}
}
