package console

import transportstore "github.com/parley-broker/parley/internal/store/transport"

var destinations = listing{
	path: "/servers", title: "Destinations",
	about: "Where messages to other databases go, and what waits for each, those with most first.",
	none:  "Nothing waits for another database.",
	from:  transportstore.DestinationRows + " as x",
	columns: []column{
		{"Address", "coalesce(x.address, '')", code, "/servers/queue?address=%s"},
		{"Waiting", estimated("x.waiting_messages"), number, ""},
		{"On the way", "x.messages_in_transit", number, ""},
		{"Oldest", "x.oldest_enqueue_time", moment, ""},
		{"Attempts", "x.attempts", number, ""},
		{"Failing since", "x.failing_since", moment, ""},
		{"Next attempt", "x.next_attempt_time", moment, ""},
		{"Status", "x.transmission_status", reading, ""},
	},
	order: []sorting{{"x.waiting_messages", "bigint", true}, {"coalesce(x.address, '')", "text", false}},
}

var transmissions = listing{
	path: "/servers/queue", title: "Transmission queue",
	about: "Messages that wait to leave this database.",
	none:  "No message waits to leave.",
	from:  "parley.transmission_queue as x",
	columns: []column{
		{"Conversation", "x.conversation_handle", code, "/conversations/%s"},
		{"To", "x.to_service_name", text, ""},
		{"From", "x.from_service_name", text, ""},
		{"Message type", "x.message_type_name", text, ""},
		{"Number", "x.message_sequence_number", number, ""},
		{"Waits since", "x.enqueue_time", moment, ""},
		{"Attempts", "x.attempts", number, ""},
		{"Status", "x.transmission_status", reading, ""},
	},
	filters: []filter{
		{name: "to", label: "To", where: "x.to_service_name = ?"},
		{name: "from", label: "From", where: "x.from_service_name = ?"},
		{name: "address", label: "Address", where: "x.address = ?"},
	},
	order: []sorting{
		{"x.enqueue_time", "timestamptz", false},
		{"x.conversation_handle", "uuid", false},
		{"x.message_sequence_number", "bigint", false},
		{"x.message_type_name", "text", false},
	},
}

var connections = listing{
	path: "/servers/connections", title: "Connections",
	about: "Links of the daemon to daemons elsewhere.",
	none:  "The daemon has no link to another server.",
	from:  "parley.dm_broker_connections as x",
	columns: []column{
		{"Address", "x.address", code, ""},
		{"State", "x.state_desc", state, ""},
		{"Peer", "x.principal_name", text, ""},
		{"Accepted", "case when x.is_accept then 'yes' else 'no' end", text, ""},
		{"Not answered out", "x.sends_posted", number, ""},
		{"Window out", "case when x.is_send_flow_controlled then 'FULL' else 'OPEN' end", state, ""},
		{"Not answered in", "x.receives_posted", number, ""},
		{"Window in", "case when x.is_receive_flow_controlled then 'FULL' else 'OPEN' end", state, ""},
		{"Since", "x.connect_time", moment, ""},
		{"Last activity", "x.last_activity_time", moment, ""},
		{"Bytes out", "x.total_bytes_sent", size, ""},
		{"Bytes in", "x.total_bytes_received", size, ""},
		{"Software", "x.software", text, ""},
	},
	order: []sorting{{"x.connect_time", "timestamptz", true}, {"x.connection_id", "uuid", false}},
}

var routes = listing{
	path: "/servers/routes", title: "Routes",
	about: "Where services of other databases are.",
	none:  "There is no route.",
	from:  "parley.routes as x",
	columns: []column{
		{"Name", "x.name", text, ""},
		{"Service", "x.remote_service_name", text, ""},
		{"Broker", "x.broker_instance", code, ""},
		{"Address", "x.address", code, ""},
		{"Mirror", "x.mirror_address", code, ""},
		{"Ends", "x.lifetime", moment, ""},
		{"Expired", "case when x.is_expired then 'yes' else 'no' end", text, ""},
	},
	filters: []filter{{name: "service", label: "Service", where: "x.remote_service_name = ?"}},
	order:   []sorting{{"x.name", "text", false}},
}

var peers = listing{
	path: "/servers/peers", title: "Peers",
	about: "Brokers elsewhere that this database trusts.",
	none:  "No broker elsewhere is trusted: parley pair makes two trust each other.",
	from:  "parley.peers as x",
	columns: []column{
		{"Name", "x.name", text, ""},
		{"State", "x.state", state, ""},
		{"Role", "x.role_name", text, ""},
		{"Address", "x.address", code, ""},
		{"Certificate until", "x.not_after", moment, ""},
		{"Since", "x.create_date", moment, ""},
	},
	order: []sorting{{"x.name", "text", false}},
}
