package transport_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/sqltest"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	"github.com/parley-broker/parley/parleytest"
)

const (
	request = "//test/Request"
	reply   = "//test/Reply"

	endDialog    = "http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog"
	errorMessage = "http://schemas.microsoft.com/SQL/ServiceBroker/Error"
)

// arrived is a message as it was received.
type arrived struct {
	MessageTypeName string
	MessageBody     []byte
}

// side is one of two databases that talk to each other; the test carries what they send, as a daemon does.
type side struct {
	sqltest.Session
	db   *pgxpool.Pool
	name string
	term int64
	guid parley.UUID
}

// newSides gives a test an asker in one database and an answerer in another one, to which messages may be sent by the asker's owner.
func newSides(t *testing.T) (asker, answerer *side) {
	t.Helper()
	sides := [2]*side{{name: "asker"}, {name: "answerer"}}
	for i, s := range sides {
		s.db = parleytest.Database(t)
		s.Session = sqltest.Session{T: t, DB: s.db}
		s.Exec("select parley.new_broker()")
		s.Exec(`
			select parley.create_message_type('//test/Request');
			select parley.create_message_type('//test/Reply');
			select parley.create_message_type('//test/Note');
			select parley.create_message_type('//test/Checked', 'WELL_FORMED_XML');
			select parley.create_contract('//test/Work', '{"//test/Request": "INITIATOR", "//test/Reply": "TARGET", "//test/Note": "ANY",
				"//test/Checked": "ANY"}'::jsonb);`)
		if i == 0 {
			s.Exec(`select parley.create_queue('Asking'); select parley.create_service('//test/Asker', 'Asking');`)
		} else {
			s.Exec(`select parley.create_queue('Answering');
				select parley.create_service('//test/Answerer', 'Answering', array['//test/Work']);
				select parley.grant('SEND', 'service', '//test/Answerer', 'public')`)
		}
		s.lead()
		s.guid = one[parley.UUID](s, "select b.service_broker_guid from parley._p_broker as b")
	}
	return sides[0], sides[1]
}

// lead makes the test the daemon of a side.
func (s *side) lead() {
	s.Helper()
	term := one[*int64](s, "select parley._p_lead($1::text, $2::bigint, 50000)", s.name, s.term)
	if term == nil {
		s.Fatalf("%s does not lead", s.name)
	}
	s.term = *term
}

func (s *side) speaker() transportstore.Speaker {
	s.Helper()
	speaker, leads, err := transportstore.ReadSpeaker(s.Context(), s.db, s.term)
	if err != nil || !leads {
		s.Fatalf("speak for %s: %v, %v", s.name, leads, err)
	}
	return speaker
}

// resolve binds what has no destination yet to the other side.
func (s *side) resolve(other *side) {
	s.Helper()
	unresolved, err := transportstore.ReadUnresolved(s.Context(), s.db, 1000)
	s.noError(err)
	for _, u := range unresolved {
		s.noError(transportstore.BindConversations(s.Context(), s.db, s.term, []int64{u.EndpointID}, "broker:"+other.guid.String(), ""))
	}
}

// one reads the one value of a query.
func one[T any](s *side, query string, arguments ...any) (v T) {
	s.Helper()
	s.noError(s.db.QueryRow(s.Context(), query, arguments...).Scan(&v))
	return v
}

// equal compares the value of a query.
func equal[T comparable](s *side, want T, query string, arguments ...any) {
	s.Helper()
	if got := one[T](s, query, arguments...); got != want {
		s.Errorf("%s gives %v, want %v", query, got, want)
	}
}

// messages receives with a query.
func (s *side) messages(query string, arguments ...any) []arrived {
	s.Helper()
	rows, err := s.db.Query(s.Context(), query, arguments...)
	s.noError(err)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[arrived])
	s.noError(err)
	return list
}

// dialog begins a dialog with the answerer.
func (s *side) dialog() string {
	s.Helper()
	return one[string](s, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', allow_unknown_target => true)::text")
}

func (s *side) noError(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// take gives the runs that a side has to transmit next.
func (s *side) take(other *side) []transportstore.Run {
	s.Helper()
	s.resolve(other)
	var runs []transportstore.Run
	destinations, err := transportstore.ReadDestinations(s.Context(), s.db)
	s.noError(err)
	for _, d := range destinations {
		taken, err := transportstore.TakeRuns(s.Context(), s.db, s.term, d.ID, 1000, 1<<20)
		s.noError(err)
		runs = append(runs, taken...)
	}
	return runs
}

// deliver brings runs to this side and gives its answers.
func (s *side) deliver(speaker transportstore.Speaker, runs ...transportstore.Run) []transportstore.Result {
	s.Helper()
	arrival := transportstore.Arrival{Speaker: speaker, Runs: runs, Identities: make([]string, len(runs))}
	results, err := transportstore.AcceptArrival(s.Context(), s.db, arrival)
	s.noError(err)
	return results
}

func (s *side) acknowledge(runs []transportstore.Run, results []transportstore.Result) {
	s.Helper()
	acknowledgements := make([]transportstore.Acknowledgement, len(runs))
	for i, run := range runs {
		acknowledgements[i] = transportstore.Acknowledgement{
			EndpointID: run.EndpointID, FirstSequence: run.FirstSequence, IsAlone: true, IsProbe: run.Probe != nil, Result: results[i],
		}
	}
	leads, err := transportstore.AcknowledgeRuns(s.Context(), s.db, s.term, acknowledgements)
	s.noError(err)
	if !leads {
		s.Fatalf("%s leads no more", s.name)
	}
}

// carry transmits from a side to another until nothing is left to transmit, and gives how many runs that were. First each asks the other
// one what it has to ask.
func (s *side) carry(other *side) (carried int) {
	s.Helper()
	s.ask(other)
	other.ask(s)
	for {
		runs := s.take(other)
		if len(runs) == 0 {
			return carried
		}
		s.acknowledge(runs, other.deliver(s.speaker(), runs...))
		carried += len(runs)
	}
}

// probes gives the runs with which a side asks the other one about their conversations.
func (s *side) probes() (runs []transportstore.Run) {
	s.Helper()
	destinations, err := transportstore.ReadDestinations(s.Context(), s.db)
	s.noError(err)
	for _, d := range destinations {
		probes, err := transportstore.ReadProbes(s.Context(), s.db, d.ID, 1000)
		s.noError(err)
		runs = append(runs, probes...)
	}
	return runs
}

// ask lets a side ask the other one about their conversations.
func (s *side) ask(other *side) {
	s.Helper()
	if probes := s.probes(); len(probes) > 0 {
		s.acknowledge(probes, other.deliver(s.speaker(), probes...))
	}
}

// exchange carries both ways until nothing is left.
func (s *side) exchange(other *side) {
	s.Helper()
	for s.carry(other)+other.carry(s) > 0 {
	}
}

// receivedTexts gives the texts of the messages that wait in a queue, receiving them; messages of the broker by the end of their type.
func (s *side) receivedTexts(queue string) (texts []string) {
	s.Helper()
	for {
		got := s.messages("select message_type_name, message_body from parley.receive($1)", queue)
		if len(got) == 0 {
			return texts
		}
		for _, m := range got {
			switch m.MessageTypeName {
			case endDialog:
				texts = append(texts, "EndDialog")
			case errorMessage:
				texts = append(texts, "Error")
			default:
				texts = append(texts, string(m.MessageBody))
			}
		}
	}
}
