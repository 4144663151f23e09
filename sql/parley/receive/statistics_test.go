package receive_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// waiting fills queues, and sends some more after the statistics were gathered.
var waiting = map[string]func(b *sqltest.Broker, analyze func()){
	"one long conversation": func(b *sqltest.Broker, analyze func()) {
		initiator, _ := b.Conversation()
		sendMany(b.Session, initiator, 12000)
		analyze()
		other, _ := b.Conversation()
		sendMany(b.Session, other, 20)
	},
	"many conversations": func(b *sqltest.Broker, analyze func()) {
		b.Exec("select parley.begin_and_send('//test/Asker', '//test/Answerer', $1, 'x', '//test/Work') from generate_series(1, 8000)", sqltest.Request)
		analyze()
		b.Exec("select parley.begin_and_send('//test/Asker', '//test/Answerer', $1, 'x', '//test/Work') from generate_series(1, 20)", sqltest.Request)
	},
	"a long conversation that is held, and others": func(b *sqltest.Broker, analyze func()) {
		held, target := b.Conversation()
		sendMany(b.Session, held, 12000)
		holder := b.Begin()
		holder.Exec("select parley.begin_conversation_timer($1::uuid, 3600)", target)
		analyze()
		b.Exec("select parley.begin_and_send('//test/Asker', '//test/Answerer', $1, 'x', '//test/Work') from generate_series(1, 100)", sqltest.Request)
	},
}

// The cost of a call must not grow with what waits, whatever the statistics say: those of a table that was never analyzed, or of the backlog.
func TestCallsReadLittleOfABacklogWhateverTheStatisticsSay(t *testing.T) {
	t.Parallel()
	const newest = "(select e.conversation_handle from parley._p_endpoint as e where e.is_initiator order by e.endpoint_id desc limit 1)"
	calls := map[string]string{
		"receive one":         "select parley.receive('Answering', 1)",
		"receive some":        "select parley.receive('Answering', 5)",
		"receive groups":      "select parley.receive('Answering', 5, groups => 5)",
		"group":               "select parley.get_conversation_group('Answering')",
		"groups":              "select parley.get_conversation_groups('Answering', 3)",
		"receive named":       "select parley.receive('Asking', 1, conversation_handle => " + newest + ")",
		"peek":                "select parley.peek('Answering', 1)",
		"begin":               "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work')",
		"send":                "select parley.send(" + newest + ", '" + sqltest.Request + "', 'x')",
		"begin and send":      "select parley.begin_and_send('//test/Asker', '//test/Answerer', '" + sqltest.Request + "', 'x', '//test/Work')",
		"send later":          "select parley.send(" + newest + ", '" + sqltest.Request + "', 'x', deliver_at => now() + interval '1 hour')",
		"timer":               "select parley.begin_conversation_timer(" + newest + ", 3600)",
		"transmission status": "select parley.get_transmission_status(" + newest + ")",
		"next delivery":       "select parley.next_delivery('Answering', 1)",
		"end":                 "select parley.end_conversation(parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work'))",
	}
	// Searches of several groups read the first thousands of rows of a lane, however many wait.
	const most = 5000
	for name, prepare := range waiting {
		for _, statistics := range []string{"none", "of the backlog"} {
			t.Run(name+", statistics "+statistics, func(t *testing.T) {
				t.Parallel()
				b := sqltest.NewWorld(t)
				prepare(b, func() {
					if statistics != "none" {
						b.Exec("analyze")
					}
				})
				for call, statement := range calls {
					s := b.Connection()
					var reads []int
					for range 9 {
						reads = append(reads, s.EntriesRead(statement))
					}
					if slices.Min(reads[6:]) > most {
						t.Errorf("%s reads %d entries", call, reads)
					}
				}
			})
		}
	}
}
