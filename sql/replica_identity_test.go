package sql_test

import (
	"testing"

	"github.com/parley-broker/parley/sql"
)

// publish makes what tools of change capture make when they start.
func (b *broker) publish() {
	b.Helper()
	b.exec("create publication everything for all tables")
}

// With a publication for all tables PostgreSQL refuses to delete from, and to change, a table without replica identity.
func TestEveryTableHasAReplicaIdentity(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	// Partitions are tables too.
	b.exec("select parley_mail._p_maintain()")
	equal(b.session, "", `
		select coalesce(string_agg(c.oid::regclass::text, ', ' order by c.relname), '')
		from pg_class as c
		where c.relkind in ('r', 'p')
			and c.relnamespace::regnamespace::text = any ($1)
			and c.relreplident not in ('f', 'i')
			and not (c.relreplident = 'd' and exists (select from pg_index as i where i.indrelid = c.oid and i.indisprimary))`, sql.Schemas())
	if n := value[int](b.session, "select count(*) from pg_class where relname like E'\\\\_p\\\\_tracking\\\\_2%' and relkind = 'r'"); n == 0 {
		t.Error("there is no partition")
	}
}

func TestEverythingGoesOnUnderAPublicationForAllTables(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.publish()
	b.exec("select parley.create_queue('jobs', kind => 'SIMPLE'), parley.alter_queue('Answering', retention => true)")
	b.exec("select parley.put('jobs', 'a')")
	equal(b.session, "a", "select parley.body_text(body) from parley.take('jobs')")

	initiator, target := b.conversation()
	b.exec("select parley.send_batch($1::uuid, $2, array_fill('x'::text, array[50]))", initiator, request)
	b.exec("select parley.begin_conversation_timer($1::uuid, 3600)", target)
	b.send(target, reply, "y")
	b.bodies("Answering")
	b.bodies("Asking")
	b.end(initiator)
	b.receive("Answering")
	b.end(target)
	b.exec("select parley.fire_timers()")
	equal(b.session, 0, "select count(*) from parley._p_endpoint")
	b.exec("select parley.drop_queue('jobs')")
}

func TestMailGoesOnUnderAPublicationForAllTables(t *testing.T) {
	t.Parallel()
	b := newBoundMail(t)
	b.publish()
	b.exec(`select parley_mail.send('ann', array['inbox@example.org', 'bob@example.org', 'x@example.net'], 'Hi', 'text', notify => 'SUCCESS')`)
	b.exec("select parley_mail._p_categorize()")
	for range 3 {
		b.exec("select parley_mail._p_deliver_to_services()")
	}
	equal(b.session, 1, "select count(*) from public.inbox")
	for _, c := range b.claimMail(10, 10) {
		b.outcomes(c, "DELIVERED")
	}
	equal(b.session, 0, "select count(*) from parley_mail._p_recipient")
	b.exec("select parley_mail._p_maintain()")
}
