package sqltest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Categorize categorizes what waits, and requires what the categorizer says of it.
func (b *Broker) Categorize(want string) {
	b.Helper()
	Equal(b.Session, want, "select concat_ws(' ', categorized, failed, set_aside) from parley_mail._p_categorize(1000)")
}

// Recipients lists the recipients in each lane, by message, in their order.
func (b *Broker) Recipients() string {
	b.Helper()
	return Value[string](b.Session, `
		select coalesce(string_agg(format('%s %s', lane, addresses), '; ' order by lane, addresses), '')
		from (
			select r.lane, string_agg(r.address, ',' order by r.address) as addresses
			from parley_mail._p_recipient as r group by r.message_id, r.lane
		) as l`)
}

// Arriving accepts a message from outside, and gives its number.
func (b *Broker) Arriving(sender string, recipients ...string) int64 {
	b.Helper()
	return Value[int64](b.Session, `
		select a.id from parley_mail._p_accept(
			array[jsonb_build_object('sender', $1::text, 'recipients', to_jsonb($2::text[]), 'source', 'SMTP')],
			array[convert_to(E'From: x@example.com\r\n\r\nx', 'UTF8')]) as a (id)`,
		sender, recipients)
}

// Apply applies a configuration of mail, a JSON object.
func (b *Broker) Apply(configuration string) {
	b.Helper()
	b.Exec("select parley_mail.apply($1)", configuration)
}

// Delivery is a message that was categorized: one work item in a lane for its recipients.
func (b *Broker) Delivery(lane, notify string, recipients ...string) int64 {
	b.Helper()
	id := Value[int64](b.Session, `select parley_mail.send('ann@example.org', $1, subject => 'hello', text => 'hello')`, recipients)
	b.Exec(`insert into parley_mail._p_recipient (message_id, ordinal, address, notify, lane)
		select $1, u.n, u.address, nullif($2, ''), $3 from unnest($4::text[]) with ordinality as u (address, n)`,
		id, notify, lane, recipients)
	b.Exec(`select parley_store.put_work('mail', array[$1], array[$2::bigint], expires_at => m.expires_at)
		from parley_mail._p_message as m where m.message_id = $2`, lane, id)
	return id
}

// Claimed is a message in the hands of a daemon.
type Claimed struct {
	Lease, Item, Message int64
	Lane                 string
	Ordinals             []int32
	Addresses            []string
}

// ClaimMail claims what waits. A claim may give nothing although something waits, so it asks again.
func (b *Broker) ClaimMail(hops, each int) (batch []Claimed) {
	b.Helper()
	for range 3 {
		if batch = b.claimMailOnce(hops, each); len(batch) > 0 {
			break
		}
	}
	return batch
}

// claimMailOnce makes one claim.
func (b *Broker) claimMailOnce(hops, each int) []Claimed {
	b.Helper()
	found, err := b.DB.Query(b.Context(), `select c.lease_id, c.item_id, c.message_id, c.lane, c.ordinals, c.addresses
		from parley_mail._p_claim($1, $2, '1 minute', 'test') as c order by c.message_id`, hops, each)
	if err != nil {
		b.Fatal(Describe(err))
	}
	batch, err := pgx.CollectRows(found, pgx.RowToStructByPos[Claimed])
	if err != nil {
		b.Fatal(Describe(err))
	}
	return batch
}

// Outcomes records one outcome for each recipient of a claimed message, and gives how many were refused.
func (b *Broker) Outcomes(c Claimed, outcomes ...string) int {
	b.Helper()
	n := len(outcomes)
	repeat := func(v int64) []int64 {
		values := make([]int64, n)
		for i := range values {
			values[i] = v
		}
		return values
	}
	return Value[int](b.Session, `select parley_mail._p_record_outcomes($1, $2, $3, $4, $5, array_fill(450, array[$6::integer]), array_fill('4.2.0'::text, array[$6::integer]),
		array_fill('later'::text, array[$6::integer]), array_fill('mx.b.example'::text, array[$6::integer]), '{}', '{}')`,
		repeat(c.Lease), repeat(c.Item), repeat(c.Message), c.Ordinals[:n], outcomes, n)
}

// LeftOf lists the remains of a message.
func (b *Broker) LeftOf(id int64) string {
	b.Helper()
	return Value[string](b.Session, `select format('%s message, %s recipients, %s items, reports %s',
		(select count(*) from parley_mail._p_message where message_id = $1),
		(select count(*) from parley_mail._p_recipient where message_id = $1),
		(select count(*) from parley_store.work_items where system = 'mail' and subject = $1),
		(select coalesce(string_agg(distinct action, ' ' order by action), 'none') from parley_mail._p_report where message_id = $1))`, id)
}

// NewMail gives a test a database in which example.org is ours, with a mailbox store, two mailboxes and a way to everywhere else.
func NewMail(t *testing.T) *Broker {
	t.Helper()
	b := NewBroker(t)
	b.Exec(`select parley_mail.apply('{
		"organization": {"organization": {"default_domain": "example.org"}},
		"accepted domain": {"example.org": {}},
		"mailbox store": {"local": {"address": "unix:/run/lmtp"}},
		"mailbox": {
			"ann@example.org": {"store": "local", "aliases": ["a@example.org"]},
			"bob@example.org": {"store": "local"}
		},
		"send connector": {"internet": {"address_spaces": [{"pattern": "*"}]}}
	}')`)
	return b
}

// Sender creates a role that may submit mail, and opens a session of it.
func (b *Broker) Sender(name string) Session {
	b.Helper()
	role := b.Role(name)
	b.Exec("select parley_mail.grant_right('SEND', $1)", role)
	return b.As(role)
}

// RefusesMail requires that a statement fails with an error of mail, well-formed, and gives it.
func (s Session) RefusesMail(number int, statement string, arguments ...any) pgconn.PgError {
	s.Helper()
	_, err := s.DB.Exec(s.Context(), statement, arguments...)
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		s.Fatalf("%s: got %v, want error %d of mail", Clip(statement), err, number)
	}
	if refusal.Code != fmt.Sprintf("PM%03d", number) {
		s.Errorf("%s: got %s, want error %d of mail", Clip(statement), Describe(err), number)
	}
	if refusal.Hint == "" || refusal.Message == "" || strings.Contains(refusal.Message+refusal.Detail+refusal.Hint, "%") {
		s.Errorf("%s: the error does not say what happened and what to do: %s", Clip(statement), Describe(err))
	}
	return *refusal
}

// StatusOf gives the status of a message as operators see it: in each of its queues.
func (b *Broker) StatusOf(id int64) string {
	b.Helper()
	return Value[string](b.Session, `
		select coalesce(string_agg(split_part(queue, '/', 1) || ' ' || status, ', ' order by queue), 'gone')
		from parley_mail.messages where message_id = $1`, id)
}

// Sent submits a message and categorizes it, and gives its number.
func (b *Broker) Sent(subject string, recipients ...string) int64 {
	b.Helper()
	id := Value[int64](b.Session, "select parley_mail.send('ann', $1, $2, 'text', tag => 'T-' || $2)", recipients, subject)
	b.Exec("select parley_mail._p_categorize(100)")
	return id
}

// Permit asks which of some claimed messages of one lane may be sent now, and gives their items.
func (s Session) Permit(batch []Claimed, host string) []int64 {
	s.Helper()
	items, messages := make([]int64, len(batch)), make([]int64, len(batch))
	for i, c := range batch {
		items[i], messages[i] = c.Item, c.Message
	}
	return Value[[]int64](s, `select parley_mail._p_permit($1, $2, $3, $4, nullif($5, ''), '192.0.2.1', '2001:db8::25')`,
		batch[0].Lane, batch[0].Lease, items, messages, host)
}

// Rates gives the send connector "internet" rates, a JSON array.
func (b *Broker) Rates(rates string) {
	b.Helper()
	b.Exec(`select parley_mail.alter_object('send connector', 'internet', jsonb_build_object('rates', $1::jsonb))`, rates)
}

// NewBoundMail gives a test a service and a table to which addresses are bound.
func NewBoundMail(t *testing.T) *Broker {
	t.Helper()
	b := NewMail(t)
	b.Exec(`
		select parley.create_queue('orders'); select parley.create_service('//orders', 'orders', array['DEFAULT']);
		select parley.create_queue('informed'); select parley.create_service('//informed', 'informed', array['parley_mail/Status']);
		create table public.inbox (id bigint generated always as identity, sender text, recipients jsonb, subject text, raw text, state text default 'new')`)
	b.Apply(`{"service binding": {
		"orders": {"pattern": "orders+*@example.org", "service": "//orders", "from_service": "parley_mail/Status", "conversation_key": "PLUS_TAG"},
		"inbox": {"pattern": "inbox@example.org", "table": "public.inbox", "max_size": 2000}}}`)
	return b
}

// Deliver delivers to services and tables, and requires how many messages that were.
func (b *Broker) Deliver(want int) {
	b.Helper()
	Equal(b.Session, want, "select parley_mail._p_deliver_to_services()")
}

// RequireSubmitted requires that exactly so many messages are stored, and each of them waits once to be categorized.
func (b *Broker) RequireSubmitted(count int) {
	b.Helper()
	Equal(b.Session, count, "select count(*)::int from parley_mail._p_message")
	Equal(b.Session, fmt.Sprint(count, " ", count), `
		select count(*) || ' ' || count(distinct i.id)
		from parley.peek_messages('parley_mail_submission', null) as p
		cross join unnest(string_to_array(convert_from(p.body, 'UTF8'), ' ')::bigint[]) as i (id)
		join parley_mail._p_message as m on m.message_id = i.id`)
}

// Tracked gives the distinct events of a message that have a source.
func (b *Broker) Tracked(id int64, source string) string {
	b.Helper()
	return Value[string](b.Session, `select coalesce(string_agg(distinct event_id, ' ' order by event_id), '')
		from parley_mail.tracking where internal_message_id = $1::bigint::text and source = $2`, id, source)
}

// Late records an outcome with the addresses of the recipients, as a daemon does.
func (b *Broker) Late(c Claimed, outcome string) int {
	b.Helper()
	return Value[int](b.Session, `select parley_mail._p_record_outcomes(array[$1::bigint], array[$2::bigint], array[$3::bigint], $4, array[$5], array[250], '{2.0.0}', '{ok}',
		'{mx.b.example}', '{}', '{}', addresses => $6)`, c.Lease, c.Item, c.Message, c.Ordinals[:1], outcome, c.Addresses[:1])
}
