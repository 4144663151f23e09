package moves_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/sql"
)

// publish makes what tools of change capture make when they start.
func publish(b *sqltest.Broker) {
	b.Helper()
	b.Exec("create publication everything for all tables")
}

// With a publication for all tables PostgreSQL refuses to delete from, and to change, a table without replica identity.
func TestEveryTableHasAReplicaIdentity(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	// Partitions are tables too.
	b.Exec("select parley_mail._p_maintain()")
	sqltest.Equal(b.Session, "", `
		select coalesce(string_agg(c.oid::regclass::text, ', ' order by c.relname), '')
		from pg_class as c
		where c.relkind in ('r', 'p')
			and c.relnamespace::regnamespace::text = any ($1)
			and c.relreplident not in ('f', 'i')
			and not (c.relreplident = 'd' and exists (select from pg_index as i where i.indrelid = c.oid and i.indisprimary))`, sql.Schemas())
	if n := sqltest.Value[int](b.Session, "select count(*) from pg_class where relname like E'\\\\_p\\\\_tracking\\\\_2%' and relkind = 'r'"); n == 0 {
		t.Error("there is no partition")
	}
}

func TestEverythingGoesOnUnderAPublicationForAllTables(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	publish(b)
	b.Exec("select parley.create_queue('jobs', kind => 'SIMPLE'), parley.alter_queue('Answering', retention => true)")
	b.Exec("select parley.put('jobs', 'a')")
	sqltest.Equal(b.Session, "a", "select parley.body_text(body) from parley.take('jobs')")

	initiator, target := b.Conversation()
	b.Exec("select parley.send_batch($1::uuid, $2, array_fill('x'::text, array[50]))", initiator, sqltest.Request)
	b.Exec("select parley.begin_conversation_timer($1::uuid, 3600)", target)
	b.Send(target, sqltest.Reply, "y")
	b.Bodies("Answering")
	b.Bodies("Asking")
	b.End(initiator)
	b.Receive("Answering")
	b.End(target)
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_endpoint")
	b.Exec("select parley.drop_queue('jobs')")
}

func TestMailGoesOnUnderAPublicationForAllTables(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBoundMail(t)
	publish(b)
	b.Exec(`select parley_mail.send('ann', array['inbox@example.org', 'bob@example.org', 'x@example.net'], 'Hi', 'text', notify => 'SUCCESS')`)
	b.Exec("select parley_mail._p_categorize()")
	for range 3 {
		b.Exec("select parley_mail._p_deliver_to_services()")
	}
	sqltest.Equal(b.Session, 1, "select count(*) from public.inbox")
	for _, c := range b.ClaimMail(10, 10) {
		b.Outcomes(c, "DELIVERED")
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley_mail._p_recipient")
	b.Exec("select parley_mail._p_maintain()")
}
