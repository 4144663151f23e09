package transport

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// The questions of a daemon to a database that transmits. Statements that change something carry the daemon's term.

// ReadSpeaker returns in whose name the daemon that holds a term transmits, and records when the server has begun a new epoch. It
// returns false when the term is over.
func ReadSpeaker(ctx context.Context, db pgdb.DB, term int64) (Speaker, bool, error) {
	s := Speaker{Term: term}
	var epoch *int64
	const query = "select s.instance, s.epoch, s.token from parley._p_speaker($1::bigint) as s"
	err := db.QueryRow(ctx, query, term).Scan(&s.Instance, &epoch, &s.Token)
	if err != nil {
		return Speaker{}, false, pgdb.StatementError(err, "read who speaks for the broker")
	}
	if epoch == nil {
		return Speaker{}, false, nil
	}
	s.Epoch = *epoch
	return s, true, nil
}

// ReadDestinations reads the destinations for which something waits or is in transit.
func ReadDestinations(ctx context.Context, db pgdb.DB) ([]Destination, error) {
	rows, err := db.Query(ctx, "select d.destination_id, d.address, d.due_ms, d.attempts, d.has_probes from parley._p_destinations() as d")
	if err != nil {
		return nil, pgdb.StatementError(err, "read the destinations")
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Destination, err error) {
		var dueMS float64
		err = row.Scan(&d.ID, &d.Address, &dueMS, &d.Attempts, &d.HasProbes)
		d.Due = time.Duration(dueMS * float64(time.Millisecond))
		return d, err
	})
	if err != nil {
		return nil, pgdb.StatementError(err, "read the destinations")
	}
	return found, nil
}

const runColumns = `r.endpoint_id, r.conversation_id, r.is_initiator, r.first_sequence, r.message_type_name, r.bodies, r.body_size,
	r.from_service, r.to_service, r.contract, r.to_broker, r.priority, r.enqueued_at, r.ends_at, r.trace_context, r.owner, r.is_encrypted,
	r.is_bound`

// TakeRuns gives the next messages for a destination their numbers, for good, and returns them in the order in which they have
// to be sent: none when the term is over. At most rowsMax rows of the transmission queue, each a message or a frame of them, and
// about bytesMax bytes of bodies.
func TakeRuns(ctx context.Context, db pgdb.DB, term int64, destination int32, rowsMax int, bytesMax int64) ([]Run, error) {
	rows, err := db.Query(ctx, "select "+runColumns+`
		 from parley._p_take_runs(
			term => $1::bigint, destination_id => $2::integer, rows_max => $3::integer, bytes_max => $4::bigint
		) as r`,
		term, destination, rowsMax, bytesMax)
	return collectRuns(rows, err, "take messages to transmit")
}

// UnacknowledgedRuns reads what is in transit to a destination, in the order of endpoint and number, after the one given: 0 and
// -1 to begin with.
func UnacknowledgedRuns(
	ctx context.Context, db pgdb.DB, destination int32, afterEndpoint, afterSequence int64, rowsMax int, bytesMax int64,
) ([]Run, error) {
	rows, err := db.Query(ctx,
		"select "+runColumns+`
			 from parley._p_unacknowledged_runs(
				destination_id => $1::integer, after_endpoint => $2::bigint, after_sequence => $3::bigint,
				rows_max => $4::integer, bytes_max => $5::bigint
			) as r`,
		destination, afterEndpoint, afterSequence, rowsMax, bytesMax)
	return collectRuns(rows, err, "read what is in transit")
}

// ReadProbes reads the runs that compare conversations with their far sides after the epoch has changed; until they are answered
// nothing else is sent for these.
func ReadProbes(ctx context.Context, db pgdb.DB, destination int32, top int) ([]Run, error) {
	rows, err := db.Query(ctx, `
		select (p.run).endpoint_id, (p.run).conversation_id, (p.run).is_initiator, (p.run).first_sequence, (p.run).from_service,
			(p.run).to_service, (p.run).contract, (p.run).to_broker, (p.run).priority, (p.run).owner, (p.run).is_encrypted, (p.run).is_bound,
			p.given, p.expected
		from parley._p_probes($1::integer, $2::integer) as p`, destination, top)
	if err != nil {
		return nil, pgdb.StatementError(err, "read what to compare")
	}
	runs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Run, err error) {
		r.Probe = &Probe{}
		err = row.Scan(&r.EndpointID, &r.ConversationID, &r.FromInitiator, &r.FirstSequence, &r.FromService, &r.ToService, &r.Contract,
			&r.ToBroker, &r.Priority, &r.Owner, &r.IsEncrypted, &r.IsBound, &r.Probe.Given, &r.Probe.Expected)
		return r, err
	})
	if err != nil {
		return nil, pgdb.StatementError(err, "read what to compare")
	}
	return runs, nil
}

func collectRuns(rows pgx.Rows, err error, what string) ([]Run, error) {
	if err != nil {
		return nil, pgdb.StatementError(err, what)
	}
	runs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Run, err error) {
		var endsAt *time.Time
		var trace *string
		err = row.Scan(&r.EndpointID, &r.ConversationID, &r.FromInitiator, &r.FirstSequence, &r.MessageType, &r.Bodies, &r.Size,
			&r.FromService, &r.ToService, &r.Contract, &r.ToBroker, &r.Priority, &r.EnqueuedAt, &endsAt, &trace, &r.Owner, &r.IsEncrypted,
			&r.IsBound)
		if endsAt != nil {
			r.EndsAt = *endsAt
		}
		if trace != nil {
			r.TraceContext = *trace
		}
		return r, err
	})
	if err != nil {
		return nil, pgdb.StatementError(err, what)
	}
	return runs, nil
}

// AcknowledgeRuns reports to a database what the far sides have answered. It returns false when the term is over. The transaction commits
// without a wait for the disk: what is lost of it is sent and answered again.
func AcknowledgeRuns(ctx context.Context, db pgdb.DB, term int64, acknowledgements []Acknowledgement) (bool, error) {
	n := len(acknowledgements)
	endpoints, firsts, alone, probes := make([]int64, n), make([]int64, n), make([]bool, n), make([]bool, n)
	outcomes, nexts, numbers := make([]string, n), make([]int64, n), make([]*int32, n)
	descriptions, brokers, epochs := make([]string, n), make([]pgdb.UUID, n), make([]int64, n)
	for i, a := range acknowledgements {
		endpoints[i], firsts[i], alone[i], probes[i] = a.EndpointID, a.FirstSequence, a.IsAlone, a.IsProbe
		outcomes[i], nexts[i], descriptions[i] = string(a.Result.Outcome), a.Result.Next, a.Result.Description
		brokers[i], epochs[i] = a.Result.Broker, a.Result.Epoch
		numbers[i] = &acknowledgements[i].Result.ErrorNumber
	}
	var leads bool
	err := db.QueryRow(ctx, `
		select parley._p_acknowledge(
			term => $1::bigint, endpoint_ids => $2::bigint[], first_sequences => $3::bigint[], are_alone => $4::boolean[],
			are_probes => $5::boolean[], outcomes => $6::text[], next_sequences => $7::bigint[],
			error_numbers => $8::integer[], descriptions => $9::text[], brokers => $10::uuid[], epochs => $11::bigint[]
		)
		from set_config('synchronous_commit', 'off', true)`,
		term, endpoints, firsts, alone, probes, outcomes, nexts, numbers, descriptions, pgdb.UUIDTexts(brokers), epochs).Scan(&leads)
	if err != nil {
		return false, pgdb.StatementError(err, "acknowledge messages")
	}
	return leads, nil
}

// ReadBodyPart reads a part of a large body in transit. It returns nil when the message has been acknowledged meanwhile.
func ReadBodyPart(ctx context.Context, db pgdb.DB, endpointID, sequence, offset int64, length int) ([]byte, error) {
	var part []byte
	err := db.QueryRow(ctx, `
		select parley._p_read_body_part(
			endpoint_id => $1::bigint, sequence => $2::bigint, first_byte => $3::bigint, bytes => $4::integer
		)`,
		endpointID, sequence, offset, length).Scan(&part)
	if err != nil {
		return nil, pgdb.StatementError(err, "read a part of a message")
	}
	return part, nil
}

// ReportAttempt records why a destination could not be reached, and returns when to try again; an empty failure records that it
// has answered.
func ReportAttempt(ctx context.Context, db pgdb.DB, term int64, destination int32, failure string) (time.Duration, error) {
	var dueMS *float64
	err := db.QueryRow(ctx, `
		select parley._p_report_attempt(
			term => $1::bigint, destination_id => $2::integer, failure => $3::text
		)`, term, destination, failure).Scan(&dueMS)
	if err != nil {
		return 0, pgdb.StatementError(err, "report an attempt")
	}
	if dueMS == nil {
		return 0, nil
	}
	return time.Duration(*dueMS * float64(time.Millisecond)), nil
}

// ReadUnresolved reads conversations whose route says LOCAL, while their own database does not have the service.
func ReadUnresolved(ctx context.Context, db pgdb.DB, top int) ([]Unresolved, error) {
	const query = "select u.endpoint_id, u.conversation_id, u.to_service, u.to_broker from parley._p_unresolved($1::integer) as u"
	rows, err := db.Query(ctx, query, top)
	if err != nil {
		return nil, pgdb.StatementError(err, "read conversations without a destination")
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Unresolved])
	if err != nil {
		return nil, pgdb.StatementError(err, "read conversations without a destination")
	}
	return found, nil
}

// BindConversations binds conversations that have no destination to an address, broker:GUID; an empty one leaves them where
// they are, and records the status that the transmission queue shows.
func BindConversations(ctx context.Context, db pgdb.DB, term int64, endpointIDs []int64, address, status string) error {
	const statement = `
		select parley._p_bind_conversations(
			term => $1::bigint, endpoint_ids => $2::bigint[], address => $3::text, status => $4::text
		)`
	_, err := db.Exec(ctx, statement, term, endpointIDs, address, status)
	if err != nil {
		return pgdb.StatementError(err, "bind conversations")
	}
	return nil
}

// AskForTransmissionWakeUps asks senders to notify channel parley, for a time, of messages to other databases: with the id of the
// destination, or "unresolved".
func AskForTransmissionWakeUps(ctx context.Context, db pgdb.DB, d time.Duration) error {
	if _, err := db.Exec(ctx, "select parley._p_ask_for_transmission_wakeups($1::integer)", pgdb.Seconds(d)); err != nil {
		return pgdb.StatementError(err, "ask to be notified of messages to transmit")
	}
	return nil
}

// CancelTransmissionWakeUps ends what AskForTransmissionWakeUps began.
func CancelTransmissionWakeUps(ctx context.Context, db pgdb.DB) error {
	if _, err := db.Exec(ctx, "select parley._p_ask_for_transmission_wakeups(0)"); err != nil {
		return pgdb.StatementError(err, "stop being notified of messages to transmit")
	}
	return nil
}

// DestinationRows is the source of the rows of parley.transmission_destinations in a statement: where messages wait to go, for the role
// that asks, with how many wait. The cost does not grow with what waits.
const DestinationRows = "parley.transmission_destinations()"
