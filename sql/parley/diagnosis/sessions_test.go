package diagnosis_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// waitUntilGone waits until a session that was asked to end has ended.
func waitUntilGone(b *sqltest.Broker, pid string) {
	b.Helper()
	b.WaitUntil("select not exists (select from pg_stat_activity where pid = $1::text::int)", pid)
}

func TestDiagnosisNamesTheSessionThatIsInTheWay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		code, kind string
		hold       func(b *sqltest.Broker, s sqltest.Session)
	}{
		{"sender-open", "session", func(b *sqltest.Broker, s sqltest.Session) {
			handle, _ := b.Conversation()
			s.Exec("begin")
			s.Send(handle, sqltest.Request, "x")
		}},
		{"old-snapshot", "session", func(_ *sqltest.Broker, s sqltest.Session) {
			s.Exec("begin isolation level repeatable read")
			s.Exec("select")
		}},
		{"group-held", "conversation group", func(b *sqltest.Broker, s sqltest.Session) {
			handle := b.Dialog()
			b.Send(handle, sqltest.Request, "first")
			b.Send(handle, sqltest.Request, "second")
			s.Exec("begin")
			s.Exec("select parley.receive('Answering', 1)")
		}},
		// The lock of a subtransaction has another number than its transaction.
		{"group-held", "conversation group", func(b *sqltest.Broker, s sqltest.Session) {
			handle := b.Dialog()
			b.Send(handle, sqltest.Request, "first")
			b.Send(handle, sqltest.Request, "second")
			s.Exec("begin")
			s.Exec("savepoint one")
			s.Exec("select parley.receive('Answering', 1)")
		}},
	} {
		t.Run(test.code, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			s := b.Lonely()
			pid := sqltest.Value[string](s, "select pg_backend_pid()::text")
			test.hold(b, s)
			f := b.RequireFinding(sqltest.Runtime, test.code)
			if f.ObjectKind != test.kind || !f.HasSince || !strings.Contains(f.ObjectName+f.Cause, pid) {
				t.Errorf("the finding does not name session %s: %+v", pid, f)
			}
			b.Exec(f.Cure)
			waitUntilGone(b, pid)
			b.RequireNoFinding(sqltest.Runtime, test.code)
		})
	}
}

func TestDiagnosisTakesShortTransactionsForWhatTheyAre(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	tx := b.Begin()
	tx.Send(tx.Dialog(), sqltest.Request, "x")
	if found := b.Findings("parley.diagnose_runtime(level => 'INFO')"); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}

func TestDiagnosisFindsPreparedTransactions(t *testing.T) {
	t.Parallel()
	b, neighbour := sqltest.NewWorld(t), sqltest.NewWorld(t)
	gid := prepareTransaction(b)
	prepareTransaction(neighbour)
	f := b.RequireFinding(sqltest.Runtime, "old-prepared-transaction")
	if f.ObjectName != gid || !f.HasSince {
		t.Errorf("the finding is %+v, want one of %q since a time", f, gid)
	}
	for _, held := range []string{`1 messages that were received from queue "Asking"`, `messages to queue "Answering"`, "1 conversation groups"} {
		if !strings.Contains(f.Cause, held) {
			t.Errorf("the finding does not name %s: %s", held, f.Cause)
		}
	}
	b.RequireNoFinding("parley.diagnose_runtime(level => 'INFO', patience => '1 hour')", "old-prepared-transaction")
	b.Exec(f.Cure)
	b.RequireNoFinding(sqltest.Runtime, "old-prepared-transaction")
}

// A session that waits in a statement keeps its snapshot; one that waits by wait_for_message does not.
func TestDiagnosisFindsReadersThatKeepASnapshot(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWaits(t)
	w := b.Waiting("select from parley.take('jobs', timeout => 600000)")
	// Another session has the turn to watch the queue: this one keeps its snapshot all the same.
	other := b.Blocked("select from parley.take('jobs', timeout => 600000)")
	b.Waiting("call parley.wait_for_message('jobs')")
	b.WaitUntil("select count(*) = 2 from parley.diagnose_runtime(level => 'INFO', patience => '700 ms') where code = 'reader-keeps-snapshot' and object_name in ($1::integer::text, $2::integer::text) and cause like '%jobs%' and cure like '%wait_for_message%'", w.Backend, other.Backend)
	b.WaitUntil("select count(*) = 2 from parley.broker_sessions where waits_in_queue = 'jobs' and pid in ($1, $2)", w.Backend, other.Backend)
	b.RequireNoFinding("parley.diagnose_runtime(level => 'INFO')", "reader-keeps-snapshot")
}

// prepareTransaction receives and sends in a transaction that nobody finishes, and gives its identifier.
func prepareTransaction(b *sqltest.Broker) (gid string) {
	b.Helper()
	s := b.Lonely()
	handle, target := b.Conversation()
	b.Send(target, sqltest.Reply, "y")
	gid = "it's " + sqltest.Value[string](b.Session, "select current_database()")
	s.Exec("begin")
	s.Send(handle, sqltest.Request, "x")
	s.Receive("Asking")
	s.Exec("prepare transaction '" + strings.ReplaceAll(gid, "'", "''") + "'")
	return gid
}

// A session that receives again and again from an empty queue is a reader, even if it leaves no other trace.
func TestQueueThatSomebodyListensOnIsSlowNotUnread(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Send(b.Dialog(), sqltest.Request, "x")
	b.RequireFinding(sqltest.Runtime, "no-reader")
	b.Exec("select parley.listen_for_messages('Answering', 60)")
	b.RequireNoFinding(sqltest.Runtime, "no-reader")
	b.RequireFinding(sqltest.Runtime, "reader-slow")
	b.Receive("Answering")
	b.RequireNoFinding(sqltest.Runtime, "reader-slow")
}

// The time for which a listener has asked to be notified goes on when it leaves; it is no reader any more.
func TestListenerThatHasLeftIsNoReader(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Send(b.Dialog(), sqltest.Request, "x")
	for name, leave := range map[string]func(s sqltest.Session){
		"ends its session": func(s sqltest.Session) { _ = s.DB.(*pgx.Conn).Close(context.Background()) },
		"ends its listening": func(s sqltest.Session) {
			s.Exec("select parley.listen_for_messages('Answering', 60)")
			s.Exec("select parley.listen_for_messages('Answering', 0)")
			// Of another one that has left.
			b.Exec("select setval(wakeup_sequence, extract(epoch from now())::bigint + 60) from parley._p_queue where name = 'Answering'")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := b.Noticing("")
			s.T = t
			s.Exec("select parley.listen_for_messages('Answering', 60)")
			b.RequireNoFinding(sqltest.Runtime, "no-reader")
			leave(s)
			parleytest.Until(t, "nobody listens", func() bool {
				return sqltest.Value[int](b.Session, "select count(*) from "+sqltest.Runtime+" where code = 'no-reader'") == 1
			})
			b.RequireNoFinding(sqltest.Runtime, "reader-slow")
		})
	}
}

func TestActivationWithoutADaemonIsFound(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Activated("OWNER")
	b.RequireNoFinding(sqltest.Runtime, "no-daemon")
	b.Exec("select setval('parley._p_leader_lease', 1)")
	if f := b.RequireFinding(sqltest.Runtime, "no-daemon"); !strings.HasPrefix(f.Cure, "parley serve --dsn postgres://") || strings.Contains(f.Cause, "other") || !strings.Contains(f.Cause, "Answering") {
		t.Errorf("found %+v", f)
	}
}

func TestSchedulesWithoutADaemonAreFound(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.schedule('tick', 'jobs', 'x', every => '1 s'), parley.schedule('tock', 'jobs', 'x', every => '1 s')")
	if f := b.RequireFinding(sqltest.Runtime, "no-daemon"); !strings.Contains(f.Cause, `"tick" and one other`) || !strings.HasPrefix(f.Cure, "parley serve") {
		t.Errorf("found %+v", f)
	}
	b.Exec("select parley.pause_schedule('tick'), parley.pause_schedule('tock')")
	b.RequireNoFinding(sqltest.Runtime, "no-daemon")
}

// A schedule that fails is retried every minute in silence: somebody who looks has to be told.
func TestSchedulesThatFailAreFound(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.schedule('tick', 'jobs', 'x', cron => '0 0 29 2 *')")
	b.RequireNoFinding(sqltest.Runtime, "schedule-failing")
	b.Exec(`select parley._p_run_due(schedule_id, null, 0, null, 'never due') from parley._p_schedule`)
	f := b.RequireFinding(sqltest.Runtime, "schedule-failing")
	if f.ObjectName != "tick" || !strings.Contains(f.Cause, "never due") || !strings.Contains(f.Cure, "parley.run_schedule('tick')") {
		t.Errorf("found %+v", f)
	}
	b.Exec("select parley.pause_schedule('tick')")
	b.RequireNoFinding(sqltest.Runtime, "schedule-failing")
}

// report lets the daemon of activated report something about its readers.
func report(b *sqltest.Broker, monitor string) {
	b.Helper()
	b.Exec(`select parley._p_report_activation(l.term, jsonb_build_array(jsonb_build_object(
			'queue_id', q.queue_id, 'state', 'NOTIFIED', 'running_readers', 0, 'failures', 0,
			'started', 0, 'aborted', 0, 'limit_reached', 0) || $1::jsonb), null)
		from parley._p_leader as l, parley._p_queue as q
		where q.lookup_name = 'Answering'`, monitor)
}

func TestFailingReadersAreFoundWithTheirError(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Activated("OWNER")
	report(b, `{"failures": 3, "failing_for_s": 12, "last_error": "division by zero", "last_sqlstate": "22012"}`)
	f := b.RequireFinding(sqltest.Runtime, "reader-failing")
	if f.ObjectName != "Answering" || !f.HasSince || !strings.Contains(f.Cause, "division by zero (SQLSTATE 22012)") {
		t.Errorf("found %+v", f)
	}
	b.Exec(f.Cure)
	report(b, `{}`)
	b.RequireNoFinding(sqltest.Runtime, "reader-failing")
}

// A refusal of a daemon is cured at the daemon, not by switching activation off.
func TestFailingProgramIsCuredWhereItsFaultIs(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Activated("OWNER")
	b.Exec("select parley.drop_activation('Answering')")
	b.Exec("select parley.create_program_activation('Answering', array['/opt/reader'])")
	report(b, `{"failures": 1, "failing_for_s": 1, "last_sqlstate": "",
		"last_error": "program /opt/reader is not allowed by the operator of this daemon; allow it with parley serve --allow-program"}`)
	f := b.RequireFinding(sqltest.Runtime, "reader-failing")
	if strings.Contains(f.Cause, "SQLSTATE") || !strings.HasPrefix(f.Cure, "parley serve --allow-program /opt/reader  -- ") {
		t.Errorf("found %+v", f)
	}
	report(b, `{"failures": 1, "failing_for_s": 1, "last_sqlstate": "", "last_error": "the program ended with 1"}`)
	if f := b.RequireFinding(sqltest.Runtime, "reader-failing"); !strings.HasPrefix(f.Cure, "-- ") {
		t.Errorf("found %+v", f)
	}
}

func TestWebhookThatRefusesIsFound(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Activated("OWNER")
	b.Exec("select parley.drop_activation('Answering')")
	b.Exec("select parley.create_webhook_activation('Answering', 'https://example.com/in')")
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "x")
	b.RequireNoFinding(sqltest.Runtime, "reader-failing")
	b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'the web address answered 500')", b.FarHandle(initiator))
	f := b.RequireFinding(sqltest.Runtime, "reader-failing")
	if f.ObjectName != "Answering" || !f.HasSince || !strings.Contains(f.Cause, "of a conversation; the last one of "+b.FarHandle(initiator)+
		", attempt 1: the web address answered 500") || strings.Contains(f.Cause, "It said") {
		t.Errorf("found %+v", f)
	}
	b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'the web address answered 500', answer => 'no such customer')", b.FarHandle(initiator))
	if f := b.RequireFinding(sqltest.Runtime, "reader-failing"); !strings.HasSuffix(f.Cause, "attempt 2: the web address answered 500. It said: no such customer") {
		t.Errorf("found %+v", f)
	}
}

func TestUnqualifiedProcedureIsNotCalledMissing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("create procedure public.rd() language sql as 'select 1'")
	err := b.Refuses(9614, "select parley.alter_queue('Answering', activation_procedure => 'rd', execute_as => 'OWNER', activation => true)")
	if !strings.Contains(err.Message, "rd is not qualified") || !strings.HasSuffix(err.Detail, "There is public.rd.") {
		t.Errorf("refused with %s: %s", err.Message, err.Detail)
	}
	err = b.Refuses(9614, "select parley.alter_queue('Answering', activation_procedure => 'public.gone', execute_as => 'OWNER', activation => true)")
	if !strings.Contains(err.Message, "does not exist") {
		t.Errorf("refused with %s", err.Message)
	}
}

func TestActivationAtItsLimitIsSlow(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Activated("OWNER")
	b.Send(b.Dialog(), sqltest.Request, "x")
	report(b, `{"running_readers": 2}`)
	f := b.RequireFinding(sqltest.Runtime, "reader-slow")
	b.Exec(f.Cure)
	b.RequireNoFinding(sqltest.Runtime, "reader-slow")
	sqltest.Equal(b.Session, 4, "select max_readers::int from parley.service_queues where name = 'Answering'")
}

func TestMessagesFromTheFutureShowThatTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Send(b.Dialog(), sqltest.Request, "x")
	b.Exec("update parley._p_message set enqueued_at = now() + interval '1 hour'")
	if f := b.RequireFinding("parley.diagnose_runtime()", "messages-from-the-future"); f.ObjectName != "Answering" {
		t.Errorf("found %+v", f)
	}
	// Once the time has come, all is well.
	b.Exec("update parley._p_message set enqueued_at = now()")
	b.RequireNoFinding("parley.diagnose_runtime()", "messages-from-the-future")
}

func TestLostGrantsAreFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, lose, restore string }{
		{
			"of a private function",
			"drop function parley._p_error_body(integer, text); create function parley._p_error_body(integer, text) returns bytea language sql as 'select null::bytea'",
			"revoke all on function parley._p_error_body(integer, text) from public",
		},
		{"of the schema", "revoke usage on schema parley from public", "grant usage on schema parley to public"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec(test.lose)
			if f := b.RequireFinding(sqltest.Configuration, "rights-lost"); f.Cure != "parley upgrade --repair" {
				t.Errorf("found %+v", f)
			}
			b.Exec(test.restore)
			b.RequireNoFinding(sqltest.Configuration, "rights-lost")
		})
	}
}
