//go:build unix

package reliability_test

import (
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed short_ways.sql
var shortWays string

// crashShortWays kills backends and the server at random while dialogs are begun by begin_and_send and by get_conversation, received in
// groups and ended by both sides, and messages are put into a simple queue and taken; keeps S1 to S5, S9, S11. PARLEY_STRESS_SECONDS
// makes it longer. Between two crashes the workload gets on, however slow the machine is.
func crashShortWays(t *testing.T, server *ownServer, isRetained bool) {
	t.Helper()
	b := server.fixture(t)
	st := newStress(t, b, rand.Uint64())
	st.faults = true
	for _, statement := range []string{
		"select parley.create_queue('jobs', kind => 'simple', deduplication_seconds => 86400)",
		"select parley.alter_queue('jobs', poison_message_handling => false)",
		"select parley.alter_service('initiator', deduplication_seconds => 86400)",
	} {
		b.admin.exec(statement)
	}
	if isRetained {
		b.admin.exec("select parley.alter_queue('initiator_queue', retention => true)")
	}
	if _, err := b.admin.conn.PgConn().Exec(t.Context(), shortWays).ReadAll(); err != nil {
		t.Fatal(err)
	}
	done := st.let(
		t, -1,
		(*actor).beginShortly, (*actor).beginShortly, (*actor).sendPooled, (*actor).sendPooled,
		(*actor).receiveGroups, (*actor).receiveGroups, (*actor).receiveGroups,
		(*actor).putSome, (*actor).putSome, (*actor).takeSome, (*actor).takeSome,
	)
	seconds := 0
	if v := os.Getenv("PARLEY_STRESS_SECONDS"); v != "" {
		seconds, _ = strconv.Atoi(v)
	}
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	for crash, entries := 0, 0; crash < 4 || time.Now().Before(until); crash++ {
		entries = st.awaitEntries(t, entries+100)
		pause(time.Duration(rand.IntN(300)) * time.Millisecond)
		if rand.IntN(3) == 0 {
			server.killServer(t, b)
		} else {
			server.killBusyBackend(t, b)
		}
	}
	st.awaitEntries(t, 500)
	done()
	st.judgeShortWays(t)
}

// killBusyBackend kills the process of a session at random that is in a transaction, if there is one.
func (o *ownServer) killBusyBackend(t testing.TB, b *fixture) {
	t.Helper()
	pid := ask[int](b.admin, `
		select coalesce(min(pid), 0) from (
			select pid from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' and xact_start is not null
			order by random() limit 1
		) as s`)
	if pid == 0 {
		return
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o.comeBack(t, b)
}

// awaitEntries waits until the ledgers have so many entries, and gives how many they have.
func (st *stress) awaitEntries(t *testing.T, wanted int) (entries int) {
	t.Helper()
	st.await(t, func() bool {
		entries = ask[int](st.admin, `
			select (select count(*) from ledger.received) + (select count(*) from short_ways.begun) + (select count(*) from short_ways.taken)`)
		return entries >= wanted || t.Failed()
	})
	return entries
}

// judgeShortWays receives, takes and ends everything that is left, and asks both ledgers.
func (st *stress) judgeShortWays(t *testing.T) {
	t.Helper()
	s := st.session(t)
	st.await(t, func() bool {
		s.exec("select parley.fire_timers()")
		return ask[bool](s, "select not exists (select from parley._p_delayed_send) and not exists (select from parley._p_delayed_message)")
	})
	for ask[int](s, "select short_ways.take(1000)") > 0 {
	}
	st.drain(t, s)
	st.endAll(t, s)
	// A side that somebody held when it ended goes by an alarm.
	st.await(t, func() bool {
		s.exec("select parley.fire_timers()")
		return ask[bool](s, "select not exists (select from parley._p_endpoint)")
	})
	h := st.verdict(t)
	st.wantNothingLeft(t)
	for _, table := range []string{
		"_p_expedited", "_p_copy_progress", "_p_delayed_send", "_p_delayed_message", "_p_set_aside", "_p_failure", "_p_set_aside_message",
	} {
		if n := ask[int](s, "select count(*) from parley."+table); n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
	for _, line := range collect(
		t, s, "select violations || ' ' || fault from short_ways.verdict where violations <> 0", pgx.RowTo[string],
	) {
		t.Error(line)
	}
	// When their time is over, keys and tombstones go too.
	s.exec("update parley._p_tombstone set expires_at = clock_timestamp()")
	s.exec("update parley._p_deduplication_key set expires_at = clock_timestamp()")
	st.await(t, func() bool {
		s.exec("select parley.fire_timers()")
		return ask[bool](
			s, "select not exists (select from parley._p_tombstone) and not exists (select from parley._p_deduplication_key)",
		)
	})
	taken := ask[int](s, "select count(*) from short_ways.taken")
	t.Logf("%d sent, %d received, %d ends, %d taken", len(h.Sent), len(h.Received), len(h.Ended), taken)
	if len(h.Received) == 0 || len(h.EndsReceived) == 0 || taken == 0 {
		t.Error("the workload did nothing")
	}
}

// someDelay is a delay in milliseconds, null for most.
func (a *actor) someDelay() *int {
	if a.random.IntN(8) != 0 {
		return nil
	}
	delay := a.random.IntN(400)
	return &delay
}

// beginShortly begins a dialog with its only message, with a deduplication key or without, and ends it at once or leaves that to the
// reader.
func (a *actor) beginShortly() error {
	var key *string
	if a.random.IntN(3) == 0 {
		name := fmt.Sprint("key ", a.random.IntN(300))
		key = &name
	}
	stream := "once " + a.name
	handle, err := tryAsk[*string](
		a.s, "select short_ways.begin_and_send($1, $2, $3, $4)::text", stream, key, a.someDelay(), int64(a.now()),
	)
	if err != nil || handle == nil {
		return err
	}
	a.sent = append(a.sent, sending{*handle, stream, 1})
	if a.random.IntN(4) == 0 {
		return a.s.try("select ledger.end_conversation($1::uuid, null)", *handle)
	}
	return nil
}

// sendPooled sends on a conversation that it shares with others.
func (a *actor) sendPooled() error {
	pause(time.Duration(a.random.IntN(10)) * time.Millisecond)
	handle, err := tryAsk[string](
		a.s, "select parley.get_conversation('initiator', 'target', key => $1)::text", fmt.Sprint("pool ", a.random.IntN(4)),
	)
	if err != nil {
		return err
	}
	return a.sendOne(handle)
}

// receiveGroups receives from many groups. A dialog that was begun by begin_and_send ends with its message, and the other side after it.
func (a *actor) receiveGroups() error {
	queue := "target_queue"
	if a.random.IntN(2) == 0 {
		queue = "initiator_queue"
	}
	rows, err := a.s.conn.Query(
		context.Background(),
		"select handle::text, conversation_group::text, is_end, coalesce(stream, '') as stream from ledger.receive($1, $2, groups => $3)",
		queue, 1+a.random.IntN(30), 1+a.random.IntN(20),
	)
	if err != nil {
		return err
	}
	type received struct {
		delivery
		Stream string
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[received])
	if err != nil {
		return err
	}
	held, ended := map[string]bool{}, map[string]bool{}
	for _, d := range got {
		if !held[d.Group] {
			held[d.Group] = true
			a.hold(a.s, []delivery{d.delivery})
		}
	}
	for _, d := range got {
		if ended[d.Handle] || !d.IsEnd && !strings.HasPrefix(d.Stream, "once ") {
			continue
		}
		ended[d.Handle] = true
		if err := a.s.try("select ledger.end_conversation($1::uuid, null)", d.Handle); err != nil {
			return err
		}
	}
	if len(got) == 0 {
		pause(time.Duration(a.random.IntN(5)) * time.Millisecond)
	}
	return nil
}

// putSome puts a message, or several, with a key or without, now or later.
func (a *actor) putSome() error {
	switch a.random.IntN(4) {
	case 0:
		key := fmt.Sprint("key ", a.random.IntN(4))
		return a.s.try("select short_ways.put($1, $1, $2, null)", key, 1+a.random.IntN(5))
	case 1:
		return a.s.try("select short_ways.put_once($1)", fmt.Sprint("job ", a.random.IntN(300)))
	default:
		return a.s.try("select short_ways.put($1, null, $2, $3)", a.name, 1+a.random.IntN(5), a.someDelay())
	}
}

func (a *actor) takeSome() error {
	taken, err := tryAsk[int](a.s, "select short_ways.take($1)", 1+a.random.IntN(20))
	if err == nil && taken == 0 {
		pause(time.Duration(a.random.IntN(5)) * time.Millisecond)
	}
	return err
}
