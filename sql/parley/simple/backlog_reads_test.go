package simple_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// putWide puts so many messages, with a key or without one.
func putWide(s sqltest.Session, count int, key any) {
	s.Helper()
	s.Exec("select parley.put_batch('jobs', array(select lpad(n::text, 100) from generate_series(1, $1::int) as n), key => $2)", count, key)
}

// backlogs fill a queue in front of messages that can be taken, or behind them.
var backlogs = map[string]func(b *sqltest.Broker, analyze func()) (release func()){
	"behind the message": func(b *sqltest.Broker, analyze func()) func() {
		b.Put("first")
		putWide(b.Session, 12000, nil)
		analyze()
		return func() {}
	},
	"of two busy keys": func(b *sqltest.Broker, analyze func()) func() {
		b.PutKeyed("a:1", "b:1")
		for n := range 30 {
			putWide(b.Session, 1000, []string{"a", "b"}[n%2])
		}
		holder := b.Begin()
		holder.RequireTaken(2, "a:1", "b:1")
		analyze()
		putNumbered(b.Session, 200)
		return holder.Rollback
	},
	"of two busy keys, and others": func(b *sqltest.Broker, analyze func()) func() {
		b.PutKeyed("a:1", "b:1")
		for n := range 30 {
			putWide(b.Session, 1000, []string{"a", "b"}[n%2])
		}
		holder := b.Begin()
		holder.RequireTaken(2, "a:1", "b:1")
		analyze()
		b.Exec("select parley.put_each('jobs', array_agg(n::text), array_agg('free ' || n)) from generate_series(1, 75) as n")
		return holder.Rollback
	},
	"that is not due": func(b *sqltest.Broker, analyze func()) func() {
		b.Exec("select parley.put_batch('jobs', array(select lpad(n::text, 100) from generate_series(1, 12000) as n), deliver_at => now() + interval '1 day')")
		analyze()
		putNumbered(b.Session, 200)
		return func() {}
	},
	"in another queue": func(b *sqltest.Broker, analyze func()) func() {
		b.Exec("select parley.create_queue('other', kind => 'simple')")
		b.Exec("select parley.put_batch('other', array(select lpad(n::text, 100) from generate_series(1, 12000) as n))")
		analyze()
		putNumbered(b.Session, 200)
		return func() {}
	},
}

// The cost of a call must not grow with what waits, whatever the statistics say: those of a table that was never analyzed, or of the backlog.
func TestCallsOfASimpleQueueReadLittleOfABacklog(t *testing.T) {
	t.Parallel()
	const anID = "(select t.message_id from parley.peek_messages('jobs', 1) as t)"
	calls := map[string]string{
		"take":           "select parley.take('jobs')",
		"take of some":   "select parley.take('jobs', 5)",
		"claim":          "select parley.claim('jobs')",
		"put":            "select parley.put('jobs', 'x'::text)",
		"put with a key": "select parley.put('jobs', 'x'::text, key => 'k')",
		"put once":       "select parley.put('jobs', 'x'::text, deduplication_key => 'once')",
		"put unique":     "select parley.put_unique('jobs', 'x', 'u')",
		"put later":      "select parley.put('jobs', 'x'::text, deliver_at => now() + interval '1 hour')",
		"peek":           "select parley.peek_messages('jobs', 1)",
		"retry":          "select parley.retry('jobs', " + anID + ", 'no')",
		"fail":           "select parley.fail('jobs', " + anID + ", 'no')",
		"cancel":         "select parley.cancel('jobs', " + anID + ")",
		"record failure": "select parley.record_message_failure('jobs', " + anID + ", '22000', 'no')",
	}
	// Some for each of the first rows and of a few keys; twelve thousand or more wait.
	const most = 3000
	for backlog, prepare := range backlogs {
		for _, statistics := range []string{"none", "of the backlog"} {
			t.Run(backlog+", statistics "+statistics, func(t *testing.T) {
				t.Parallel()
				b := sqltest.NewJobs(t)
				b.Exec("select parley.alter_queue('jobs', retry => '{\"first\": \"1 min\", \"attempts\": 5}')")
				defer prepare(b, func() {
					if statistics != "none" {
						b.Exec("analyze")
					}
				})()
				for _, call := range calls {
					s := b.Connection()
					// The first calls plan, and one in some takes a longer way.
					var reads []int
					for range 9 {
						reads = append(reads, s.EntriesRead(call))
					}
					if slices.Min(reads[6:]) > most {
						t.Errorf("%s reads %d entries, at most %d are needed", call, reads, most)
					}
				}
			})
		}
	}
}
