package settings_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// preparable are statements of programs. Each notifies whoever listens, as the first call of each shows.
var preparable = map[string]string{
	"begin a dialog and send":  "select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => false), 'DEFAULT', 'x'::bytea)",
	"send with a new priority": "select parley.put('jobs', 'x'::text, priority => 7)",
	"put":                      "select parley.put('jobs', 'x'::text)",
	"put for soon":             "select parley.put('jobs', 'x'::text, deliver_at => now() + interval '1 second')",
	"begin a timer":            "select parley.begin_conversation_timer(parley.begin_dialog('//test/Asker', '//test/Answerer'), 1)",
	"end":                      "select parley.end_conversation((select handle from public.open))",
	"send what has no route":   "select parley.send(parley.begin_dialog('//test/Asker', '//far', allow_unknown_target => true), 'DEFAULT', 'x'::bytea)",
	"create a queue":           "select parley.create_queue('New')",
	"create a route":           "select parley.create_route('Far', 'tcp://far:4022', '//far')",
	"configure mail":           "select parley_mail.create_object('accepted domain', 'far.example')",
}

// PostgreSQL refuses to prepare a transaction that has notified. With the setting none does, and without it each does while somebody
// listens.
func TestTransactionsCanBePreparedWithoutWakingWhileSomebodyListens(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("create table public.open as select parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => false) as handle")
	b.Exec("select parley.send(handle, 'DEFAULT', 'x'::bytea) from public.open")
	b.Exec("select parley.listen_for_messages(n, 3600) from unnest(array['jobs', 'Asking', 'Answering']) as n")
	b.Exec("select setval(s, extract(epoch from now())::bigint + 3600) from unnest(array['parley._p_alarm_wakeup', 'parley._p_transmission_wakeup']::regclass[]) as s")
	for name, statement := range preparable {
		t.Run(name, func(t *testing.T) {
			s := b.Lonely()
			s.T = t
			gid := "'" + sqltest.Value[string](s, "select current_database()") + " " + name + "'"
			s.Exec("begin; " + statement)
			if _, err := s.DB.Exec(t.Context(), "prepare transaction "+gid); err == nil || !strings.Contains(err.Error(), "NOTIFY") {
				t.Fatalf("preparing it with wake-ups gives %v, which this test is about", err)
			}
			for _, off := range []string{"off", "OFF", "false", "no", "0"} {
				s.Exec("set parley.notify = '" + off + "'")
				s.Exec("begin; " + statement)
				s.Exec("prepare transaction " + gid)
				s.Exec("rollback prepared " + gid)
			}
		})
	}
}

// Receiving and taking notify nobody, and what is committed so is there.
func TestPreparedTransactionsReceiveAndSendOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.listen_for_messages('jobs', 3600)")
	b.Put("first", "second")
	s := b.Lonely()
	s.Exec("set parley.notify = off")
	gid := "'" + sqltest.Value[string](s, "select current_database()") + "'"
	for _, end := range []string{"rollback", "commit"} {
		s.Exec("begin")
		s.RequireTaken(1, "first")
		s.Put("third")
		s.Exec("prepare transaction " + gid)
		b.RequireTaken(1, "second")
		b.Put("second")
		s.Exec(end + " prepared " + gid)
	}
	b.RequireTaken(5, "third", "second")
}
