package console

var instances = listing{
	path: "/flow/instances", title: "Instances",
	about: "Instances of orchestrations that are not over, the oldest first.",
	none:  "No instance is there that your role may see.",
	from:  "parley_flow.instances_matching(filter => $filter, top => $top, after => $after) as x",
	columns: []column{
		{"Instance", "x.instance_id", code, "/flow/instances/%s"},
		{"Orchestration", "x.orchestration", text, ""},
		{"Version", "x.version", number, ""},
		{"Status", "x.status", state, ""},
		{"Begun", "x.began_at", moment, ""},
		{"Changed", "x.changed_at", moment, ""},
		{"Steps", "x.steps", number, ""},
		{"Waits for", `(
			select string_agg(concat_ws(' ', w.wait ->> 'kind', w.wait ->> 'shape', w.wait ->> 'at', w.wait ->> 'due_at'), ', ')
			from jsonb_array_elements(x.waits_for) as w (wait)
		)`, reading, ""},
		{"Code", "x.code", code, ""},
		{"Error", "x.error", reading, ""},
	},
	filters: []filter{
		{name: "orchestration", label: "Orchestration", asked: asText},
		{name: "application", label: "Application", asked: asText},
		{name: "status", label: "Status", asked: asText, choices: []string{"NEW", "WAITING", "RETRYING", "SUSPENDED"}},
		{name: "code", label: "Code", asked: asText},
		{name: "version", label: "Version", asked: asNumber},
		{name: "older", label: "Begun longer ago than", asked: asText},
	},
	order: []sorting{{"x.instance_id", "bigint", false}},
	key:   []string{"x.instance_id"},
	actions: []action{
		{
			Name: "resume", Label: "Resume", Sentence: "goes on where it stands: the step that failed is tried again",
			run: statement("select parley_flow.resume_instances(jsonb_build_object('instances', jsonb_build_array($1::text::bigint)))::text"),
		},
		{
			Name: "terminate", Label: "Terminate", IsGrave: true, Sentence: "ends where it stands; nothing is compensated",
			run: statement("select parley_flow.terminate_instances(jsonb_build_object('instances', jsonb_build_array($1::text::bigint)))::text"),
		},
	},
}

var suspendedMessages = listing{
	path: "/flow/suspended", title: "Suspended messages",
	about: "Messages of the integration engine that wait for somebody to decide, the oldest first.",
	none:  "No message is suspended that your role may see.",
	from:  "parley_flow.suspended_matching(filter => $filter, top => $top, after => $after) as x",
	columns: []column{
		{"Suspension", "x.suspension_id", code, "/flow/suspended/%s"},
		{"Message", "x.message_id", code, "/flow/messages/%s"},
		{"Stage", "x.stage", state, ""},
		{"Application", "x.application", text, ""},
		{"Send port", "x.send_port", text, ""},
		{"Location", "x.location", text, ""},
		{"Message type", "x.message_type", text, ""},
		{"Since", "x.suspended_at", moment, ""},
		{"Attempts", "x.attempts", number, ""},
		{"Holds up", "case when x.holds_up_order then coalesce(x.order_key, 'its port') end", text, ""},
		{"Code", "x.code", code, ""},
		{"Error", "x.error", reading, ""},
	},
	filters: []filter{
		{name: "application", label: "Application", asked: asText},
		{name: "send_port", label: "Send port", asked: asText},
		{name: "location", label: "Location", asked: asText},
		{name: "stage", label: "Stage", asked: asText, choices: []string{"RECEIVE", "ROUTE", "SEND", "PROCESS"}},
		{name: "code", label: "Code", asked: asText},
		{name: "error", label: "Error contains", asked: asText},
		{name: "messages", label: "Message", asked: asNumbers},
		{name: "cause", label: "Cause", asked: asNumber},
		{name: "older", label: "Suspended longer ago than", asked: asText},
	},
	order:   []sorting{{"x.suspension_id", "bigint", false}},
	key:     []string{"x.suspension_id"},
	actions: suspensionActions,
}

var suspensionActions = []action{
	{
		Name: "resume", Label: "Try again", Sentence: "is tried again where it failed",
		run: statement("select parley_flow.resume_suspended(jsonb_build_object('suspensions', jsonb_build_array($1::text::bigint)))::text"),
	},
	{
		Name: "terminate", Label: "Give up", IsGrave: true, Sentence: "is given up for good; what waits behind it goes on",
		run: statement("select parley_flow.terminate_suspended(jsonb_build_object('suspensions', jsonb_build_array($1::text::bigint)))::text"),
	},
}

var flowMessages = listing{
	path: "/flow/messages", title: "Messages",
	about: "Messages of the integration engine that are there, the newest first.",
	none:  "No message is there that your role may see.",
	from:  "parley_flow.messages_matching(filter => $filter, top => $top, before => $after) as x",
	columns: []column{
		{"Message", "x.message_id", code, "/flow/messages/%s"},
		{"Received", "x.received_at", moment, ""},
		{"Application", "x.application", text, ""},
		{"Receive port", "x.receive_port", text, ""},
		{"Location", "x.location", text, ""},
		{"Published by", "x.published_by", text, ""},
		{"Message type", "x.message_type", text, ""},
		{"Size", "x.size", size, ""},
		{"Deliveries", "x.deliveries", number, ""},
	},
	filters: []filter{
		{name: "message", label: "Message", asked: asNumber},
		{name: "application", label: "Application", asked: asText},
		{name: "receive_port", label: "Receive port", asked: asText},
		{name: "location", label: "Location", asked: asText},
		{name: "message_type", label: "Message type", asked: asText},
	},
	order: []sorting{{"x.message_id", "bigint", true}},
}

var routingFailures = listing{
	path: "/flow/failures", title: "Why messages matched nothing",
	about: "A line for each cause, and what to do about it.",
	none:  "No message matched nothing, as far as your role may see.",
	from:  "parley_flow.routing_failures as x",
	columns: []column{
		{"Cause", "x.cause_id", code, "/flow/suspended?cause=%s"},
		{"Messages", "x.failures", number, ""},
		{"Last", "x.last_at", moment, ""},
		{"Receive port", "x.receive_port", text, ""},
		{"Message type", "x.message_type", text, ""},
		{"Explanation", "x.explanation", state, ""},
		{"What to do", "x.remedy", reading, ""},
		{"One of them", "x.sample_message_id", code, "/flow/messages/%s"},
	},
	filters: []filter{
		{name: "port", label: "Receive port", where: "x.receive_port = ?"},
		{name: "type", label: "Message type", where: "x.message_type = ?"},
	},
	order: []sorting{{"x.last_at", "timestamptz", true}, {"x.cause_id", "bigint", false}},
	key:   []string{"x.cause_id"},
	actions: []action{{
		Name: "route", Label: "Route again", Sentence: "has the suspended messages of this cause routed again, 1,000 at most",
		run: statement("select parley_flow.resume_suspended(jsonb_build_object('cause', $1::text::bigint), 1000)::text"),
	}},
}

var trackedMessages = listing{
	path: "/flow/tracking", title: "Tracking by a property",
	about: "Messages that had a value of a property that is tracked, the newest first, also those that are gone.",
	none:  "Give a property, as namespace#Name, and its value.",
	from:  "parley_flow.find_tracked(property => $filter ->> 'property', value => $filter ->> 'value', top => 10000) as x",
	columns: []column{
		{"Message", "x.message_id", code, "/flow/messages/%s"},
		{"When", "x.at", moment, ""},
	},
	filters: []filter{
		{name: "property", label: "Property", asked: asText},
		{name: "value", label: "Value", asked: asText},
	},
	order: []sorting{{"x.at", "timestamptz", true}, {"x.message_id", "bigint", false}},
}
