package console

import (
	"context"
	"net/url"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/operate"
)

var schedules = listing{
	path: "/schedules", title: "Schedules",
	about: "Messages that are put into simple queues, or begin conversations, again and again.",
	none:  "There is no schedule that your role may see.",
	from:  "parley.schedules as x",
	columns: []column{
		{"Name", "x.name", text, "/schedules/runs?name=%s"},
		{"Queue", "x.queue_name", text, "/queues/%s"},
		{"Conversation", "x.from_service || ' to ' || x.to_service", text, ""},
		{"When", "coalesce(x.cron, 'every ' || x.every::text)", code, ""},
		{"Time zone", "x.time_zone", text, ""},
		{"State", "case when x.is_paused then 'PAUSED' else 'ON' end", state, ""},
		{"Next", "x.next_at", moment, ""},
		{"Last", "x.last_at", moment, ""},
		{"Owner", "x.owner", text, ""},
		{"Fault", "x.fault", reading, ""},
	},
	filters: []filter{
		{name: "queue", label: "Queue", where: "x.queue_name = ?"},
		{name: "name", label: "Name contains", where: "strpos(lower(x.name), lower(?)) > 0"},
	},
	order: []sorting{{"x.name", "text", false}},
	key:   []string{"x.name"},
	actions: []action{
		{Name: "run", Label: "Run now", Sentence: "puts its message now, besides its times", run: onSchedule(operate.RunSchedule)},
		{Name: "pause", Label: "Pause", Sentence: "puts nothing until somebody resumes it", run: onSchedule(operate.PauseSchedule)},
		{Name: "resume", Label: "Resume", Sentence: "goes on with its next time", run: onSchedule(operate.ResumeSchedule)},
		{Name: "remove", Label: "Remove", IsGrave: true, Sentence: "is removed, with its history", run: onSchedule(operate.RemoveSchedule)},
	},
}

var scheduleRuns = listing{
	path: "/schedules/runs", title: "Runs of schedules",
	about: "The last hundred runs of each schedule, the newest first.",
	none:  "No schedule has run yet.",
	from:  "parley.schedule_runs as x",
	columns: []column{
		{"Schedule", "x.name", text, "/schedules?name=%s"},
		{"Due", "x.due_at", moment, ""},
		{"Put", "x.sent_at", moment, ""},
		{"Message", "x.message_id", code, ""},
		{"Conversation", "x.conversation_handle", code, ""},
		{"Left out before", "x.missed", number, ""},
		{"Error", "x.error", reading, ""},
	},
	filters: []filter{{name: "name", label: "Schedule", where: "x.name = ?"}},
	order: []sorting{
		{"coalesce(x.sent_at, '-infinity')", "timestamptz", true},
		{"coalesce(x.due_at, '-infinity')", "timestamptz", true},
		{"x.name", "text", false},
	},
}

// onSchedule makes an action of a function on a schedule, whose name is the key.
func onSchedule(do func(context.Context, parley.DB, string) error) run {
	return func(ctx context.Context, tx pgx.Tx, key []string, _ url.Values) error { return do(ctx, tx, key[0]) }
}
