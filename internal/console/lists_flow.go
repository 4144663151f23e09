package console

var sendPorts = listing{
	path: "/flow", title: "Send ports",
	about: "Where the integration engine sends messages, and what waits for each. Suspended messages are counted up to 10,000.",
	none:  "There is no send port that your role may see.",
	from:  "parley_flow.port_activity() as x",
	columns: []column{
		{"Port", "x.name", text, "/flow/suspended?send_port=%s"},
		{"Application", "x.application", text, "/flow?application=%s"},
		{"Host", "x.host", text, "/flow/hosts?host=%s"},
		{"State", "case when x.is_closed then x.state || ', closed now' else x.state end", state, ""},
		{"Waiting", "x.waiting", number, ""},
		{"Failing", "x.failing", number, ""},
		{"Suspended", "case when x.suspended >= 10000 then '≥ 10,000' else x.suspended::text end", number, ""},
		{"Out /s", "round(x.sent_per_second, 1)", text, ""},
		{"Oldest", "x.oldest", moment, ""},
		{"Held keys", "case when x.held_keys >= 10000 then '≥ 10,000' else x.held_keys::text end", number, ""},
		{"Next attempt", "x.next_attempt_at", moment, ""},
		{"Last error", "case when x.recovered_at is null then x.last_error end", reading, ""},
	},
	filters: []filter{
		{name: "application", label: "Application", where: "x.application = ?"},
		{name: "state", label: "State", where: "x.state = ?", choices: []string{"Bound", "Stopped", "Started"}},
		{name: "name", label: "Name contains", where: "strpos(lower(x.name), lower(?)) > 0"},
	},
	order: []sorting{{"x.suspended", "bigint", true}, {"x.waiting", "bigint", true}, {"x.name", "text", false}},
	key:   []string{"x.name"},
	actions: []action{
		{
			Name: "start", Label: "Start", Sentence: "sends what waits, at once where it waited for its next attempt",
			run: statement("select parley_flow.start($1::text)::text"),
		},
		{
			Name: "stop", Label: "Stop", Sentence: "sends nothing; messages for it wait",
			run: statement("select parley_flow.stop($1::text)::text"),
		},
		{
			Name: "enlist", Label: "Enlist", Sentence: "gets messages, which wait until it is started",
			run: statement("select parley_flow.enlist($1::text)::text"),
		},
		{
			Name: "unenlist", Label: "Unenlist", IsGrave: true,
			Sentence: "gets no messages any more: those that no other port gets are suspended",
			run:      statement("select parley_flow.unenlist($1::text)::text"),
		},
	},
}

var receiveLocations = listing{
	path: "/flow/locations", title: "Receive locations",
	about: "Where the integration engine takes messages in, those that fail first.",
	none:  "There is no receive location that your role may see.",
	from:  "parley_flow.receive_locations as x",
	columns: []column{
		{"Location", "x.name", text, "/flow/suspended?location=%s"},
		{"Receive port", "x.receive_port", text, ""},
		{"Application", "x.application", text, ""},
		{"Host", "x.host", text, "/flow/hosts?host=%s"},
		{
			"State", "case when not x.is_enabled then 'OFF' when x.failing_since is not null then 'FAILED' when x.is_closed then 'CLOSED' " +
				"else 'ON' end", state, "",
		},
		{"Adapter", "x.adapter", text, ""},
		{"Address", "x.address", code, ""},
		{"Failing since", "x.failing_since", moment, ""},
		{"Reported", "x.reported_at", moment, ""},
		{"Last error", "case when x.recovered_at is null then x.last_error end", reading, ""},
	},
	filters: []filter{
		{name: "application", label: "Application", where: "x.application = ?"},
		{name: "name", label: "Name contains", where: "strpos(lower(x.name), lower(?)) > 0"},
	},
	order: []sorting{{"coalesce(x.failing_since, 'infinity')", "timestamptz", false}, {"x.name", "text", false}},
	key:   []string{"x.name"},
	actions: []action{
		{Name: "enable", Label: "Enable", Sentence: "takes messages in", run: statement("select parley_flow.enable($1::text)::text")},
		{
			Name: "disable", Label: "Disable", Sentence: "takes nothing in any more; what it took goes its way",
			run: statement("select parley_flow.disable($1::text)::text"),
		},
	},
}

var orchestrations = listing{
	path: "/flow/orchestrations", title: "Orchestrations",
	about: "Orchestrations, and how many instances of each are there.",
	none:  "There is no orchestration that your role may see.",
	from:  "parley_flow.orchestrations as x",
	columns: []column{
		{"Orchestration", "x.name", text, "/flow/instances?orchestration=%s"},
		{"Application", "x.application", text, ""},
		{"Host", "x.host", text, "/flow/hosts?host=%s"},
		{"State", "x.state", state, ""},
		{"Version", "x.version", number, ""},
		{"Waiting messages", "x.waiting", number, ""},
		{"New", "x.new", number, ""},
		{"Instances", "x.instances", number, ""},
		{"Retrying", "x.retrying", number, ""},
		{"Suspended", "x.suspended", number, ""},
		{"Oldest", "x.oldest", moment, ""},
	},
	filters: []filter{
		{name: "application", label: "Application", where: "x.application = ?"},
		{name: "name", label: "Name contains", where: "strpos(lower(x.name), lower(?)) > 0"},
	},
	order: []sorting{{"x.suspended", "bigint", true}, {"x.instances", "bigint", true}, {"x.name", "text", false}},
	key:   []string{"x.name"},
	actions: []action{
		{Name: "start", Label: "Start", Sentence: "goes on", run: statement("select parley_flow.start($1::text, 'orchestration')::text")},
		{
			Name: "stop", Label: "Stop", Sentence: "begins nothing more, and its instances stand still",
			run: statement("select parley_flow.stop($1::text, 'orchestration')::text"),
		},
	},
}

var applications = listing{
	path: "/flow/applications", title: "Applications",
	about: "Applications, and how much each defines.",
	none:  "There is no application that your role may see.",
	from: `(
		select d.application as name, count(*) filter (where d.kind = 'receive location') as locations,
			count(*) filter (where d.kind = 'send port') as ports, count(*) filter (where d.kind = 'orchestration') as orchestrations,
			max(d.changed_at) as changed_at, (array_agg(d.changed_by order by d.changed_at desc))[1] as changed_by
		from parley_flow.definitions as d
		where d.application is not null
		group by d.application
	) as x`,
	columns: []column{
		{"Application", "x.name", text, "/flow/suspended?application=%s"},
		{"Receive locations", "x.locations", number, ""},
		{"Send ports", "x.ports", number, ""},
		{"Orchestrations", "x.orchestrations", number, ""},
		{"Last change", "x.changed_at", moment, ""},
		{"By", "x.changed_by", text, ""},
	},
	order: []sorting{{"x.name", "text", false}},
}

var subscriptions = listing{
	path: "/flow/subscriptions", title: "Subscriptions",
	about: "Which messages a send port or an orchestration gets: all conditions of one line are true of them.",
	none:  "Nothing subscribes to messages, as far as your role may see.",
	from:  "parley_flow.subscriptions as x",
	columns: []column{
		{"Subscriber", "x.send_port", text, ""},
		{"Application", "x.application", text, ""},
		{"State", "x.state", state, ""},
		{"By port group", "x.port_group", text, ""},
		{"Conditions", `(
			select string_agg(concat_ws(' ', p.c ->> 'property', p.c ->> 'operator', p.c ->> 'value'), ', and ' order by p.n)
			from jsonb_array_elements(x.predicates) with ordinality as p (c, n)
		)`, reading, ""},
	},
	filters: []filter{
		{name: "subscriber", label: "Subscriber", where: "x.send_port = ?"},
		{name: "condition", label: "Condition contains", where: "strpos(lower(x.predicates::text), lower(?)) > 0"},
	},
	order: []sorting{
		{"x.send_port", "text", false},
		{"coalesce(x.port_group, '')", "text", false},
		{"x.ordinal", "bigint", false},
	},
}

var flowHosts = listing{
	path: "/flow/hosts", title: "Hosts",
	about: "Hosts of the integration engine, and the nodes that serve them.",
	none:  "There is no host that your role may see.",
	from:  "parley_flow.hosts as x",
	columns: []column{
		{"Host", "x.host", text, ""},
		{"Role", "x.role", text, ""},
		{"Node", "x.node", text, ""},
		{"State", "case when x.node is null then 'NEVER SERVED' when x.is_there then 'SERVING' else 'GONE' end", state, ""},
		{"Since", "x.started_at", moment, ""},
		{"Reported", "x.reported_at", moment, ""},
		{"Problems", `(
			select string_agg(p.problem ->> 'cause', '; ') from jsonb_path_query(x.report, '$.problems[*]') as p (problem)
		)`, reading, ""},
	},
	filters: []filter{{name: "host", label: "Host", where: "x.host = ?"}},
	order:   []sorting{{"x.host", "text", false}, {"coalesce(x.node, '')", "text", false}},
}

var flowAudit = listing{
	path: "/actions/integration", title: "Actions in the integration engine",
	about: "What administrators and operators of the engine did, by whatever program, the newest first.",
	none:  "Nothing is recorded that your role may see.",
	from:  "parley_flow.audit as x",
	columns: []column{
		{"When", "x.at", moment, ""},
		{"Role", "x.role", text, ""},
		{"What", "x.operation", text, ""},
		{"On", "x.object", reading, ""},
		{"Detail", "left(x.detail::text, 1000)", reading, ""},
	},
	filters: []filter{
		{name: "role", label: "Role", where: "x.role = ?"},
		{name: "operation", label: "What", where: "x.operation = ?"},
		{name: "object", label: "On contains", where: "strpos(lower(x.object), lower(?)) > 0"},
	},
	order: []sorting{{"x.audit_id", "bigint", true}},
}
