package receive_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// newReader opens a session that says of itself that it is a reader.
func newReader(b *sqltest.Broker) sqltest.Session {
	b.Helper()
	s := b.Connection()
	s.Exec("set parley.reader = on")
	return s
}

func TestPausedReadersReceiveNothingAndOthersDo(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	reader := newReader(b)
	sqltest.Equal(b.Session, true, "select parley.pause_readers('Answering')")
	sqltest.Equal(b.Session, false, "select parley.pause_readers('Answering')")
	handle := b.Dialog()
	for _, body := range []string{"1", "2", "3"} {
		b.Send(handle, sqltest.Request, body)
	}
	for _, nothing := range []string{
		"parley.receive('Answering')", "parley.receive('Answering', timeout => 20)", "parley.receive('Answering', groups => 10)",
		"parley.get_conversation_groups('Answering', 10)",
		"parley.receive('Answering', conversation_handle => (select conversation_handle from parley.conversation_endpoints where is_initiator = 0))",
	} {
		sqltest.Equal(reader, 0, "select count(*)::integer from "+nothing)
	}
	sqltest.Equal(reader, true, "select parley.get_conversation_group('Answering') is null")
	sqltest.Equal(reader, true, "select parley.get_conversation_group('Answering', 20) is null")
	sqltest.Equal(b.Session, 0, "select count(*)::integer from parley.next_delivery('Answering')")
	if got := b.Messages("select * from parley.receive('Answering', top => 1)"); !slices.Equal(sqltest.BodiesOf(got), []string{"1"}) {
		t.Errorf("by hand received %q", sqltest.BodiesOf(got))
	}
	// A reader of another queue goes on.
	b.Send(b.FarHandle(handle), sqltest.Reply, "answer")
	sqltest.Equal(reader, 1, "select count(*)::integer from parley.receive('Asking')")
	sqltest.Equal(b.Session, true, "select readers_paused_at <= clock_timestamp() from parley.service_queues where name = 'Answering'")
	// A pause that is not committed is not seen, and a rollback takes it back.
	tx := b.Begin()
	tx.Exec("select parley.resume_readers('Answering')")
	sqltest.Equal(reader, 0, "select count(*)::integer from parley.receive('Answering')")
	tx.Rollback()
	sqltest.Equal(reader, 0, "select count(*)::integer from parley.receive('Answering')")
	sqltest.Equal(b.Session, true, "select parley.resume_readers('Answering')")
	sqltest.Equal(b.Session, false, "select parley.resume_readers('Answering')")
	sqltest.Equal(reader, 2, "select count(*)::integer from parley.receive('Answering')")
}

// A reader that waits gets nothing that arrives after the pause, and what arrived when it is over.
func TestPauseReachesAReaderThatWaits(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	reader := newReader(b)
	got := make(chan int, 1)
	go func() {
		var count int
		if err := reader.DB.QueryRow(t.Context(), "select count(*)::integer from parley.receive('Answering', timeout => 1500)").Scan(&count); err != nil {
			t.Error(err)
		}
		got <- count
	}()
	b.WaitUntil("select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')")
	b.Exec("select parley.pause_readers('Answering')")
	b.Send(b.Dialog(), sqltest.Request, "later")
	if count := <-got; count != 0 {
		t.Errorf("received %d during the pause", count)
	}
}

func TestPauseKeepsTheDaemonFromStartingReaders(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Activated("OWNER")
	sqltest.Equal(b.Session, 1, "select count(*)::integer from parley._p_activated_queues()")
	b.Exec("select parley.pause_readers('Answering')")
	sqltest.Equal(b.Session, 0, "select count(*)::integer from parley._p_activated_queues()")
	b.Exec("select parley.resume_readers('Answering')")
	b.Exec("select parley.alter_queue('Answering', activation => false)")
	b.Exec("select parley.create_webhook_activation('Answering', 'https://example.com/')")
	sqltest.Equal(b.Session, 1, "select count(*)::integer from parley._p_activated_queues()")
	b.Exec("select parley.pause_readers('Answering')")
	sqltest.Equal(b.Session, 0, "select count(*)::integer from parley._p_activated_queues()")
}
