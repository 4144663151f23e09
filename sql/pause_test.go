package sql_test

import (
	"slices"
	"testing"
)

// reader opens a session that says of itself that it is a reader.
func (b *broker) reader() session {
	b.Helper()
	s := b.connection()
	s.exec("set parley.reader = on")
	return s
}

func TestPausedReadersReceiveNothingAndOthersDo(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	reader := b.reader()
	equal(b.session, true, "select parley.pause_readers('Answering')")
	equal(b.session, false, "select parley.pause_readers('Answering')")
	handle := b.dialog()
	for _, body := range []string{"1", "2", "3"} {
		b.send(handle, request, body)
	}
	for _, nothing := range []string{
		"parley.receive('Answering')", "parley.receive('Answering', timeout => 20)", "parley.receive('Answering', groups => 10)",
		"parley.get_conversation_groups('Answering', 10)",
		"parley.receive('Answering', conversation_handle => (select conversation_handle from parley.conversation_endpoints where is_initiator = 0))",
	} {
		equal(reader, 0, "select count(*)::integer from "+nothing)
	}
	equal(reader, true, "select parley.get_conversation_group('Answering') is null")
	equal(reader, true, "select parley.get_conversation_group('Answering', 20) is null")
	equal(b.session, 0, "select count(*)::integer from parley.next_delivery('Answering')")
	if got := b.messages("select * from parley.receive('Answering', top => 1)"); !slices.Equal(bodiesOf(got), []string{"1"}) {
		t.Errorf("by hand received %q", bodiesOf(got))
	}
	// A reader of another queue goes on.
	b.send(b.farHandle(handle), reply, "answer")
	equal(reader, 1, "select count(*)::integer from parley.receive('Asking')")
	equal(b.session, true, "select readers_paused_at <= clock_timestamp() from parley.service_queues where name = 'Answering'")
	// What is not committed is not seen, and a rollback takes it back.
	tx := b.begin()
	tx.exec("select parley.resume_readers('Answering')")
	equal(reader, 0, "select count(*)::integer from parley.receive('Answering')")
	tx.rollback()
	equal(reader, 0, "select count(*)::integer from parley.receive('Answering')")
	equal(b.session, true, "select parley.resume_readers('Answering')")
	equal(b.session, false, "select parley.resume_readers('Answering')")
	equal(reader, 2, "select count(*)::integer from parley.receive('Answering')")
}

// A reader that waits gets nothing that arrives after the pause, and what arrived when it is over.
func TestPauseReachesAReaderThatWaits(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	reader := b.reader()
	got := make(chan int, 1)
	go func() {
		var count int
		if err := reader.db.QueryRow(t.Context(), "select count(*)::integer from parley.receive('Answering', timeout => 1500)").Scan(&count); err != nil {
			t.Error(err)
		}
		got <- count
	}()
	b.waitUntil("select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')")
	b.exec("select parley.pause_readers('Answering')")
	b.send(b.dialog(), request, "later")
	if count := <-got; count != 0 {
		t.Errorf("received %d during the pause", count)
	}
}

func TestPauseKeepsTheDaemonFromStartingReaders(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.activated("OWNER")
	equal(b.session, 1, "select count(*)::integer from parley._p_activated_queues()")
	b.exec("select parley.pause_readers('Answering')")
	equal(b.session, 0, "select count(*)::integer from parley._p_activated_queues()")
	b.exec("select parley.resume_readers('Answering')")
	b.exec("select parley.alter_queue('Answering', activation => false)")
	b.exec("select parley.create_webhook_activation('Answering', 'https://example.com/')")
	equal(b.session, 1, "select count(*)::integer from parley._p_activated_queues()")
	b.exec("select parley.pause_readers('Answering')")
	equal(b.session, 0, "select count(*)::integer from parley._p_activated_queues()")
}

func TestRightsOfPause(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	name := b.role("outsider")
	outsider := b.as(name)
	for _, statement := range []string{"select parley.pause_readers('Answering')", "select parley.resume_readers('Answering')"} {
		outsider.refuses(229, statement)
	}
	b.exec("select parley.grant('RECEIVE', 'queue', 'Answering', $1)", name)
	outsider.refuses(229, "select parley.pause_readers('Answering')")
	b.exec("select parley.grant('ALTER', 'queue', 'Answering', $1)", name)
	equal(outsider, true, "select parley.pause_readers('Answering')")
	b.refuses(208, "select parley.pause_readers('None')")
	b.refuses(9609, "select parley.pause_readers(null)")
}
