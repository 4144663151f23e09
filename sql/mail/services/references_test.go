package services_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A message that a service got by reference is there for who may receive from its queue, and for nobody else, until its time is over.
func TestRawMessageIsKeptForWhoMayReceiveTheReference(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	reader, other, daemon := b.Role("reader"), b.Role("other"), b.Role("daemon")
	b.Exec("select parley_mail.grant_right('SERVE', $1), parley_mail.grant_right('ADMINISTER', $2)", daemon, other)
	b.Exec(`select parley.create_queue('a'), parley.create_queue('b');
		select parley.create_service('//a', 'a', array['DEFAULT']), parley.create_service('//b', 'b', array['DEFAULT']);
		create table public.kept (raw text, raw_reference bigint)`)
	b.Exec("select parley.grant('RECEIVE', 'queue', 'a', $1), parley.grant('RECEIVE', 'queue', 'b', $2)", reader, other)
	b.Apply(`{"service binding": {
		"a": {"pattern": "a+*@example.org", "service": "//a", "from_service": "parley_mail/Status", "raw": "REFERENCE"},
		"b": {"pattern": "b+*@example.org", "service": "//b", "from_service": "parley_mail/Status", "raw": "REFERENCE"},
		"t": {"pattern": "t+*@example.org", "table": "public.kept", "raw": "REFERENCE"}}}`)
	// One that stands in its row, one that stands in chunks.
	for _, size := range []int{10, 700_000} {
		b.Exec("select parley_mail.send('ann', array['a+1@example.org', 'b+1@example.org', 't+1@example.org'], 'Hi', repeat('text ', $1))", size/5)
		b.Exec("select parley_mail._p_categorize()")
		sqltest.Equal(b.As(daemon), 3, "select parley_mail._p_deliver_to_services()")
		id := sqltest.Value[int64](b.Session, `select (convert_from(message_body, 'UTF8')::jsonb ->> 'raw_reference')::bigint from parley.receive('a') where not convert_from(message_body, 'UTF8')::jsonb ? 'raw'`)
		s := b.As(reader)
		sqltest.Equal(s, true, "select position('Subject: Hi' in convert_from(parley_mail.read_raw($1), 'UTF8')) > 0 and octet_length(parley_mail.read_raw($1)) > $2", id, size)
		sqltest.Equal(s, true, "select parley_mail.read_raw($1) = parley_mail.read_raw($1, 0, 7) || parley_mail.read_raw($1, 7)", id)
		sqltest.Equal(s, true, "select substr(parley_mail.read_raw($1), 524285, 9) = parley_mail.read_raw($1, 524284, 9)", id)
		for _, refused := range []string{"read_raw($1)", "release_raw($1)", "read_part(jsonb_build_object('raw_reference', $1::bigint, 'attachments', '[{\"part\": \"1\", \"offset\": 0, \"bytes\": 9}]'::jsonb), '1')"} {
			for _, role := range []string{other, daemon} {
				b.As(role).RefusesMail(6, "select parley_mail."+refused, id)
			}
			s.RefusesMail(6, "select parley_mail."+refused, id+100000)
			s.RefusesMail(6, "select parley_mail."+refused, nil)
		}
		if _, err := b.DB.Exec(t.Context(), "select parley_mail.read_raw($1, caller => null)", id); err == nil {
			t.Error("nobody was given a message")
		}
		row := sqltest.Value[int64](b.Session, "delete from public.kept where raw is null returning raw_reference")
		s.RefusesMail(6, "select parley_mail.read_raw($1)", row)
		b.Exec("grant select on public.kept to " + sqltest.Quote(reader))
		sqltest.Equal(s, true, "select octet_length(parley_mail.read_raw($1)) > 9", row)
		b.Exec("alter table public.kept enable row level security")
		s.RefusesMail(6, "select parley_mail.read_raw($1)", row)
		b.Exec("alter table public.kept disable row level security")
		s.RefusesMail(6, "select parley_mail.release_raw($1)", row)
		b.Exec("alter table public.kept rename to renamed")
		s.RefusesMail(6, "select parley_mail.read_raw($1)", row)
		b.Exec("alter table public.renamed rename to kept; revoke usage on schema public from public")
		s.RefusesMail(6, "select parley_mail.read_raw($1)", row)
		b.Exec("grant usage on schema public to public; revoke select on public.kept from " + sqltest.Quote(reader))

		// A reader that stays in its transaction keeps one generation of content at most.
		idle := b.Begin()
		idle.Exec("set local role " + sqltest.Quote(reader))
		idle.Exec("select octet_length(parley_mail.read_raw($1)), octet_length(parley_mail.read_raw($1, 7))", id)
		sqltest.Equal(b.Session, true, `select count(distinct l.relation) <= 1 from pg_locks as l join pg_class as c on c.oid = l.relation
			where l.pid = $1 and l.database = (select oid from pg_database where datname = current_database()) and c.relname ~ '^_p_content_chunk_[0-9]$'`,
			sqltest.Value[int32](idle, "select pg_backend_pid()"))
		idle.Rollback()

		part := "select octet_length(parley_mail.read_part($1, '1'))"
		payload := fmt.Sprintf(`{"raw_reference": %d, "attachments": [{"part": "1", "offset": 0, "bytes": 9}]}`, id)
		sqltest.Equal(s, 9, part, payload)
		sqltest.Equal(s, 9, part, `{"raw": "aGVsbG8gd29ybGQ=", "attachments": [{"part": "1", "offset": 0, "bytes": 9}]}`)
		s.RefusesMail(4, part, `{"raw": "aGVsbG8="}`)

		// A receiver that releases it holds up no delivery of the same content, as long as its transaction may last.
		tx := b.Begin()
		tx.Exec("set local role " + sqltest.Quote(reader))
		tx.Exec("select parley_mail.release_raw($1)", id)
		tx.RefusesMail(6, "savepoint s; select parley_mail.read_raw("+fmt.Sprint(id)+")")
		share := b.Begin()
		share.Exec("set local lock_timeout = '3s'")
		share.Exec(`
			select parley_store.share_content(k.content_id, 'mail', k.body_id, 1000000)
			from parley_mail._p_kept_body as k where k.body_id = $1 and k.content_id is not null`, id)
		share.Rollback()
		tx.Exec("rollback to s")
		tx.Commit()
		s.RefusesMail(6, "select parley_mail.read_raw($1)", id)
	}
	sqltest.Equal(b.Session, "6 3 0", `select concat_ws(' ', (select count(*) from parley_mail._p_kept_body),
		(select count(*) from parley_store._p_content_reference), (select count(*) from parley_mail._p_message))`)
	b.Exec("update parley_mail._p_kept_body set kept_until = now()")
	b.Exec("select parley_mail._p_maintain()")
	sqltest.Equal(b.Session, "0 0 0", `select concat_ws(' ', (select count(*) from parley_mail._p_kept_body),
		(select count(*) from parley_store._p_content_reference), (select count(*) from parley_store._p_content))`)
}

// Each conversation to which a message is delivered has a reference of its own: who releases one does not take it from the others.
func TestEachConversationHasAReferenceOfItsOwn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec("select parley.create_queue('a'), parley.create_service('//a', 'a', array['DEFAULT'])")
	b.Apply(`{"service binding": {"a": {"pattern": "a+*@example.org", "service": "//a", "from_service": "parley_mail/Status",
		"raw": "REFERENCE", "conversation_key": "PLUS_TAG"}}}`)
	b.Exec("select parley_mail.send('ann', array['a+1@example.org', 'a+2@example.org'], 'Hi', 'text')")
	b.Exec("select parley_mail._p_categorize()")
	b.Exec("select parley_mail._p_deliver_to_services()")
	sqltest.Equal(b.Session, "2 2", `
		select concat_ws(' ', count(distinct c.reference), count(distinct c.conversation_handle))
		from (
			select convert_from(q.message_body, 'UTF8')::jsonb ->> 'raw_reference' as reference, q.conversation_handle
			from parley.queue_contents('a') as q
		) as c`)
}
