package sql_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// lonely gives a session that a cure may end without the pool noticing.
func (b *broker) lonely() session {
	b.Helper()
	conn, err := pgx.ConnectConfig(b.Context(), b.pool.Config().ConnConfig)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	return session{T: b.T, db: conn}
}

// waitUntilGone waits until a session that was asked to end has ended.
func (b *broker) waitUntilGone(pid string) {
	b.Helper()
	b.waitUntil("select not exists (select from pg_stat_activity where pid = $1::text::int)", pid)
}

func TestDiagnosisNamesTheSessionThatIsInTheWay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		code, kind string
		hold       func(b *broker, s session)
	}{
		{"sender-open", "session", func(b *broker, s session) {
			handle, _ := b.conversation()
			s.exec("begin")
			s.send(handle, request, "x")
		}},
		{"old-snapshot", "session", func(_ *broker, s session) {
			s.exec("begin isolation level repeatable read")
			s.exec("select")
		}},
		{"group-held", "conversation group", func(b *broker, s session) {
			handle := b.dialog()
			b.send(handle, request, "first")
			b.send(handle, request, "second")
			s.exec("begin")
			s.exec("select parley.receive('Answering', 1)")
		}},
		// The lock of a subtransaction has another number than its transaction.
		{"group-held", "conversation group", func(b *broker, s session) {
			handle := b.dialog()
			b.send(handle, request, "first")
			b.send(handle, request, "second")
			s.exec("begin")
			s.exec("savepoint one")
			s.exec("select parley.receive('Answering', 1)")
		}},
	} {
		t.Run(test.code, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			s := b.lonely()
			pid := value[string](s, "select pg_backend_pid()::text")
			test.hold(b, s)
			f := b.requireFinding(runtime, test.code)
			if f.ObjectKind != test.kind || !f.HasSince || !strings.Contains(f.ObjectName+f.Cause, pid) {
				t.Errorf("the finding does not name session %s: %+v", pid, f)
			}
			b.exec(f.Cure)
			b.waitUntilGone(pid)
			b.requireNoFinding(runtime, test.code)
		})
	}
}

func TestDiagnosisTakesShortTransactionsForWhatTheyAre(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	tx := b.begin()
	tx.send(tx.dialog(), request, "x")
	if found := b.findings("parley.diagnose_runtime(level => 'INFO')"); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}

func TestDiagnosisFindsPreparedTransactions(t *testing.T) {
	t.Parallel()
	b, neighbour := newWorld(t), newWorld(t)
	gid := b.prepareTransaction()
	neighbour.prepareTransaction()
	f := b.requireFinding(runtime, "old-prepared-transaction")
	if f.ObjectName != gid || !f.HasSince {
		t.Errorf("the finding is %+v, want one of %q since a time", f, gid)
	}
	for _, held := range []string{`1 messages that were received from queue "Asking"`, `messages to queue "Answering"`, "1 conversation groups"} {
		if !strings.Contains(f.Cause, held) {
			t.Errorf("the finding does not name %s: %s", held, f.Cause)
		}
	}
	b.requireNoFinding("parley.diagnose_runtime(level => 'INFO', patience => '1 hour')", "old-prepared-transaction")
	b.exec(f.Cure)
	b.requireNoFinding(runtime, "old-prepared-transaction")
}

// A session that waits in a statement keeps its snapshot; one that waits by wait_for_message does not.
func TestDiagnosisFindsReadersThatKeepASnapshot(t *testing.T) {
	t.Parallel()
	b := newWaits(t)
	w := b.waiting("select from parley.take('jobs', timeout => 600000)")
	b.waiting("call parley.wait_for_message('jobs')")
	b.waitUntil("select count(*) = 1 from parley.diagnose_runtime(level => 'INFO', patience => '700 ms') where code = 'reader-keeps-snapshot' and object_name = $1::integer::text and cause like '%jobs%' and cure like '%wait_for_message%'", w.backend)
	b.requireNoFinding("parley.diagnose_runtime(level => 'INFO')", "reader-keeps-snapshot")
}

// prepareTransaction receives and sends in a transaction that nobody finishes, and gives its identifier.
func (b *broker) prepareTransaction() (gid string) {
	b.Helper()
	s := b.lonely()
	handle, target := b.conversation()
	b.send(target, reply, "y")
	gid = "it's " + value[string](b.session, "select current_database()")
	s.exec("begin")
	s.send(handle, request, "x")
	s.receive("Asking")
	s.exec("prepare transaction '" + strings.ReplaceAll(gid, "'", "''") + "'")
	return gid
}

// A session that receives again and again from an empty queue is a reader, even if it leaves no other trace.
func TestQueueThatSomebodyListensOnIsSlowNotUnread(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.send(b.dialog(), request, "x")
	b.requireFinding(runtime, "no-reader")
	b.exec("select parley.listen_for_messages('Answering', 60)")
	b.requireNoFinding(runtime, "no-reader")
	b.requireFinding(runtime, "reader-slow")
	b.receive("Answering")
	b.requireNoFinding(runtime, "reader-slow")
}

// The time for which a listener has asked to be notified goes on when it leaves; it is no reader any more.
func TestListenerThatHasLeftIsNoReader(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.send(b.dialog(), request, "x")
	for name, leave := range map[string]func(s session){
		"ends its session": func(s session) { _ = s.db.(*pgx.Conn).Close(context.Background()) },
		"ends its listening": func(s session) {
			s.exec("select parley.listen_for_messages('Answering', 60)")
			s.exec("select parley.listen_for_messages('Answering', 0)")
			// Of another one that has left.
			b.exec("select setval(wakeup_sequence, extract(epoch from now())::bigint + 60) from parley._p_queue where name = 'Answering'")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := b.noticing("")
			s.T = t
			s.exec("select parley.listen_for_messages('Answering', 60)")
			b.requireNoFinding(runtime, "no-reader")
			leave(s)
			parleytest.Until(t, "nobody listens", func() bool {
				return value[int](b.session, "select count(*) from "+runtime+" where code = 'no-reader'") == 1
			})
			b.requireNoFinding(runtime, "reader-slow")
		})
	}
}

func TestActivationWithoutADaemonIsFound(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.activated("OWNER")
	b.requireNoFinding(runtime, "no-daemon")
	b.exec("select setval('parley._p_leader_lease', 1)")
	if f := b.requireFinding(runtime, "no-daemon"); !strings.HasPrefix(f.Cure, "parley serve --dsn postgres://") || strings.Contains(f.Cause, "other") || !strings.Contains(f.Cause, "Answering") {
		t.Errorf("found %+v", f)
	}
}

// report lets the daemon of activated report something about its readers.
func (b *broker) report(monitor string) {
	b.Helper()
	b.exec(`select parley._p_report_activation(l.term, jsonb_build_array(jsonb_build_object(
			'queue_id', q.queue_id, 'state', 'NOTIFIED', 'running_readers', 0, 'failures', 0,
			'started', 0, 'aborted', 0, 'limit_reached', 0) || $1::jsonb), null)
		from parley._p_leader as l, parley._p_queue as q
		where q.lookup_name = 'Answering'`, monitor)
}

func TestFailingReadersAreFoundWithTheirError(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.activated("OWNER")
	b.report(`{"failures": 3, "failing_for_s": 12, "last_error": "division by zero", "last_sqlstate": "22012"}`)
	f := b.requireFinding(runtime, "reader-failing")
	if f.ObjectName != "Answering" || !f.HasSince || !strings.Contains(f.Cause, "division by zero (SQLSTATE 22012)") {
		t.Errorf("found %+v", f)
	}
	b.exec(f.Cure)
	b.report(`{}`)
	b.requireNoFinding(runtime, "reader-failing")
}

// What a daemon refuses is cured at the daemon, not by switching activation off.
func TestFailingProgramIsCuredWhereItsFaultIs(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.activated("OWNER")
	b.exec("select parley.drop_activation('Answering')")
	b.exec("select parley.create_program_activation('Answering', array['/opt/reader'])")
	b.report(`{"failures": 1, "failing_for_s": 1, "last_sqlstate": "",
		"last_error": "program /opt/reader is not allowed by the operator of this daemon; allow it with parley serve --allow-program"}`)
	f := b.requireFinding(runtime, "reader-failing")
	if strings.Contains(f.Cause, "SQLSTATE") || !strings.HasPrefix(f.Cure, "parley serve --allow-program /opt/reader  -- ") {
		t.Errorf("found %+v", f)
	}
	b.report(`{"failures": 1, "failing_for_s": 1, "last_sqlstate": "", "last_error": "the program ended with 1"}`)
	if f := b.requireFinding(runtime, "reader-failing"); !strings.HasPrefix(f.Cure, "-- ") {
		t.Errorf("found %+v", f)
	}
}

func TestWebhookThatRefusesIsFound(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.activated("OWNER")
	b.exec("select parley.drop_activation('Answering')")
	b.exec("select parley.create_webhook_activation('Answering', 'https://example.com/in')")
	initiator := b.dialog()
	b.send(initiator, request, "x")
	b.requireNoFinding(runtime, "reader-failing")
	b.exec("select parley.fail_delivery('Answering', $1::uuid, 'the web address answered 500')", b.farHandle(initiator))
	f := b.requireFinding(runtime, "reader-failing")
	if f.ObjectName != "Answering" || !f.HasSince || !strings.Contains(f.Cause, "of a conversation; the last one of "+b.farHandle(initiator)+
		", attempt 1: the web address answered 500") || strings.Contains(f.Cause, "It said") {
		t.Errorf("found %+v", f)
	}
	b.exec("select parley.fail_delivery('Answering', $1::uuid, 'the web address answered 500', answer => 'no such customer')", b.farHandle(initiator))
	if f := b.requireFinding(runtime, "reader-failing"); !strings.HasSuffix(f.Cause, "attempt 2: the web address answered 500. It said: no such customer") {
		t.Errorf("found %+v", f)
	}
}

func TestUnqualifiedProcedureIsNotCalledMissing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("create procedure public.rd() language sql as 'select 1'")
	err := b.refuses(9614, "select parley.alter_queue('Answering', activation_procedure => 'rd', execute_as => 'OWNER', activation => true)")
	if !strings.Contains(err.Message, "rd is not qualified") || !strings.HasSuffix(err.Detail, "There is public.rd.") {
		t.Errorf("refused with %s: %s", err.Message, err.Detail)
	}
	err = b.refuses(9614, "select parley.alter_queue('Answering', activation_procedure => 'public.gone', execute_as => 'OWNER', activation => true)")
	if !strings.Contains(err.Message, "does not exist") {
		t.Errorf("refused with %s", err.Message)
	}
}

func TestActivationAtItsLimitIsSlow(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.activated("OWNER")
	b.send(b.dialog(), request, "x")
	b.report(`{"running_readers": 2}`)
	f := b.requireFinding(runtime, "reader-slow")
	b.exec(f.Cure)
	b.requireNoFinding(runtime, "reader-slow")
	equal(b.session, 4, "select max_readers::int from parley.service_queues where name = 'Answering'")
}

func TestMessagesFromTheFutureShowThatTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.send(b.dialog(), request, "x")
	b.exec("update parley._p_message set enqueued_at = now() + interval '1 hour'")
	if f := b.requireFinding("parley.diagnose_runtime()", "messages-from-the-future"); f.ObjectName != "Answering" {
		t.Errorf("found %+v", f)
	}
	// Once the time has come, all is well.
	b.exec("update parley._p_message set enqueued_at = now()")
	b.requireNoFinding("parley.diagnose_runtime()", "messages-from-the-future")
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
			b := newWorld(t)
			b.exec(test.lose)
			if f := b.requireFinding(configuration, "rights-lost"); f.Cure != "parley upgrade --repair" {
				t.Errorf("found %+v", f)
			}
			b.exec(test.restore)
			b.requireNoFinding(configuration, "rights-lost")
		})
	}
}
