package sql_test

import (
	"fmt"
	"testing"
)

// A message that a service got by reference is there for who may receive from its queue, and for nobody else, until its time is over.
func TestRawMessageIsKeptForWhoMayReceiveTheReference(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	reader, other, daemon := b.role("reader"), b.role("other"), b.role("daemon")
	b.exec("select parley_mail.grant_right('SERVE', $1), parley_mail.grant_right('ADMINISTER', $2)", daemon, other)
	b.exec(`select parley.create_queue('a'), parley.create_queue('b');
		select parley.create_service('//a', 'a', array['DEFAULT']), parley.create_service('//b', 'b', array['DEFAULT']);
		create table public.kept (raw text, raw_reference bigint)`)
	b.exec("select parley.grant('RECEIVE', 'queue', 'a', $1), parley.grant('RECEIVE', 'queue', 'b', $2)", reader, other)
	b.apply(`{"service binding": {
		"a": {"pattern": "a+*@example.org", "service": "//a", "from_service": "parley_mail/Status", "raw": "REFERENCE"},
		"b": {"pattern": "b+*@example.org", "service": "//b", "from_service": "parley_mail/Status", "raw": "REFERENCE"},
		"t": {"pattern": "t+*@example.org", "table": "public.kept", "raw": "REFERENCE"}}}`)
	// One that stands in its row, one that stands in chunks.
	for _, size := range []int{10, 700_000} {
		b.exec("select parley_mail.send('ann', array['a+1@example.org', 'b+1@example.org', 't+1@example.org'], 'Hi', repeat('text ', $1))", size/5)
		b.exec("select parley_mail._p_categorize()")
		equal(b.as(daemon), 3, "select parley_mail._p_deliver_to_services()")
		id := value[int64](b.session, `select (convert_from(message_body, 'UTF8')::jsonb ->> 'raw_reference')::bigint from parley.receive('a') where not convert_from(message_body, 'UTF8')::jsonb ? 'raw'`)
		s := b.as(reader)
		equal(s, true, "select position('Subject: Hi' in convert_from(parley_mail.read_raw($1), 'UTF8')) > 0 and octet_length(parley_mail.read_raw($1)) > $2", id, size)
		equal(s, true, "select parley_mail.read_raw($1) = parley_mail.read_raw($1, 0, 7) || parley_mail.read_raw($1, 7)", id)
		equal(s, true, "select substr(parley_mail.read_raw($1), 524285, 9) = parley_mail.read_raw($1, 524284, 9)", id)
		for _, refused := range []string{"read_raw($1)", "release_raw($1)", "read_part(jsonb_build_object('raw_reference', $1::bigint, 'attachments', '[{\"part\": \"1\", \"offset\": 0, \"bytes\": 9}]'::jsonb), '1')"} {
			for _, role := range []string{other, daemon} {
				b.as(role).refusesMail(6, "select parley_mail."+refused, id)
			}
			s.refusesMail(6, "select parley_mail."+refused, id+100000)
			s.refusesMail(6, "select parley_mail."+refused, nil)
		}
		if _, err := b.db.Exec(t.Context(), "select parley_mail.read_raw($1, caller => null)", id); err == nil {
			t.Error("nobody was given a message")
		}
		row := value[int64](b.session, "delete from public.kept where raw is null returning raw_reference")
		s.refusesMail(6, "select parley_mail.read_raw($1)", row)
		b.exec("grant select on public.kept to " + quote(reader))
		equal(s, true, "select octet_length(parley_mail.read_raw($1)) > 9", row)
		b.exec("alter table public.kept enable row level security")
		s.refusesMail(6, "select parley_mail.read_raw($1)", row)
		b.exec("alter table public.kept disable row level security")
		s.refusesMail(6, "select parley_mail.release_raw($1)", row)
		b.exec("alter table public.kept rename to renamed")
		s.refusesMail(6, "select parley_mail.read_raw($1)", row)
		b.exec("alter table public.renamed rename to kept; revoke usage on schema public from public")
		s.refusesMail(6, "select parley_mail.read_raw($1)", row)
		b.exec("grant usage on schema public to public; revoke select on public.kept from " + quote(reader))

		// Who reads and stays in his transaction keeps one generation of content at most.
		idle := b.begin()
		idle.exec("set local role " + quote(reader))
		idle.exec("select octet_length(parley_mail.read_raw($1)), octet_length(parley_mail.read_raw($1, 7))", id)
		equal(b.session, true, `select count(distinct l.relation) <= 1 from pg_locks as l join pg_class as c on c.oid = l.relation
			where l.pid = $1 and l.database = (select oid from pg_database where datname = current_database()) and c.relname ~ '^_p_content_chunk_[0-9]$'`,
			value[int32](idle, "select pg_backend_pid()"))
		idle.rollback()

		part := "select octet_length(parley_mail.read_part($1, '1'))"
		payload := fmt.Sprintf(`{"raw_reference": %d, "attachments": [{"part": "1", "offset": 0, "bytes": 9}]}`, id)
		equal(s, 9, part, payload)
		equal(s, 9, part, `{"raw": "aGVsbG8gd29ybGQ=", "attachments": [{"part": "1", "offset": 0, "bytes": 9}]}`)
		s.refusesMail(4, part, `{"raw": "aGVsbG8="}`)

		// A receiver that releases it holds up no delivery of the same content, as long as its transaction may last.
		tx := b.begin()
		tx.exec("set local role " + quote(reader))
		tx.exec("select parley_mail.release_raw($1)", id)
		tx.refusesMail(6, "savepoint s; select parley_mail.read_raw("+fmt.Sprint(id)+")")
		share := b.begin()
		share.exec("set local lock_timeout = '3s'")
		share.exec(`
			select parley_store.share_content(k.content_id, 'mail', k.body_id, 1000000)
			from parley_mail._p_kept_body as k where k.body_id = $1 and k.content_id is not null`, id)
		share.rollback()
		tx.exec("rollback to s")
		tx.commit()
		s.refusesMail(6, "select parley_mail.read_raw($1)", id)
	}
	equal(b.session, "6 3 0", `select concat_ws(' ', (select count(*) from parley_mail._p_kept_body),
		(select count(*) from parley_store._p_content_reference), (select count(*) from parley_mail._p_message))`)
	b.exec("update parley_mail._p_kept_body set kept_until = now()")
	b.exec("select parley_mail._p_maintain()")
	equal(b.session, "0 0 0", `select concat_ws(' ', (select count(*) from parley_mail._p_kept_body),
		(select count(*) from parley_store._p_content_reference), (select count(*) from parley_store._p_content))`)
}

// Each conversation to which a message is delivered has a reference of its own: who releases one does not take it from the others.
func TestEachConversationHasAReferenceOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.exec("select parley.create_queue('a'), parley.create_service('//a', 'a', array['DEFAULT'])")
	b.apply(`{"service binding": {"a": {"pattern": "a+*@example.org", "service": "//a", "from_service": "parley_mail/Status",
		"raw": "REFERENCE", "conversation_key": "PLUS_TAG"}}}`)
	b.exec("select parley_mail.send('ann', array['a+1@example.org', 'a+2@example.org'], 'Hi', 'text')")
	b.exec("select parley_mail._p_categorize()")
	b.exec("select parley_mail._p_deliver_to_services()")
	equal(b.session, "2 2", `
		select concat_ws(' ', count(distinct c.reference), count(distinct c.conversation_handle))
		from (
			select convert_from(q.message_body, 'UTF8')::jsonb ->> 'raw_reference' as reference, q.conversation_handle
			from parley.queue_contents('a') as q
		) as c`)
}
