package console

var mailQueues = listing{
	path: "/mail", title: "Queues of mail",
	about: "Where mail waits, those with most first.",
	none:  "No mail waits.",
	from:  "parley_mail.queues as x",
	columns: []column{
		{"Queue", "x.queue", text, "/mail/messages?queue=%s"},
		{"Status", "x.status", state, ""},
		{"Messages", "x.messages", number, ""},
		{"Deferred", "x.deferred", number, ""},
		{"Bytes", "x.bytes", size, ""},
		{"Oldest", "x.oldest_at", moment, ""},
		{"Next attempt", "x.next_retry_at", moment, ""},
		{"In /s", "round(x.incoming_rate::numeric, 1)", text, ""},
		{"Out /s", "round(x.outgoing_rate::numeric, 1)", text, ""},
		{"Last error", "x.last_error", reading, ""},
	},
	filters: []filter{
		{name: "status", label: "Status", where: "x.status = ?", choices: []string{"ACTIVE", "CONNECTING", "READY", "RETRY", "SUSPENDED"}},
		{name: "name", label: "Name contains", where: "strpos(lower(x.queue), lower(?)) > 0"},
	},
	order: []sorting{{"x.messages", "bigint", true}, {"x.queue", "text", false}},
	key:   []string{"x.queue"},
	actions: []action{
		{Name: "retry", Label: "Try now", Sentence: "is tried at once", run: statement("select parley_mail.retry_queue($1::text)::text")},
		{
			Name: "suspend", Label: "Suspend", Sentence: "sends nothing until somebody resumes it",
			run: statement("select parley_mail.suspend_queue($1::text, 'by the console')::text"),
		},
		{Name: "resume", Label: "Resume", Sentence: "sends again", run: statement("select parley_mail.resume_queue($1::text)::text")},
	},
}

var mailMessages = listing{
	path: "/mail/messages", title: "Mail that waits",
	about: "Messages in queues of mail, the oldest first.",
	none:  "No message waits.",
	from:  "parley_mail.messages as x",
	columns: []column{
		{"Message", "x.message_id", code, "/mail/tracking?message=%s"},
		{"Queue", "x.queue", text, ""},
		{"Status", "x.status", state, ""},
		{"From", "x.sender", text, ""},
		{"To", "array_to_string(x.recipients, ', ')", reading, ""},
		{"Subject", "x.subject", reading, ""},
		{"Size", "x.size", size, ""},
		{"Attempts", "x.attempts", number, ""},
		{"Next attempt", "x.next_attempt_at", moment, ""},
		{"Last error", "x.last_error", reading, ""},
	},
	filters: []filter{
		{name: "queue", label: "Queue", where: "x.queue = ?"},
		{name: "status", label: "Status", where: "x.status = ?", choices: []string{"READY", "ACTIVE", "RETRY", "SUSPENDED"}},
		{name: "from", label: "From", where: "x.sender = ?"},
		{name: "subject", label: "Subject contains", where: "strpos(lower(x.subject), lower(?)) > 0"},
	},
	order: []sorting{{"x.message_id", "bigint", false}, {"x.queue", "text", false}},
	key:   []string{"x.message_id"},
	actions: []action{
		mailAction("retry", "Try now", "is tried at once", false,
			"select parley_mail.retry_messages(jsonb_build_object('message_id', $1::text::bigint))::text"),
		mailAction("suspend", "Suspend", "is not sent until somebody resumes it", false,
			"select parley_mail.suspend_messages(jsonb_build_object('message_id', $1::text::bigint), 'by the console')::text"),
		mailAction("resume", "Resume", "is sent again", false,
			"select parley_mail.resume_messages(jsonb_build_object('message_id', $1::text::bigint))::text"),
		mailAction("remove", "Remove, with a report", "is removed, and its sender gets a report that it was not delivered", true,
			"select parley_mail.remove_messages(jsonb_build_object('message_id', $1::text::bigint), true)::text"),
	},
}

func mailAction(name, label, sentence string, isGrave bool, sql string) action {
	return action{Name: name, Label: label, Sentence: sentence, IsGrave: isGrave, run: statement(sql)}
}

var mailTracking = listing{
	path: "/mail/tracking", title: "Tracking of mail",
	about: "What became of messages, the newest event first.",
	none:  "No event fits.",
	from:  "parley_mail.tracking as x",
	columns: []column{
		{"When", "x.date_time", moment, ""},
		{"Event", "x.event_id", state, ""},
		{"Source", "x.source", text, ""},
		{"Message", "x.internal_message_id", code, "/mail/tracking?message=%s"},
		{"From", "x.sender_address", text, ""},
		{"To", "array_to_string(x.recipient_address, ', ')", reading, ""},
		{"Status", "x.recipient_status", reading, ""},
		{"Subject", "x.message_subject", reading, ""},
		{"Connector", "x.connector_id", text, ""},
	},
	filters: []filter{
		{name: "message", label: "Message", where: "x.internal_message_id = ?"},
		{name: "id", label: "Message-ID", where: "x.message_id = ?"},
		{name: "from", label: "From", where: "x.sender_address = ?"},
		{name: "to", label: "To contains", where: "strpos(lower(array_to_string(x.recipient_address, ',')), lower(?)) > 0"},
		{name: "event", label: "Event", where: "x.event_id = upper(?)"},
	},
	order: []sorting{{"x.date_time", "timestamptz", true}, {"x.log_id::bigint", "bigint", true}},
}

var mailPressure = listing{
	path: "/mail/pressure", title: "Pressure on mail",
	about: "What mail transport measures of itself, and the level of each.",
	none:  "No daemon of mail has reported.",
	from:  "parley_mail.pressure as x",
	columns: []column{
		{"Daemon", "x.node", text, ""},
		{"Resource", "x.resource", text, ""},
		{"Level", "x.level", state, ""},
		{"Value", "round(x.value::numeric, 2)", text, ""},
		{"Unit", "x.unit", text, ""},
		{"Medium at", "x.medium_at", text, ""},
		{"High at", "x.high_at", text, ""},
	},
	order: []sorting{{"x.node", "text", false}, {"x.resource", "text", false}},
}
