//go:build unix

package nemesis_test

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/verify/checker"
	"github.com/parley-broker/parley/parleytest"
)

// anyOf is a DSN with all servers, of which the one that takes writes is used.
func anyOf(database string, servers ...*server) string {
	var hosts, ports []string
	for _, s := range servers {
		hosts, ports = append(hosts, s.SocketFolder()), append(ports, strconv.Itoa(s.Port()))
	}
	query := url.Values{
		"host": {strings.Join(hosts, ",")}, "port": {strings.Join(ports, ",")}, "target_session_attrs": {"read-write"},
	}
	return (&url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database, RawQuery: query.Encode()}).String()
}

// newServedPair starts two servers, a standby of the first, synchronous or not, and a daemon for each party. That of a gets the addresses
// of both its servers.
func newServedPair(t testing.TB, isSynchronous bool) *pair {
	t.Helper()
	program(t)
	p := &pair{t: t, primary: newServer(t, "primary"), other: newServer(t, "other"), stop: func() {}}
	p.primary.createDatabase(t, "a")
	p.other.createDatabase(t, "b")
	p.standby = p.primary.copyTo(t, "standby", true)
	if isSynchronous {
		p.primary.administer(t, "alter system set synchronous_standby_names = 'standby'", "select pg_reload_conf()")
	}
	p.a = &party{name: "a", at: func() string { return anyOf("a", p.primary, p.standby) }}
	p.b = &party{name: "b", at: func() string { return p.other.DSN("b") }}
	keys := newTrust(t)
	daemons := []*daemon{keys.daemon(t, "daemon a", p.a.dsn()), keys.daemon(t, "daemon b", p.b.dsn())}
	for i, each := range []*party{p.a, p.b} {
		conn := connect(t, each.dsn())
		each.openServices(t, conn)
		keys.settle(t, conn, daemons[i].name)
		_ = conn.Close(context.Background())
	}
	p.a.route(t, p.b, "tcp://"+daemons[1].address())
	p.b.route(t, p.a, "tcp://"+daemons[0].address())
	p.work = newWorkload(t, 1, []*party{p.a, p.b})
	return p
}

// Keeps F2: the same with daemons that follow by themselves, whatever the lost server was in a dialog: initiator, target, sender, receiver.
func TestDaemonsEndWhatLostHistoryInAnAsynchronousFailover(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it makes servers of its own")
	}
	newServedPair(t, false).loseHistory(t)
}

// Keeps F1, L1: the daemon knows all servers, and follows the one that is promoted by itself.
func TestDaemonFollowsAFailover(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it makes servers of its own")
	}
	p := newServedPair(t, true)
	work := p.work
	stop := work.run(1)
	pause(3 * time.Second)
	p.primary.stopImmediately(t)
	p.standby.promote(t)
	pause(3 * time.Second)
	stop()
	work.drain()
	p.other.createDatabase(t, "court")
	bench := connect(t, p.other.DSN("court"))
	defer bench.Close(context.Background())
	h := work.judge(t, bench)
	t.Logf("%d messages sent, %d received, quiet after %v; %s", len(h.Sent), len(h.Received), (h.Quiet - h.Healed).Round(time.Millisecond),
		counts(work.done))
}

// Keeps F3: of two copies of a server that are both alive, made by its files, never both are listened to, so no conversation is made of
// both.
func TestOfTwoCopiesOfAServerOneIsRefused(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it makes servers of its own")
	}
	p := newPair(t, false)
	atA, atB := p.hand(p.a, "hand a"), p.hand(p.b, "hand b")
	handle, dialog := atA.begin("a", "b")
	atA.send(handle)
	atB.receive("target_queue", dialog, 1)
	atA.awaitAcknowledged()

	copied := p.primary.copyTo(t, "copy", false)
	inCopy := &hand{t: t, conn: connect(t, copied.DSN("a")), name: "copy"}
	defer inCopy.conn.Close(context.Background())
	outcast := p.courier(placeOf(p.pool(copied.DSN("a"))), p.places[1])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The original speaks under a later term than the one that the copy was made with; not before it has begun to lead anew, or it would be
	// taken to speak under the earlier one.
	p.couriers[0].anew.Store(true)
	await(t, "the original leads anew", func() bool { return !p.couriers[0].anew.Load() })
	atA.send(handle)
	atB.receive("target_queue", dialog, 2)
	inCopy.send(handle)
	p.work.observed.Outcasts = []checker.Outcast{{
		Direction: checker.Direction{Dialog: dialog, FromInitiator: true}, Stream: "copy", Invariant: "F3",
	}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		outcast.run(ctx)
	}()
	await(t, "the copy is refused", func() bool { return outcast.superseded.Load() > 0 })
	cancel()
	parleytest.Receive(t, done, "the end of the copy's courier")
	// Once this is decided, the copy becomes a broker of its own, and the original goes on.
	must(t, inCopy.conn, "select parley.new_broker()")
	atA.send(handle)
	atB.receive("target_queue", dialog, 3)
	p.judge()
}

// Keeps F3: a copy of a database knows that it is elsewhere, and its daemon transmits nothing.
func TestCopyOfADatabaseIsSwitchedOff(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it makes servers of its own")
	}
	s := newServer(t, "server")
	s.createDatabase(t, "a")
	s.administer(t, "create database copy template a")
	conn := connect(t, s.DSN("copy"))
	defer conn.Close(context.Background())
	if state := ask[string](t, conn, "select parley._p_broker_state()"); state != "ELSEWHERE" {
		t.Errorf("the broker of a copy is %s", state)
	}
	if _, err := conn.Exec(t.Context(), "select parley.enable_broker()"); code(err) != broker(9772) {
		t.Errorf("to enable the copy beside its original gives %v, want error 9772", err)
	}
	must(t, conn, "select parley.new_broker()")
	if state := ask[string](t, conn, "select parley._p_broker_state()"); state != "ENABLED" {
		t.Errorf("the new broker is %s", state)
	}
}
