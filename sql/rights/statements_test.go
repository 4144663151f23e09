package rights_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A key of put is one of the role that puts: nobody who may put into the queue suppresses another's message by using its key first.
func TestRightsToAKeyOfPutAreThoseOfItsRole(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.create_queue('jobs', kind => 'simple')")
	shop, guesser := b.Role("shop"), b.Role("guesser")
	for _, role := range []string{shop, guesser} {
		b.Exec("select parley.grant('SEND', 'queue', 'jobs', $1)", role)
	}
	for _, put := range []string{sqltest.PutOnce, "select (parley.put('jobs', convert_to($1, 'UTF8'), deduplication_key => $2)).is_duplicate"} {
		key := put
		sqltest.Equal(b.As(guesser), false, put, "nothing", key)
		sqltest.Equal(b.As(shop), false, put, "the order", key)
		sqltest.Equal(b.As(shop), true, put, "the order", key)
		sqltest.Equal(b.As(guesser), true, put, "nothing", key)
	}
	sqltest.Equal(b.Session, 4, "select count(*)::int from parley.peek_messages('jobs', null)")
}

func TestRightsAreAskedForAtEachFirstMessage(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	sender, readers := b.Role("sender"), b.Role("readers")
	b.Exec("grant " + sqltest.Quote(readers) + " to " + sqltest.Quote(sender))
	b.Exec("select parley.grant('RECEIVE', 'queue', 'Asking', $1), parley.grant('REFERENCES', 'contract', '//test/Work', $1)", readers)
	s := b.As(sender)
	s.Send(s.Dialog(), sqltest.Request, "before")
	handle := s.Dialog()
	b.Exec("revoke " + sqltest.Quote(readers) + " from " + sqltest.Quote(sender))
	s.Refuses(229, "select parley.send($1::uuid, $2, 'after')", handle, sqltest.Request)
	s.Refuses(229, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work')")
	sqltest.Equal(b.Session, 1, "select count(*) from parley.queue_contents('Answering')")
}

func TestRightsOfPause(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	name := b.Role("outsider")
	outsider := b.As(name)
	for _, statement := range []string{"select parley.pause_readers('Answering')", "select parley.resume_readers('Answering')"} {
		outsider.Refuses(229, statement)
	}
	b.Exec("select parley.grant('RECEIVE', 'queue', 'Answering', $1)", name)
	outsider.Refuses(229, "select parley.pause_readers('Answering')")
	b.Exec("select parley.grant('ALTER', 'queue', 'Answering', $1)", name)
	sqltest.Equal(outsider, true, "select parley.pause_readers('Answering')")
	b.Refuses(208, "select parley.pause_readers('None')")
	b.Refuses(9609, "select parley.pause_readers(null)")
}

func TestRightsOfQuotas(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	name := b.Role("outsider")
	outsider := b.As(name)
	b.QuotaOf("messages => 5")
	outsider.Refuses(229, "select parley.set_queue_quota('Answering')")
	sqltest.Equal(outsider, 0, "select count(*)::integer from parley.queue_quotas")
	b.Exec("select parley.grant('RECEIVE', 'queue', 'Answering', $1)", name)
	outsider.Refuses(229, "select parley.set_queue_quota('Answering', 1)")
	sqltest.Equal(outsider, 1, "select count(*)::integer from parley.queue_quotas")
	b.Exec("select parley.grant('ALTER', 'queue', 'Answering', $1)", name)
	outsider.Exec("select parley.set_queue_quota('Answering', 1)")
	b.Refuses(8402, "select parley.set_queue_quota('Answering', 0)")
	b.Refuses(8402, "select parley.set_queue_quota('Answering', bytes => 9223372036854775807)")
	b.Refuses(8402, "select parley.set_queue_quota('Answering', bytes => -1)")
	b.Refuses(208, "select parley.set_queue_quota('None', 1)")
	sqltest.Equal(b.Session, "1", "select concat_ws(' ', quota_messages, quota_bytes) from parley.service_queues where name = 'Answering'")
	b.Exec("select parley.drop_service('//test/Answerer')")
	b.Exec("select parley.drop_queue('Answering')")
	sqltest.Equal(b.Session, 0, "select count(*)::integer from pg_class where relname like E'\\\\_p\\\\_queue%quota'")
}

func TestRightsOfReceiveReply(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Send(target, sqltest.Reply, "secret")
	outsider := b.As(b.Role("outsider"))
	outsider.Refuses(229, sqltest.ReceiveReply, initiator)
	outsider.Refuses(229, "select parley.conversations_with_messages('Asking', array[$1]::uuid[])", initiator)
	outsider.Refuses(8418, sqltest.ReceiveReply, nil)
	b.Refuses(8402, "select * from parley.receive_reply($1, timeout => -2)", initiator)
	sqltest.Equal(b.Session, 1, "select count(*)::integer from parley.receive_reply($1, timeout => null)", initiator)
}

func TestRightsOfRetryMatching(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.SetAsideMany(1)
	name := b.Role("outsider")
	outsider := b.As(name)
	if got := outsider.Retried(""); got != "0 0" {
		t.Errorf("an outsider puts back %s", got)
	}
	outsider.Refuses(229, "select * from parley.retry_poison_matching(queue => 'Answering')")
	b.Exec("select parley.grant('RECEIVE', 'queue', 'Answering', $1)", name)
	if got := outsider.Retried(""); got != "1 2" {
		t.Errorf("who may receive puts back %s", got)
	}
}

func TestRightsOfASimpleQueue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Put("a")
	putter, taker := b.Role("putter"), b.Role("taker")
	b.Exec("select parley.grant('SEND', 'queue', 'jobs', $1), parley.grant('RECEIVE', 'queue', 'jobs', $2)", putter, taker)
	puts, takes := b.As(putter), b.As(taker)
	puts.Put("b")
	puts.PutKeyed("k:1")
	puts.Refuses(229, "select parley.take('jobs')")
	puts.Refuses(229, "select parley.peek_messages('jobs')")
	takes.Refuses(229, "select parley.put('jobs', 'c'::text)")
	sqltest.Equal(takes, "a b k:1", "select string_agg(parley.body_text(body), ' ' order by message_id) from parley.peek_messages('jobs')")
	takes.RequireTaken(10, "a", "b", "k:1")
	sqltest.Equal(puts, 0, "select count(*) from parley.simple_queues")
	sqltest.Equal(takes, 1, "select count(*) from parley.simple_queues")
	nobody := b.As(b.Role("nobody"))
	for _, statement := range []string{
		"select parley.put('jobs', 'c'::text)", "select parley.put_batch('jobs', array['c'])", "select parley.take('jobs')",
		"select parley.retry_message('jobs', 1)", "select parley.discard_message('jobs', 1)", "select parley.edit_message('jobs', 1, 'x', 'y')",
		"select parley.withdraw_message('jobs', 1)",
		"select parley.retry('jobs', 1)", "select parley.fail('jobs', 1)", "select parley.cancel('jobs', 1)",
		"select parley.set_retry_policy('jobs')", "select parley.set_queue_limits('jobs')", "select parley.remove_retry_policy('jobs')",
	} {
		nobody.Refuses(229, statement)
	}
}
