package console

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/operate"
)

var destinations = listing{
	path: "/servers", title: "Destinations",
	about:  "Where messages to other databases go, and what waits for each.",
	none:   "Nothing waits for another database.",
	values: readDestinations,
	columns: []column{
		{"Address", "", code, ""},
		{"Waiting", "", number, ""},
		{"On the way", "", number, ""},
		{"Oldest", "", moment, ""},
		{"Attempts", "", number, ""},
		{"Failing since", "", moment, ""},
		{"Next attempt", "", moment, ""},
		{"Status", "", reading, ""},
	},
}

// readDestinations gives the values of the columns of destinations.
func readDestinations(ctx context.Context, tx pgx.Tx) ([][]*string, error) {
	found, err := operate.ReadDestinations(ctx, tx)
	if err != nil {
		return nil, err
	}
	var rows [][]*string
	for _, one := range found {
		waiting, passing := strconv.FormatInt(one.WaitingMessages, 10), strconv.FormatInt(one.MessagesInTransit, 10)
		var attempts *string
		if one.Attempts != nil {
			text := strconv.Itoa(int(*one.Attempts))
			attempts = &text
		}
		rows = append(rows, []*string{
			&one.Address, &waiting, &passing, inText(one.OldestEnqueueTime), attempts, inText(one.FailingSince), inText(one.NextAttemptTime),
			one.TransmissionStatus,
		})
	}
	return rows, nil
}

// inText gives a time as the database writes it.
func inText(at *time.Time) *string {
	if at == nil {
		return nil
	}
	text := formatMoment(at)
	return &text
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
		{"Since", "x.connect_time", moment, ""},
		{"Last activity", "x.last_activity_time", moment, ""},
		{"Bytes out", "x.total_bytes_sent", size, ""},
		{"Bytes in", "x.total_bytes_received", size, ""},
		{"Software", "x.software", text, ""},
	},
	order: "x.connect_time desc",
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
	order:   "x.name",
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
	order: "x.name",
}
