package submission_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Records of submissions are forgotten when their time is over, and not before: a key that was forgotten too early lets a message through
// twice.
func TestWhatIsRememberedOfSubmissionsHasItsTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, table, row, setting, kept, over string }{
		{
			name: "idempotency keys by default", table: "parley_mail._p_idempotency", kept: "6 days 23 hours", over: "7 days 1 hour",
			row: "insert into parley_mail._p_idempotency (submitted_by, key, content_hash, message_id, at) values (1, $1::text, 'x', 1, now() - $1::text::interval)",
		},
		{
			name: "idempotency keys as it is set", table: "parley_mail._p_idempotency", setting: `{"idempotency_retention": 1209600}`, kept: "13 days 23 hours", over: "14 days 1 hour",
			row: "insert into parley_mail._p_idempotency (submitted_by, key, content_hash, message_id, at) values (1, $1::text, 'x', 1, now() - $1::text::interval)",
		},
		{
			name: "reports of an hour", table: "parley_mail._p_report_rate", kept: "1 hour 59 minutes", over: "2 hours 1 minute",
			row: "insert into parley_mail._p_report_rate (sender, hour, reports) values ('x', now() - $1::text::interval, 1)",
		},
		{
			name: "buckets of rates", table: "parley_mail._p_rate_bucket", kept: "47 hours", over: "49 hours",
			row: "insert into parley_mail._p_rate_bucket (connector, key, value, per, tokens, filled_at, reserved_to) values ('c', 'TAG', $1::text, 1, 1, now(), now() - $1::text::interval)",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewMail(t)
			if c.setting != "" {
				b.Exec("select parley_mail.alter_object('organization', 'organization', $1)", c.setting)
			}
			b.Exec(c.row, c.kept)
			b.Exec(c.row, c.over)
			b.Exec("select parley_mail._p_forget_submitted()")
			sqltest.Equal(b.Session, 1, "select count(*)::int from "+c.table)
		})
	}
}

// The time for a delay begins when somebody waits: what is not categorized has nobody to report about, and is reported once it has.
func TestDelayIsReportedOnceThereAreRecipients(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := b.Arriving("x@example.com", "ann@example.org")
	b.Exec("update parley_mail._p_message set received_at = now() - interval '1 day'")
	b.Exec("select parley_mail._p_report_delays()")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley_mail._p_message where delay_reported_at is null")
	b.Categorize("1 0 0")
	b.Exec("select parley_mail._p_report_delays()")
	sqltest.Equal(b.Session, id, "select message_id from parley_mail._p_report where action = 'DELAYED'")
}

// Bodies of more than 8,000 bytes go another way than small ones. All arrive as they are, beside each other.
func TestBodiesOfAllSizesArriveWhole(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	const header = "From: x@example.com\r\n\r\n"
	var envelopes, bodies []string
	for _, size := range []int{100, 7999, 8000, 8001, 200000, 101} {
		envelopes = append(envelopes, `{"sender": "x@example.com", "recipients": ["ann@example.org"], "source": "SMTP"}`)
		bodies = append(bodies, header+strings.Repeat("x", size-len(header)))
	}
	raw := make([][]byte, len(bodies))
	for i, body := range bodies {
		raw[i] = []byte(body)
	}
	ids := sqltest.Values[int64](b.Session, "select a.id from parley_mail._p_accept($1::text[]::jsonb[], $2) as a (id)", envelopes, raw)
	b.Exec("select parley_mail.grant_right('READ_CONTENT', current_user)")
	for i, id := range ids {
		sqltest.Equal(b.Session, len(bodies[i]), "select size::int from parley_mail._p_message where message_id = $1", id)
		sqltest.Equal(b.Session, true, `select coalesce(m.body, parley_store.read_bytes(m.content_id, 'mail', m.message_id, 0, 2000000000)) = $2
			from parley_mail._p_message as m where m.message_id = $1`, id, raw[i])
	}
}

// A policy for what was not answered is that of the first rule that names it, of the connector or store of that name and kind.
func TestPolicyForUnansweredMailIsThatOfItsNextHop(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Apply(`{
		"mailbox store": {"both": {"address": "unix:/run/lmtp", "unknown_outcomes": "FAIL"}},
		"send connector": {
			"both": {"address_spaces": [{"pattern": "*"}], "unknown_outcomes": "HOLD"},
			"rules": {"address_spaces": [{"pattern": "*"}], "unknown_outcomes": "FAIL", "retry_rules": [
				{"domain": "b.example", "unknown": "HOLD"}, {"domain": "*.c.example", "unknown": "RETRY"}, {"domain": "b.example", "unknown": "RETRY"}]},
			"every": {"address_spaces": [{"pattern": "*"}], "retry_rules": [{"unknown": "HOLD"}]}}}`)
	for lane, want := range map[string]string{
		"MAILBOX/both/-": "FAIL", "DNS/both/a.example": "HOLD", "DNS/rules/a.example": "FAIL", "DNS/rules/b.example": "HOLD", "DNS/rules/x.c.example": "RETRY",
		"DNS/every/a.example": "HOLD", "DNS/none/a.example": "RETRY",
	} {
		if got := sqltest.Value[string](b.Session, "select parley_mail._p_unknown_policy($1)", lane); got != want {
			t.Errorf("%s: %s, want %s", lane, got, want)
		}
	}
}

// Of a rate of four an hour the two that are left over wait for half an hour: their own tokens, and no more.
func TestMailOverARateWaitsForItsOwnTokens(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Rates(`[{"key": "DOMAIN", "messages": 4, "per": 3600}]`)
	for range 6 {
		b.Delivery("DNS/internet/b.example", "", "r@b.example")
	}
	batch := b.ClaimMail(1, 10)
	if allowed := b.Permit(batch, ""); len(allowed) != 4 {
		t.Fatalf("allowed %v of %d", allowed, len(batch))
	}
	sqltest.Equal(b.Session, true, `select next_attempt_at between now() + interval '27 minutes' and now() + interval '33 minutes'
		from parley_store.lanes where lane = 'DNS/internet/b.example'`)
}

// Settings are of one line, and bounded; a secret may have what it likes but its length.
func TestSettingsAreTextsOfOneLine(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	const set = "select parley_mail.alter_object('send connector', 'internet', jsonb_build_object('username', $1::text))"
	for _, refused := range []string{"", "a\nb", "a\x01", strings.Repeat("x", 10001)} {
		b.RefusesMail(3, set, refused)
	}
	b.Exec(set, strings.Repeat("x", 10000))
}

// A missing signing key is no finding where nothing is signed.
func TestMissingSigningKeyIsFoundWhereSomethingIsSigned(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	const found = "select count(*)::int from parley_mail._p_find_unsigned_domains()"
	sqltest.Equal(b.Session, 1, found)
	for _, connector := range []string{`{"enabled": false}`, `{"enabled": true, "sign": false}`} {
		b.Exec("select parley_mail.alter_object('send connector', 'internet', $1)", connector)
		sqltest.Equal(b.Session, 0, found)
	}
}

// A quota counts each message of a batch, also where each recipient gets one of his own.
func TestQuotaCountsEachMessageOfABatch(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	role := b.Role("shop")
	b.Exec("select parley_mail.grant_right('SEND', $1), parley_mail.set_quota($1, messages_per_minute => 3)", role)
	shop := b.As(role)
	const batch = "select parley_mail.send_batch('shop@example.org', array(select format('u%s@example.com', n) from generate_series(1, $1::integer) as n), 'x', 'x'"
	for _, form := range []string{")", ", variables => '{}')", `, variables => '{"u1@example.com": {"name": "x"}}')`} {
		shop.RefusesMail(13, batch+form, 4)
		b.Exec("delete from parley_mail._p_submitted")
		shop.Exec(batch+form, 3)
		shop.RefusesMail(13, batch+form, 1)
		b.Exec("delete from parley_mail._p_submitted")
	}
}

// A connector takes messages up to its size, that size included.
func TestConnectorTakesMessagesOfItsSize(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`select parley_mail.alter_object('send connector', 'internet', '{"max_message_size": 2000}')`)
	const lane = "select coalesce((parley_mail._p_route_of('x@b.example', null, $1)).lane, '-')"
	sqltest.Equal(b.Session, "DNS/internet/b.example", lane, 2000)
	if got := sqltest.Value[string](b.Session, lane, 2001); got == "DNS/internet/b.example" {
		t.Errorf("a message that is too large goes by %s", got)
	}
}

// Statements about mail that nobody has configured, and about no messages, say so.
func TestOperationsSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	sqltest.NewBroker(t).RefusesMail(5, "select parley_mail._p_configuration()")
	b := sqltest.NewMail(t)
	for _, top := range []string{"0", "-1", "null"} {
		b.RefusesMail(10, "select parley_mail.find_messages('{}', top => "+top+")")
		b.RefusesMail(10, "select parley_mail.retry_messages('{}', top => "+top+")")
	}
}

// A delay is reported after half an hour, four hours or eight, by the priority of the message.
func TestDelayIsReportedAfterTheTimeOfItsPriority(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	for priority, minutes := range []int{30, 240, 480} {
		for _, late := range []int{-2, 2} {
			id := b.Arriving("x@example.com", "ann@example.org")
			b.Exec("update parley_mail._p_message set priority = $2, received_at = now() - $3 * interval '1 minute' where message_id = $1", id, priority, minutes+late)
		}
	}
	b.Categorize("6 0 0")
	b.Exec("select parley_mail._p_report_delays()")
	sqltest.Equal(b.Session, "0 32, 1 242, 2 482", `
		select string_agg(format('%s %s', m.priority, round(extract(epoch from now() - m.received_at) / 60)), ', ' order by m.priority)
		from parley_mail._p_report as r join parley_mail._p_message as m using (message_id) where r.action = 'DELAYED'`)
}
