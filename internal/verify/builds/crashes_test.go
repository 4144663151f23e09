package builds_test

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/parley-broker/parley/parleytest"
)

// stumblingBlocks ends a session at a write that it has been told: in front of the nth statement, its own or one inside of a function, that
// inserts into a table of the broker, updates it or deletes from it.
const stumblingBlocks = `
	create function public.stumble() returns trigger language plpgsql as $$
	begin
		perform set_config('stumble.at', (current_setting('stumble.at')::integer - 1)::text, false);
		if current_setting('stumble.at') = '0' then
			if current_setting('stumble.kills')::boolean then
				perform pg_terminate_backend(pg_backend_pid());
				perform pg_sleep(60);
			end if;
			raise 'stumbled';
		end if;
		return null;
	end
	$$;
	do $$
	declare
		v_table regclass;
	begin
		for v_table in select c.oid from pg_class as c where c.relnamespace = 'parley'::regnamespace and c.relkind in ('r', 'p') loop
			execute format($f$
				create trigger stumble before insert or update or delete on %s for each statement
				when (nullif(current_setting('stumble.at', true), '') is not null) execute function public.stumble()
			$f$, v_table);
		end loop;
	end
	$$`

// crash takes a session away in the middle of its transaction and connects it again: its backend is killed. Where nothing crashes it rolls
// back.
func (w *world) crash(i int) string {
	w.t.Helper()
	if w.server == nil {
		w.exec(i, "rollback")
		return "gone"
	}
	// The connection ends when the process does, with all that it had locked. pg_terminate_backend, told to wait, looks every 100 ms.
	w.admin("select pg_terminate_backend($1)", w.sessions[i].PgConn().PID())
	_, _ = io.Copy(io.Discard, w.sessions[i].PgConn().Conn())
	_ = w.sessions[i].Close(w.t.Context())
	w.connect(i)
	return "gone"
}

// stumble makes a call of which the session does not get further than to some write. Where nothing crashes an exception ends it there.
func (w *world) stumble(i, at int, play func(w *world) string) string {
	w.t.Helper()
	if w.sessions[i].PgConn().TxStatus() == 'I' {
		w.exec(i, "begin")
	}
	const set = "select set_config('stumble.at', $1, false), set_config('stumble.kills', $2, false)"
	w.exec(i, set, fmt.Sprint(at), fmt.Sprint(w.server != nil))
	w.isStumbling = true
	play(w)
	w.isStumbling = false
	return w.crash(i)
}

// stop shuts the server down at once, without a checkpoint, and waits until it is started again. Where nothing crashes all sessions roll
// back.
func (w *world) stop() string {
	w.t.Helper()
	if w.server == nil {
		for i := range w.sessions {
			w.crash(i)
		}
		return "gone"
	}
	var pid int
	const postmaster = `select split_part(pg_read_file('postmaster.pid'), E'\n', 1)::integer`
	if err := w.pool.QueryRow(w.t.Context(), postmaster).Scan(&pid); err != nil {
		w.t.Fatal(err)
	}
	postmasterProcess, err := os.FindProcess(pid)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := postmasterProcess.Signal(syscall.SIGQUIT); err != nil {
		w.t.Fatal(err)
	}
	parleytest.Until(w.t, "both sessions are gone", func() bool {
		for i := range w.sessions {
			if w.sessions[i].Ping(w.t.Context()) == nil {
				return false
			}
		}
		return true
	})
	parleytest.Until(w.t, "the server is there again", func() bool {
		w.pool.Reset()
		return w.pool.Ping(w.t.Context()) == nil
	})
	for i := range w.sessions {
		w.connect(i)
	}
	return "gone"
}

// exec makes a statement of a session that does not fail.
func (w *world) exec(i int, statement string, arguments ...any) {
	w.t.Helper()
	if _, err := w.sessions[i].Exec(w.t.Context(), statement, arguments...); err != nil {
		w.t.Fatalf("%s: %s: %v", w.name, statement, err)
	}
}

func (s *script) crashBetween(i int) action {
	s.savepoints[i] = 0
	s.deeds.Crashes++
	return action{"its backend is killed", func(w *world) string { return w.crash(i) }}
}

// crashInside ends a session inside of a call. Two builds write in different orders: what they delete and mark before they are killed
// differs, and RECEIVE by others may tell. So a call that deletes is killed at its first write or behind its last one there.
func (s *script) crashInside(i int, labels []string) action {
	const behind = 1000
	a, isTaking := s.drawCall(i, s.random.IntN(33), labels)
	at := 1 + s.random.IntN(12)
	if isTaking && !s.isOneBuild && at > 1 {
		at = behind
	}
	s.savepoints[i] = 0
	s.deeds.Stumbles++
	return action{fmt.Sprintf("its backend is killed at write %d of: %s", at, a.name), func(w *world) string {
		return w.stumble(i, at, a.play)
	}}
}

// stopRarity says how seldom a server is stopped where it might be: once in so many times. That takes as long as some scripts.
func (s *script) stopRarity() int {
	if s.isOneBuild {
		return 1
	}
	return 12
}

func (s *script) crashServer() action {
	s.savepoints = [2]int{}
	s.deeds.Restarts++
	return action{"the server is stopped at once", func(w *world) string { return w.stop() }}
}
