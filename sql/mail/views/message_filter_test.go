package views_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestFilterChoosesMessages(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Sent("one", "x@example.com", "bob@example.org")
	b.Sent("two", "y@example.com")
	b.Arriving("spam_mer@example.net", "ann@example.org")
	b.Exec("select parley_mail._p_categorize(100)")
	b.Exec("select parley_mail.send('ann', array['z@example.com'], 'three', 'text', priority => 'HIGH')")
	b.Exec("update parley_mail._p_message set received_at = received_at - interval '2 hours' where subject = 'two'")
	b.Exec("update parley_mail._p_recipient set attempts = 2, last_status = '4.2.2', last_text = 'Mailbox full' where address = 'bob@example.org'")
	for filter, want := range map[string]string{
		`{}`:                                             "one one three two -",
		`{"queue": "DNS/*"}`:                             "one two",
		`{"queue": "submission"}`:                        "three",
		`{"sender": "spam_*"}`:                           "-",
		`{"sender": "SPAMXMER@*"}`:                       "",
		`{"recipient": "*@example.ORG"}`:                 "one -",
		`{"subject": "T*"}`:                              "three two",
		`{"tag": "t-one", "queue": "MAILBOX/*"}`:         "one",
		`{"source": "smtp"}`:                             "-",
		`{"priority": "high"}`:                           "three",
		`{"older": "1 hour"}`:                            "two",
		`{"error": "mailbox FULL"}`:                      "one",
		`{"status": ["retry", "SUSPENDED"]}`:             "",
		`{"attempts": 2}`:                                "one",
		`{"attempts": 3}`:                                "",
		`{"not": {"attempts": 2}, "queue": "MAILBOX/*"}`: "-",
		`{"not": {"attempts": 3}, "queue": "MAILBOX/*"}`: "one -",
		`{"status": "ready", "larger": 100000}`:          "",
		`{"queue": "DNS/*", "not": {"older": "1 hour"}}`: "one",
		`{"not": {"recipient": "*@example.com"}, "queue": "*/local/*"}`:     "one -",
		`{"not": {"queue": "MAILBOX/*"}, "status": "READY", "source": "*"}`: "one two",
		// Any property, compared by its type.
		`{"message_id": 2}`:                                                                 "two",
		`{"message_id": {"greater": 2, "less": 4}}`:                                         "-",
		`{"message_id": {"not": 1}, "queue": {"contains": "local"}}`:                        "-",
		`{"queue": {"less": "e"}}`:                                                          "one two",
		`{"status": {"not": "ready"}}`:                                                      "",
		`{"sender": {"contains": "m%m"}}`:                                                   "",
		`{"sender": {"contains": "M_MER@"}}`:                                                "-",
		`{"sender": {"equals": "ann@*", "not": "*.net"}, "queue": {"not": "MAILBOX/*"}}`:    "one three two",
		`{"recipient_count": 1, "subject": "two"}`:                                          "two",
		`{"recipient_count": {"greater": 1}}`:                                               "",
		`{"subject": {"equals": ""}}`:                                                       "-",
		`{"size": {"greater": 0, "less": "1e9"}, "subject": {"not": ""}, "queue": "DNS/*"}`: "one two",
		`{"priority": {"equals": "high"}}`:                                                  "three",
		`{"tag": {"contains": "-o"}, "queue": "DNS/*"}`:                                     "one",
		`{"attempts": {"greater": 1}}`:                                                      "one",
		`{"attempts": {"equals": 0}, "queue": {"not": "SUBMISSION/*"}}`:                     "one two -",
		`{"next_attempt_at": {"greater": "2000-01-01"}}`:                                    "",
		`{"next_attempt_at": {"not": "2000-01-01"}, "subject": "two"}`:                      "two",
		`{"last_error": {"contains": "full"}}`:                                              "one",
		`{"reason": {"equals": "'; drop table parley_mail._p_message; --"}}`:                "",
		`{"received_at": {"less": "now"}, "subject": "t*"}`:                                 "three two",
		`{"expires_at": {"greater": "tomorrow"}, "queue": "DNS/*"}`:                         "one two",
		`{"network_message_id": "*-*"}`:                                                     "one one three two -",
		`{"header_message_id": {"contains": "@"}}`:                                          "one one three two",
		`{"parent_message_id": {"greater": 0}}`:                                             "",
		`{"submitted_by": {"contains": "\"; select"}}`:                                      "",
		`{"submitted_by": {"not": "nobody"}}`:                                               "one one three two -",
		// Sizes have units as PostgreSQL writes them, or as Exchange does.
		`{"size": {"greater": "100B", "less": "1 MB"}, "queue": "DNS/*"}`:  "one two",
		`{"size": {"greater": "1kB", "less": "1GB"}}`:                      "",
		`{"larger": "100 bytes", "not": {"larger": "1KB"}, "queue": "D*"}`: "one two",
		`{"larger": "0.1 kB", "source": "S*", "queue": "DNS/*"}`:           "one two",
		`{"larger": "1 KB"}`: "",
		`{"source": {"contains": "mt"}, "status": {"greater": "q"}}`:                                        "-",
		`{"not": {"size": {"greater": 0}}}`:                                                                 "",
		`{"not": {"tag": {"contains": "one"}, "last_error": {"contains": "full"}}, "queue": {"not": "S*"}}`: "two -",
	} {
		got := sqltest.Value[string](b.Session, `
			select coalesce(string_agg(coalesce(subject, '-'), ' ' order by subject), '') from parley_mail.find_messages($1)`, filter)
		if got != want {
			t.Errorf("%s chooses %q, want %q", filter, got, want)
		}
	}
	for _, filter := range []string{
		`null`, `[]`, `7`, `{"quue": "x"}`, `{"sender": null}`, `{"status": "GONE"}`, `{"priority": "URGENT"}`, `{"older": "soon"}`, `{"messages": ["x"]}`,
		`{"not": {"not": {}}}`, `{"not": 3}`, `{"larger": "big"}`, `{"size": {"above": 1}}`, `{"size": {"contains": 1}}`, `{"size": {"greater": "big"}}`, `{"size": {"less": null}}`,
		`{"expires_at": {"less": "soon"}}`, `{"reason": {"greater": ["x"]}}`, `{"recipients": {"contains": "x"}}`, `{"larger": "1 XB"}`, `{"size": "kB"}`, `{"larger": "9 EB"}`, `{"size) or true --": {"equals": 1}}`, `{"older": {"less": "1 hour"}}`, `{"tag": {}}`,
	} {
		b.RefusesMail(10, "select parley_mail.find_messages($1)", filter)
		b.RefusesMail(10, "select parley_mail.remove_messages($1)", filter)
	}
	b.RefusesMail(10, "select parley_mail.find_messages(null)")
	b.RefusesMail(10, "select parley_mail.suspend_messages('{}', top => null)")
	b.RefusesMail(10, "select parley_mail.find_messages('{}', after => 'x')")
	// Every column of the lists is a property, but the recipients, for which there is a condition.
	sqltest.Equal(b.Session, "", `select coalesce(string_agg(attname, ' '), '') from pg_attribute
		where attrelid = any (array['parley_mail.messages', 'parley_mail.queues']::regclass[]) and attnum > 0 and attname <> 'recipients'
			and not (case attrelid when 'parley_mail.queues'::regclass then parley_mail._p_queue_properties() else parley_mail._p_message_properties() end) ? attname`)
	for filter, want := range map[string]string{
		`{}`: "DNS/internet/example.com MAILBOX/local/- POISON/-/- SUBMISSION/-/- UNREACHABLE/-/-", `{"queue": "dns/*"}`: "DNS/internet/example.com", `{"messages": {"greater": 1}, "status": {"not": "retry"}, "delivery_type": "*"}`: "DNS/internet/example.com MAILBOX/local/-",
		`{"not": {"delivery_type": "DNS"}, "messages": 1}`: "SUBMISSION/-/-", `{"next_hop": {"contains": "example"}}`: "DNS/internet/example.com", `{"oldest_at": {"greater": "now"}}`: "",
		`{"last_error": {"equals": ""}, "velocity": {"not": 1000}, "queue": {"less": "E"}}`: "DNS/internet/example.com", `{"failing_since": {"less": "now"}}`: "",
		`{"bytes": {"greater": "0.1 kB", "less": "1 TB"}, "delivery_type": {"contains": "ns"}}`: "DNS/internet/example.com",
		`{"delivery_type": ["DNS", "poison"]}`:                                                  "DNS/internet/example.com POISON/-/-", `{"queue": {"not": ["D*", "*-"]}}`: "", `{"not": {"delivery_type": ["DNS", "MAILBOX"]}, "queue": "P*"}`: "POISON/-/-",
	} {
		if got := sqltest.Value[string](b.Session, `select coalesce(string_agg(q.queue, ' ' order by q.queue), '') from parley_mail.find_queues($1) as q`, filter); got != want {
			t.Errorf("of queues %s chooses %q, want %q", filter, got, want)
		}
	}
	for _, filter := range []string{`null`, `{"size": 1}`, `{"messages": "many"}`, `{"not": {"not": {}}}`, `{"status": null}`, `{"status": []}`, `{"status": ["READY", "GONE"]}`, `{"messages": [1]}`, `{"bytes": {"contains": "1"}}`} {
		b.RefusesMail(10, "select parley_mail.find_queues($1)", filter)
	}
	b.RefusesMail(10, "select parley_mail.find_queues(null)")
	// A name that there is not would choose nothing, as if nothing were there: it is refused, and the error lists those that exist.
	const statuses, sources, queueStatuses = "READY, ACTIVE, RETRY, SUSPENDED, PENDING_SUSPEND, PENDING_REMOVE, SCHEDULED.", "SMTP, SQL, HTTP, PICKUP, REPLAY, DSN.", "ACTIVE, CONNECTING, READY, RETRY, SUSPENDED."
	for _, c := range []struct{ function, filter, sort, says string }{
		{"messages", `{"status": "GONE"}`, "", statuses},
		{"messages", `{"status": ["READY", "READ_"]}`, "", statuses},
		{"messages", `{"status": {"not": "GONE"}}`, "", statuses},
		{"messages", `{"not": {"status": "R*"}}`, "", statuses},
		{"messages", `{"priority": "URGENT"}`, "", "HIGH, NORMAL, LOW."},
		{"messages", `{"priority": ["HIGH"]}`, "", "HIGH, NORMAL, LOW."},
		{"messages", `{"priority": {"contains": "x"}}`, "", "HIGH, NORMAL, LOW."},
		{"messages", `{"source": "MTP"}`, "", sources},
		{"messages", `{"not": {"source": {"equals": "X*"}}}`, "", sources},
		{"queues", `{"status": "x"}`, "", queueStatuses},
		{"queues", `{"not": {"status": {"not": "PENDING_REMOVE"}}}`, "", queueStatuses},
		{"queues", `{"delivery_type": {"contains": "smarthost"}}`, "", "DNS, SMART_HOST, MAILBOX, SERVICE, SUBMISSION, UNREACHABLE, POISON."},
		{"messages", "{}", "recipients", "header_message_id, last_error, message_id, network_message_id,"},
		{"messages", "{}", "size:down", "header_message_id, last_error, message_id, network_message_id,"},
		{"queues", "{}", "size", "incoming_rate, last_error, low, max_connections, messages,"},
		{"queues", "{}", `queue" desc; select "1`, "incoming_rate, last_error, low, max_connections, messages,"},
	} {
		refusal := b.RefusesMail(10, "select parley_mail.find_"+c.function+"($1, sort => nullif($2, ''))", c.filter, c.sort)
		if !strings.Contains(refusal.Detail+refusal.Hint, c.says) {
			t.Errorf("of %s %s by %q: %q %q does not say %s", c.function, c.filter, c.sort, refusal.Detail, refusal.Hint, c.says)
		}
	}
	// Sorted is the whole list, and not what comes first by the usual order.
	for _, c := range []struct{ function, shown, filter, sort, want string }{
		{"messages", "subject", `{"queue": "DNS/*"}`, "received_at", "two"},
		{"messages", "subject", `{"queue": "DNS/*"}`, "message_id:desc", "two"},
		{"messages", "subject", `{}`, "Priority", "three"},
		{"messages", "subject", `{}`, "subject:asc", "one"},
		{"messages", "subject", `{}`, " subject : DESC ", "two"},
		{"messages", "subject", `{}`, "last_error:desc", "one"},
		{"messages", "queue", `{}`, "queue:desc", "SUBMISSION/-/-"},
		{"queues", "queue", `{}`, "status:desc", "POISON/-/-"},
		{"queues", "queue", `{}`, "queue:desc", "UNREACHABLE/-/-"},
		{"queues", "queue", `{}`, "bytes:desc", "DNS/internet/example.com"},
	} {
		sqltest.Equal(b.Session, c.want, "select "+c.shown+" from parley_mail.find_"+c.function+"($1, 1, sort => $2)", c.filter, c.sort)
	}
	b.RefusesMail(10, "select parley_mail.find_messages('{}', after => '1 x', sort => 'size')")
	b.RefusesMail(10, "select parley_mail.find_queues('{}', after => 'x', sort => 'bytes')")
	sqltest.Equal(b.Session, "POISON/-/-", `select q.queue from parley_mail.find_queues('{}', 1, 'MAILBOX/local/-') as q`)
	// Page by page the list is the same.
	sqltest.Equal(b.Session, sqltest.Value[string](b.Session, "select string_agg(bookmark, ',') from parley_mail.find_messages('{}')"), `
		with recursive page as (
			select 0 as n, null::text as bookmark
			union all
			select p.n + 1, (select f.bookmark from parley_mail.find_messages('{}', 1, p.bookmark) as f) from page as p where p.n = 0 or p.bookmark is not null
		)
		select string_agg(bookmark, ',' order by n) from page`)
}
