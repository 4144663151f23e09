//go:build unix

package reliability_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// One server for all of them: making one costs more than crashing it.
func TestCrash(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it makes a server of its own and crashes it again and again")
	}
	server := newOwnServer(t)
	t.Run("BackendInAnyTransaction", func(t *testing.T) { crashPlays(t, server, someScenarios(8), server.killBackend) })
	t.Run("ServerInAnyTransaction", func(t *testing.T) {
		crashPlays(t, server, someScenarios(4), func(t testing.TB, b *fixture, _ *session) {
			t.Helper()
			server.killServer(t, b)
		})
	})
	t.Run("CommitWithoutAnAnswer", func(t *testing.T) { crashCommits(t, server, someScenarios(4)) })
	t.Run("InMidRun", func(t *testing.T) { crashInMidRun(t, server) })
	t.Run("ShortWays", func(t *testing.T) { crashShortWays(t, server, false) })
	t.Run("ShortWaysWithRetention", func(t *testing.T) { crashShortWays(t, server, true) })
	t.Run("PoisonThatCrashesTheServer", func(t *testing.T) { crashPoison(t, server) })
	t.Run("PreparedSenderOutlivesIt", func(t *testing.T) { crashPrepared(t, server) })
}

// someScenarios gives the names of n scenarios at random: over many runs each gets its turn.
func someScenarios(n int) []string {
	names := slices.Collect(maps.Keys(scenarios))
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:min(n, len(names))]
}

// crashPlays crashes scenarios after some of their statements; keeps S1 to S5, S7, S8, S11.
func crashPlays(t *testing.T, server *ownServer, names []string, crash func(testing.TB, *fixture, *session)) {
	t.Helper()
	l := newPlays(t, server.fixture(t))
	for _, name := range names {
		steps := scenarios[name]
		p := l.newPlay(t)
		before := l.contents()
		done := 1 + rand.IntN(len(steps))
		p.run(t, steps[:done])
		crash(t, l.fixture, p.s)
		if after := l.contents(); after != before {
			t.Errorf("%s after %d of %d steps: there is\n%s\nbefore there was\n%s", name, done, len(steps), after, before)
		}
		p = l.newPlay(t)
		p.run(t, steps)
		p.s.commit()
	}
	crash(t, l.fixture, l.session(t))
	l.finish(t)
}

func crashCommits(t *testing.T, server *ownServer, names []string) {
	t.Helper()
	l := newPlays(t, server.fixture(t))
	for _, name := range names {
		p := l.newPlay(t)
		p.run(t, scenarios[name])
		p.s.commitAndCut()
		server.killServer(t, l.fixture)
	}
	l.finish(t)
}

// crashInMidRun crashes the server while many sessions work.
func crashInMidRun(t *testing.T, server *ownServer) {
	st := newStress(t, server.fixture(t), rand.Uint64())
	st.faults = true
	done := st.start(t)
	for i := range 3 {
		pause(time.Second)
		if i%2 == 0 {
			server.killServer(t, st.fixture)
		} else {
			victim := st.session(t)
			server.killBackend(t, st.fixture, victim)
		}
	}
	pause(time.Second)
	done()
	st.judge(t)
}

// A prepared transaction gets another name when the server restarts; it is still on its way.
func crashPrepared(t *testing.T, server *ownServer) {
	b := server.fixture(t)
	handle, _ := b.admin.conversation("opening")
	b.admin.receive(from{})
	sender := b.session(t)
	sender.begin()
	sender.send(handle, "late")
	b.passBy(t, 300)
	sender.exec("prepare transaction 'late'")
	b.passBy(t, 300)
	// Sessions that passed by did not wait for the disk.
	b.admin.exec("checkpoint")
	server.killServer(t, b)
	b.passBy(t, 700)
	b.admin.exec("commit prepared 'late'")
	wantBodies(t, b.admin.receive(from{}), "late")
}

// crashPoison has a message that takes the server down with its reader, and readers that set it aside and are killed.
func crashPoison(t *testing.T, server *ownServer) {
	t.Helper()
	b := server.fixture(t)
	b.admin.exec("select parley.alter_queue('target_queue', poison_rollbacks => 2)")
	_, poison := b.admin.conversation("poison", "after")
	b.admin.conversation("fine")
	for i, body := range []string{"poison", "poison", "fine"} {
		s := b.session(t)
		s.begin()
		wantBodies(t, s.receive(from{top: 1}), body)
		// A commit of any session makes the server remember what went before.
		b.admin.exec(fmt.Sprintf("create table remembered_%d ()", i))
		server.killBackend(t, b, s)
	}
	b.wantSetAside(t)
	wantBodies(t, b.admin.receive(from{}), "fine")
	b.wantSetAside(t, poison+" 2 2")
	server.killServer(t, b)
	b.wantSetAside(t, poison+" 2 2")
	if n := ask[int](b.admin, "select parley.retry_poison($1::uuid)", poison); n != 2 {
		t.Errorf("%d messages were put back, want 2", n)
	}
	wantBodies(t, b.admin.receive(from{}), "poison", "after")
}
