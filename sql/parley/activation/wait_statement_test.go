package activation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// stillWaits fails when the statement of a waiter ends within some polls of it. Each poll is a transaction of its own, and a snapshot is no
// older than its transaction.
func stillWaits(b *sqltest.Broker, w *sqltest.Waiter) {
	b.Helper()
	for range 2 {
		b.WaitUntil("select coalesce(xact_start > $2, false) from pg_stat_activity where pid = $1", w.Backend, sqltest.Value[time.Time](b.Session, "select clock_timestamp()"))
	}
	select {
	case err := <-w.Done:
		b.Errorf("the wait has ended: %v", err)
	default:
	}
}

func TestWaitForMessageKeepsNoSnapshotAndNoNumber(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"jobs", "Answering"} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWaits(t)
			w := b.Waiting("call parley.wait_for_message($1, 600000)", queue)
			stillWaits(b, w)
			sqltest.Equal(b.Session, 0, "select count(*)::integer from pg_stat_activity where pid = $1 and backend_xid is not null", w.Backend)
		})
	}
}

// A number, too, keeps dead rows of the whole server from being removed.
func TestWhoWaitsInAFunctionTakesNoNumber(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"receive":              "select from parley.receive('Answering', timeout => 600000)",
		"receive from groups":  "select from parley.receive('Answering', timeout => 600000, groups => 10)",
		"receive by priority":  "select from parley.receive('Ranked', timeout => 600000)",
		"take":                 "select from parley.take('jobs', timeout => 600000)",
		"get a group":          "select from parley.get_conversation_group('Answering', timeout => 600000)",
		"get groups":           "select from parley.get_conversation_groups('Answering', 10, timeout => 600000)",
		"receive from a group": "select from parley.receive('Asking', conversation_handle => (select handle from public.one), timeout => 600000)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWaits(t)
			b.Exec("select parley.create_queue('Ranked'); update parley._p_queue set priorities = 96 where name = 'Ranked'")
			b.Exec("create table public.one as select parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => false) as handle")
			b.Exec("select setval('parley._p_next_alarm', 1), setval('parley._p_next_due', 1)")
			w := b.Waiting(statement)
			sqltest.Equal(b.Session, true, "select backend_xid is null from pg_stat_activity where pid = $1", w.Backend)
			// Something that others do meanwhile does not change that.
			b.Exec("select setval('parley._p_next_alarm', 1), setval('parley._p_next_due', 1)")
			b.Exec("select pg_sleep(1.2)")
			sqltest.Equal(b.Session, true, "select backend_xid is null and state = 'active' from pg_stat_activity where pid = $1", w.Backend)
		})
	}
}

// As with receive and take: a time that is not given is no time.
func TestWaitForMessageWithoutATimeDoesNotWait(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWaits(t)
	b.Exec("set statement_timeout = '20s'")
	for _, queue := range []string{"jobs", "Answering"} {
		b.Exec("call parley.wait_for_message($1, null)", queue)
	}
	b.Exec("select parley.pause_readers('jobs')")
	b.Exec("call parley.wait_for_message('jobs', null)")
}

// Each ends a wait that has begun, and each ends one that begins after it at once.
func TestWaitForMessageEndsWhenThereIsSomethingToReceive(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		queue, prepare, happens, received string
	}{
		"a message is sent": {
			queue:   "Answering",
			happens: "select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => false), 'DEFAULT', 'x'::bytea)",
		},
		"a message is sent with another priority": {
			queue: "Answering", prepare: "select parley.create_broker_priority('high', local_service_name => '//test/Answerer', priority_level => 8)",
			happens: "select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => false), 'DEFAULT', 'x'::bytea)",
		},
		"a message is put":                    {queue: "jobs", happens: "select parley.put('jobs', 'x'::text)"},
		"one is put with another priority":    {queue: "jobs", happens: "select parley.put('jobs', 'x'::text, priority => 9)"},
		"one is due that was put for later":   {queue: "jobs", happens: "select parley.put('jobs', 'x'::text, deliver_at => now() + interval '300 ms')"},
		"a timer is due":                      {queue: "Asking", happens: "select parley.begin_conversation_timer(parley.begin_dialog('//test/Asker', '//test/Answerer'), 0)"},
		"the queue's readers are resumed":     {queue: "jobs", prepare: "select parley.put('jobs', 'x'::text), parley.pause_readers('jobs')", happens: "select parley.resume_readers('jobs')"},
		"a name is written as SQL Server can": {queue: "dbo.[Answering]", happens: "select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => false), 'DEFAULT', 'x'::bytea)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWaits(t)
			if test.prepare != "" {
				b.Exec(test.prepare)
			}
			s := b.Connection()
			s.Exec("set parley.reader = on")
			w := b.StartIn(s, "call parley.wait_for_message($1)", test.queue)
			stillWaits(b, w)
			b.Exec(test.happens)
			w.RequireSuccess()
			s.Exec("call parley.wait_for_message($1)", test.queue)
			receive := "select count(*)::integer from parley.receive($1)"
			if test.queue == "jobs" {
				receive = "select count(*)::integer from parley.take($1)"
			}
			sqltest.Equal(s, 1, receive, test.queue)
			s.Exec("call parley.wait_for_message($1, 10)", test.queue)
		})
	}
}

// A message in another reader's hands is none: whoever waits for the next one does not spin. When it is given back it is one.
func TestWaitForMessagePassesByWhatOthersHaveInTheirHands(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ queue, hold string }{
		"received":                         {"Answering", "select from parley.receive('Answering')"},
		"a group that was locked":          {"Answering", "select parley.get_conversation_group('Answering')"},
		"received behind a savepoint":      {"Answering", "savepoint one; select from parley.receive('Answering')"},
		"received and gone back":           {"Answering", "savepoint one; select from parley.receive('Answering'); rollback to savepoint one"},
		"taken":                            {"jobs", "select from parley.take('jobs')"},
		"taken behind a savepoint":         {"jobs", "savepoint one; select from parley.take('jobs')"},
		"due and delivered by a session":   {"later", "select parley._p_deliver_due((select queue_id from parley._p_queue where name = 'later'), 10)"},
		"a timer whose group others hold":  {"Asking", "select from parley._p_conversation_group for update"},
		"taken, and others of its key too": {"keyed", "select from parley.take('keyed')"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWaits(t)
			b.Exec("select parley.create_queue(n, kind => 'SIMPLE') from unnest(array['later', 'keyed']) as n")
			b.Exec("select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => false), 'DEFAULT', 'x'::bytea), parley.put('jobs', 'x'::text)")
			b.Exec("select parley.put_batch('keyed', array['x', 'y'], key => 'k'), parley.put('later', 'x'::text, deliver_at => now() + interval '1 hour')")
			b.Exec("select parley.begin_conversation_timer(parley.begin_dialog('//test/Asker', '//test/Answerer'), 0)")
			b.Exec("update parley._p_delayed_message set due_at = now()")
			holder := b.Begin()
			holder.Exec(test.hold)
			w := b.Waiting("call parley.wait_for_message($1, 600000)", test.queue)
			stillWaits(b, w)
			holder.Rollback()
			w.RequireSuccess()
		})
	}
}

func TestWaitForMessageEndsWhenTheTimeIsOver(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWaits(t)
	for _, queue := range []string{"jobs", "Answering"} {
		s := b.Connection()
		s.Exec("set parley.lost = '7'")
		for _, timeout := range []int{0, 1, 30} {
			s.Exec("call parley.wait_for_message($1, $2)", queue, timeout)
		}
		// A time-out is one with any setting of the session.
		s.Exec("set parley.lost = 'nonsense'")
		s.Exec("call parley.wait_for_message($1, 5)", queue)
		s.Exec("set parley.reader = on")
		b.Exec("select parley.pause_readers($1)", queue)
		s.Exec("call parley.wait_for_message($1, 5)", queue)
	}
}

// It commits, so it begins where that ends nobody's transaction. The refusal states what to do.
func TestWaitForMessageIsRefusedInsideATransaction(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWaits(t)
	b.Exec("create table public.work (n integer)")
	b.Exec("create procedure public.half() language plpgsql as $$ begin insert into public.work values (1); call parley.wait_for_message('jobs', 1); end $$")
	b.Exec("create procedure public.caught() language plpgsql as $$ begin call parley.wait_for_message('jobs', 1); exception when others then raise; end $$")
	b.Exec("create procedure public.pinned() language plpgsql set search_path = pg_catalog as $$ begin call parley.wait_for_message('jobs', 1); end $$")
	b.Exec("create function public.inside() returns void language plpgsql as $$ begin call parley.wait_for_message('jobs', 1); end $$")
	for name, run := range map[string]func(s sqltest.Session){
		"begun":                          func(s sqltest.Session) { s.Exec("begin") },
		"of several statements as one":   nil,
		"of a driver that begins one":    func(s sqltest.Session) { s.Exec("begin; select 1") },
		"in which something was written": func(s sqltest.Session) { s.Exec("begin; select pg_current_xact_id()") },
	} {
		s := b.Connection()
		statement := "call parley.wait_for_message('jobs', 1)"
		if run == nil {
			statement = "select 1; call parley.wait_for_message('jobs', 1)"
		} else {
			run(s)
		}
		if refusal := s.Refuses(574, statement); !strings.Contains(refusal.Hint, "autocommit") {
			t.Errorf("%s: the hint is %q", name, refusal.Hint)
		}
		_, _ = s.DB.Exec(t.Context(), "rollback")
	}
	for _, statement := range []string{"call public.caught()", "call public.pinned()", "select public.inside()"} {
		b.Refuses(574, statement)
	}
	if refusal := b.Refuses(574, "call public.half()"); refusal.Hint != "Write COMMIT before the CALL." {
		t.Errorf("the hint is %q", refusal.Hint)
	}
	sqltest.Equal(b.Session, 0, "select count(*)::integer from public.work")
	// In another language of messages, where the server has it.
	s := b.Connection()
	if _, err := s.DB.Exec(t.Context(), "set lc_messages = 'de_DE.UTF-8'"); err == nil {
		s.Exec("begin")
		s.Refuses(574, "call parley.wait_for_message('jobs', 1)")
	}
}

func TestWaitForMessageCanBeCalledByAProcedureThatHasCommitted(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWaits(t)
	b.Exec("create table public.work (body text)")
	b.Exec(`create procedure public.read_jobs() language plpgsql as $$
		declare m record;
		begin
			loop
				select * into m from parley.take('jobs');
				insert into public.work (body) select parley.body_text(m.body) where m.body is not null;
				commit;
				exit when parley.body_text(m.body) = 'last';
				call parley.wait_for_message('jobs');
			end loop;
		end $$`)
	w := b.Waiting("call public.read_jobs()")
	b.Put("first", "last")
	w.RequireSuccess()
	sqltest.Equal(b.Session, "first last", "select string_agg(body, ' ' order by body) from public.work")
}

// Each poll has a snapshot of its own, whatever the default of the session is.
func TestWaitForMessageWaitsAtEachDefaultOfIsolation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWaits(t)
	for _, level := range []string{"repeatable read", "serializable"} {
		s := b.Connection()
		s.Exec("set default_transaction_isolation = '" + level + "'; set default_transaction_read_only = on")
		w := b.StartIn(s, "call parley.wait_for_message('jobs')")
		stillWaits(b, w)
		b.Put("x")
		w.RequireSuccess()
		b.RequireTaken(1, "x")
	}
}

func TestWaitForMessageAsksForTheRightToReceive(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWaits(t)
	role := b.Role("reader")
	s := b.As(role)
	for _, queue := range []string{"jobs", "Answering"} {
		s.Refuses(229, "call parley.wait_for_message($1, 0)", queue)
		b.Exec("select parley.grant('RECEIVE', 'queue', $1, $2)", queue, role)
		s.Exec("call parley.wait_for_message($1, 0)", queue)
		b.Exec("select parley.alter_queue($1, status => false)", queue)
		s.Refuses(9617, "call parley.wait_for_message($1, 0)", queue)
		b.Exec("select parley.alter_queue($1, status => true)", queue)
	}
	s.Refuses(208, "call parley.wait_for_message('nowhere', 0)")
	s.Refuses(8402, "call parley.wait_for_message('jobs', -2)")
	// A right that is taken away ends the wait, and a queue that is dropped.
	w := b.StartIn(s, "call parley.wait_for_message('Answering')")
	stillWaits(b, w)
	b.Exec("select parley.revoke('RECEIVE', 'queue', 'Answering', $1)", role)
	w.RequireRefusal(229)
	dropped := b.Waiting("call parley.wait_for_message('jobs')")
	b.Exec("select parley.drop_queue('jobs')")
	dropped.RequireRefusal(208)
}

// Objects of others, earlier on the search_path of the caller, are not what it calls.
func TestWaitForMessageMeansItsOwnNames(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWaits(t)
	s := b.Connection()
	s.Exec(`create schema trap;
		create function trap.pg_current_xact_id_if_assigned() returns xid8 language sql as 'select pg_catalog.pg_current_xact_id()';
		create function trap.equal(text, text) returns boolean language sql as 'select true';
		create operator trap.= (leftarg = text, rightarg = text, function = trap.equal);
		set search_path = trap, pg_catalog`)
	s.Exec("call parley.wait_for_message('jobs', 1)")
	sqltest.Equal(s, "trap, pg_catalog", "show search_path")
}

// A pooler that lends a connection for a transaction keeps it for the whole CALL, though that commits.
func TestWaitForMessageGoesThroughPgBouncerInTransactionMode(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWaits(t)
	conn, err := pgx.Connect(t.Context(), parleytest.PgBouncer(b, b.Pool))
	if err != nil {
		t.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(b.Context()) })
	s := sqltest.Session{T: t, DB: conn}
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(b.Context(), "call parley.wait_for_message('jobs')")
		done <- err
	}()
	b.WaitUntil("select exists (select from pg_stat_activity where query like 'call parley.wait_for%' and wait_event = 'PgSleep' and datname = current_database())")
	b.Put("x")
	if err := parleytest.Receive(t, done, "the end of the wait"); err != nil {
		t.Fatal(err)
	}
	s.RequireTaken(1, "x")
}

// One reader is alert when there is work for one: a session that is woken in vain sleeps longer, from call to call.
func TestSessionThatIsWokenInVainSleepsLonger(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWaits(t)
	s := b.Connection()
	initiator, target := b.Conversation()
	// A session that draws a position and rolls back stands for a message that another reader was quicker to take.
	w := b.StartIn(s, "select from parley.receive('Answering', conversation_handle => $1::uuid, timeout => 600000)", target)
	for range 40 {
		b.Exec("select nextval(position_sequence), pg_sleep(0.02) from parley._p_queue where name = 'Answering'")
	}
	b.Send(initiator, sqltest.Request, "x")
	w.RequireSuccess()
	lost := sqltest.Value[string](s, "show parley.lost")
	if lost < "2" {
		t.Errorf("a session that was woken in vain 40 times remembers %q", lost)
	}
	s.Exec("select from parley.receive('Answering', conversation_handle => $1::uuid, timeout => 1)", target)
	sqltest.Equal(s, string(lost[0]-1), "show parley.lost")
}
