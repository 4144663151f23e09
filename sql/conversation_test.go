package sql_test

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// message is what RECEIVE and the views of queues show (spec 4.3).
type message struct {
	Status                int16
	Priority              int16
	QueuingOrder          int64
	ConversationGroupID   string
	ConversationHandle    string
	MessageSequenceNumber int64
	ServiceName           string
	ServiceID             int32
	ServiceContractName   string
	ServiceContractID     int32
	MessageTypeName       string
	MessageTypeID         int32
	Validation            string
	MessageBody           []byte
	MessageEnqueueTime    time.Time
	MessageID             *string // RECEIVE leaves it null
	TraceContext          *string
}

// dialog begins a dialog from Asker to Answerer on their contract and gives its handle.
func (s session) dialog() string {
	s.Helper()
	return value[string](s, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work')")
}

// conversation gives both handles of a dialog on which a request has been sent and received.
func (s session) conversation() (initiator, target string) {
	s.Helper()
	initiator = s.dialog()
	s.send(initiator, request, "first")
	target = s.farHandle(initiator)
	got := s.messages("select * from parley.receive('Answering', conversation_handle => $1)", target)
	if len(got) != 1 || string(got[0].MessageBody) != "first" {
		s.Fatalf("the first message did not arrive: %v", got)
	}
	return initiator, target
}

func (s session) send(handle, messageType, body string) {
	s.Helper()
	s.exec("select parley.send($1::uuid, $2, $3::text)", handle, messageType, body)
}

func (s session) end(handle string) {
	s.Helper()
	s.exec("select parley.end_conversation($1::uuid)", handle)
}

func (s session) endWithError(handle string, code int, description string) {
	s.Helper()
	s.exec("select parley.end_conversation($1::uuid, $2::int, $3)", handle, code, description)
}

// receive takes all that the next group of a queue has.
func (s session) receive(queue string) []message {
	s.Helper()
	return s.messages("select * from parley.receive($1)", queue)
}

// bodies receives from a queue and gives the bodies only.
func (s session) bodies(queue string) []string {
	s.Helper()
	return bodiesOf(s.receive(queue))
}

func bodiesOf(list []message) []string {
	bodies := []string{}
	for _, m := range list {
		bodies = append(bodies, string(m.MessageBody))
	}
	return bodies
}

func typesOf(list []message) []string {
	types := []string{}
	for _, m := range list {
		types = append(types, m.MessageTypeName)
	}
	return types
}

func (s session) messages(query string, arguments ...any) []message {
	s.Helper()
	rows, err := s.db.Query(s.Context(), query, arguments...)
	if err != nil {
		s.Fatalf("%s: %v", clip(query), describe(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[message])
	if err != nil {
		s.Fatalf("%s: %v", clip(query), describe(err))
	}
	return list
}

// farHandle is the handle of the other side.
func (s session) farHandle(handle string) string {
	s.Helper()
	return value[string](s, `
		select f.conversation_handle
		from parley.conversation_endpoints as e
		join parley.conversation_endpoints as f on f.conversation_id = e.conversation_id and f.is_initiator <> e.is_initiator
		where e.conversation_handle = $1`, handle)
}

// requireState compares the state of a side; "" is for a side that is gone.
func (s session) requireState(handle, want string) {
	s.Helper()
	got := value[string](s, "select coalesce((select e.state from parley.conversation_endpoints as e where e.conversation_handle = $1), '')", handle)
	if got != want {
		s.Errorf("the state of %s is %q, want %q", handle, got, want)
	}
}

// requireError receives one Error message and compares its code.
func (s session) requireError(queue string, code int) message {
	s.Helper()
	got := s.messages("select * from parley.receive($1, top => 1)", queue)
	if len(got) != 1 || got[0].MessageTypeName != errorMessage {
		s.Fatalf("queue %s gives %v, want one Error message", queue, typesOf(got))
	}
	s.requireCode(got[0], code)
	return got[0]
}

// requireCode reads the code of an Error message the way programs do: as XML, in its namespace.
func (s session) requireCode(m message, code int) {
	s.Helper()
	got := value[string](s, `
		select (xpath('/e:Error/e:Code/text()', convert_from($1, 'UTF8')::xml, array[array['e', 'http://schemas.microsoft.com/SQL/ServiceBroker/Error']]))[1]::text::int
			|| ' ' || ((xpath('/e:Error/e:Description/text()', convert_from($1, 'UTF8')::xml, array[array['e', 'http://schemas.microsoft.com/SQL/ServiceBroker/Error']]))[1]::text <> '')::text`,
		m.MessageBody)
	if want := fmt.Sprint(code, " true"); got != want {
		s.Errorf("the Error message says %s, want %s: %s", got, want, m.MessageBody)
	}
}
