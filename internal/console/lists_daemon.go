package console

var mailDaemons = listing{
	path: "/daemon/mail", title: "Daemons of mail",
	about: "Processes that take in and send mail.",
	none:  "No daemon of mail has reported.",
	from:  "parley_mail.daemons as x",
	columns: []column{
		{"Name", "x.name", text, ""},
		{"Status", "x.status", state, ""},
		{"Host", "x.host", text, ""},
		{"Role", "x.role", text, ""},
		{"Version", "x.version", text, ""},
		{"Serves since", "x.serving_since", moment, ""},
		{"Reported", "x.reported_at", moment, ""},
		{"Level", "x.level", state, ""},
		{"Problems", "x.problems", reading, ""},
	},
	order: []sorting{{"x.name", "text", false}},
}

var monitors = listing{
	path: "/daemon", title: "Queue monitors",
	about: "What the daemon does for each queue with activation.",
	none:  "No queue has activation, or no daemon serves this database.",
	from:  "parley.dm_broker_queue_monitors as x",
	columns: []column{
		{"Queue", "x.queue_name", text, "/queues/%s"},
		{"State", "x.state", state, ""},
		{"Readers", "x.running_readers", number, ""},
		{"Waiting", "x.tasks_waiting", number, ""},
		{"Started", "x.tasks_started", number, ""},
		{"Failures", "x.failures", number, ""},
		{"Failing since", "x.failing_since", moment, ""},
		{"Next attempt", "x.next_attempt_time", moment, ""},
		{"Daemon", "x.leader", text, ""},
		{"Last error", "concat_ws(': ', x.last_sqlstate, x.last_error)", reading, ""},
	},
	order: []sorting{{"x.failures", "bigint", true}, {"x.queue_name", "text", false}},
}

var readers = listing{
	path: "/daemon/readers", title: "Readers",
	about: "Procedures that the daemon runs now.",
	none:  "No reader runs.",
	from:  "parley.dm_broker_activated_tasks as x",
	columns: []column{
		{"Queue", "x.queue_name", text, "/queues/%s"},
		{"Procedure", "x.procedure_name", code, ""},
		{"As", "x.execute_as", text, ""},
		{"Session", "x.spid", code, ""},
		{"Since", "x.started_at", moment, ""},
	},
	order: []sorting{{"x.started_at", "timestamptz", false}, {"x.queue_name", "text", false}, {"coalesce(x.spid, 0)", "integer", false}},
}

var workSessions = listing{
	path: "/daemon/sessions", title: "Sessions that use the broker",
	about: "Sessions in whose open transaction the broker was used.",
	none:  "No transaction uses the broker now.",
	from:  "parley.broker_sessions as x",
	columns: []column{
		{"Session", "x.pid", code, ""},
		{"Role", "x.role_name", text, ""},
		{"Application", "x.application_name", text, ""},
		{"State", "x.state", text, ""},
		{"Waits for", "concat_ws(': ', x.wait_event_type, x.wait_event)", text, ""},
		{"Blocked by", "array_to_string(x.blocked_by, ', ')", code, ""},
		{"Transaction", "x.transaction_seconds", span, ""},
		{"Statement", "x.statement", reading, ""},
	},
	order: []sorting{
		{"coalesce(date_trunc('second', clock_timestamp() - make_interval(secs => x.transaction_seconds)), 'infinity')", "timestamptz", false},
		{"x.pid", "integer", false},
	},
}
