package sqltest

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DialogTo begins a dialog from Asker to a service and gives its handle.
func (s Session) DialogTo(service string) string {
	s.Helper()
	return Value[string](s, "select parley.begin_dialog('//test/Asker', $1, '//test/Work')", service)
}

// Noticing opens a session of a role ("" for the administrator) that keeps the notices of the server.
func (b *Broker) Noticing(role string) (Session, *[]pgconn.Notice) {
	b.Helper()
	var reported []pgconn.Notice
	config := b.Pool.Config().ConnConfig.Copy()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { reported = append(reported, *n) }
	conn, err := pgx.ConnectConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	s := Session{T: b.T, DB: conn}
	if role != "" {
		s.Exec("set session authorization " + Quote(role))
	}
	return s, &reported
}

// Statements and settings for dialogs to services of any name.
const (
	BeginTo = "select parley.begin_dialog('//test/Asker', $1)"
	// UnknownTargets lets a session begin dialogs to where nothing leads.
	UnknownTargets = "set parley.allow_unknown_targets = on"
)

// Message is a message as RECEIVE and the views of queues show it (spec 4.3).
type Message struct {
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

// Dialog begins a dialog from Asker to Answerer on their contract and gives its handle.
func (s Session) Dialog() string {
	s.Helper()
	return Value[string](s, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work')")
}

// Conversation gives both handles of a dialog on which a request has been sent and received.
func (s Session) Conversation() (initiator, target string) {
	s.Helper()
	initiator = s.Dialog()
	s.Send(initiator, Request, "first")
	target = s.FarHandle(initiator)
	got := s.Messages("select * from parley.receive('Answering', conversation_handle => $1)", target)
	if len(got) != 1 || string(got[0].MessageBody) != "first" {
		s.Fatalf("the first message did not arrive: %v", got)
	}
	return initiator, target
}

// Send sends a message with a text as its body.
func (s Session) Send(handle, messageType, body string) {
	s.Helper()
	s.Exec("select parley.send($1::uuid, $2, $3::text)", handle, messageType, body)
}

// End ends a conversation without an error.
func (s Session) End(handle string) {
	s.Helper()
	s.Exec("select parley.end_conversation($1::uuid)", handle)
}

// EndWithError ends a conversation with a code and a description.
func (s Session) EndWithError(handle string, code int, description string) {
	s.Helper()
	s.Exec("select parley.end_conversation($1::uuid, $2::int, $3)", handle, code, description)
}

// Receive takes all that the next group of a queue has.
func (s Session) Receive(queue string) []Message {
	s.Helper()
	return s.Messages("select * from parley.receive($1)", queue)
}

// Bodies receives from a queue and gives the bodies only.
func (s Session) Bodies(queue string) []string {
	s.Helper()
	return BodiesOf(s.Receive(queue))
}

// BodiesOf gives the bodies of messages as text.
func BodiesOf(list []Message) []string {
	bodies := []string{}
	for _, m := range list {
		bodies = append(bodies, string(m.MessageBody))
	}
	return bodies
}

// TypesOf gives the names of the types of messages.
func TypesOf(list []Message) []string {
	types := []string{}
	for _, m := range list {
		types = append(types, m.MessageTypeName)
	}
	return types
}

// Messages reads the result of a query that has the columns of RECEIVE.
func (s Session) Messages(query string, arguments ...any) []Message {
	s.Helper()
	rows, err := s.DB.Query(s.Context(), query, arguments...)
	if err != nil {
		s.Fatalf("%s: %v", Clip(query), Describe(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Message])
	if err != nil {
		s.Fatalf("%s: %v", Clip(query), Describe(err))
	}
	return list
}

// FarHandle is the handle of the other side.
func (s Session) FarHandle(handle string) string {
	s.Helper()
	return Value[string](s, `
		select f.conversation_handle
		from parley.conversation_endpoints as e
		join parley.conversation_endpoints as f on f.conversation_id = e.conversation_id and f.is_initiator <> e.is_initiator
		where e.conversation_handle = $1`, handle)
}

// RequireState compares the state of a side; "" is for a side that is gone.
func (s Session) RequireState(handle, want string) {
	s.Helper()
	got := Value[string](s, "select coalesce((select e.state from parley.conversation_endpoints as e where e.conversation_handle = $1), '')", handle)
	if got != want {
		s.Errorf("the state of %s is %q, want %q", handle, got, want)
	}
}

// RequireError receives one Error message and compares its code.
func (s Session) RequireError(queue string, code int) Message {
	s.Helper()
	got := s.Messages("select * from parley.receive($1, top => 1)", queue)
	if len(got) != 1 || got[0].MessageTypeName != ErrorMessage {
		s.Fatalf("queue %s gives %v, want one Error message", queue, TypesOf(got))
	}
	s.RequireCode(got[0], code)
	return got[0]
}

// RequireCode reads the code of an Error message the way programs do: as XML, in its namespace.
func (s Session) RequireCode(m Message, code int) {
	s.Helper()
	got := Value[string](s, `
		select (xpath('/e:Error/e:Code/text()', convert_from($1, 'UTF8')::xml, array[array['e', 'http://schemas.microsoft.com/SQL/ServiceBroker/Error']]))[1]::text::int
			|| ' ' || ((xpath('/e:Error/e:Description/text()', convert_from($1, 'UTF8')::xml, array[array['e', 'http://schemas.microsoft.com/SQL/ServiceBroker/Error']]))[1]::text <> '')::text`,
		m.MessageBody)
	if want := fmt.Sprint(code, " true"); got != want {
		s.Errorf("the Error message says %s, want %s: %s", got, want, m.MessageBody)
	}
}

// Statements with a deduplication key.
const (
	BeginOnce = `
		select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', deduplication_key => $1)::text`
	BeginAndSendOnce = `
		select parley.begin_and_send('//test/Asker', '//test/Answerer', '//test/Request', $2, '//test/Work', deduplication_key => $1)::text`
	SendAndEndOnce = `
		select parley.send_and_end('//test/Asker', '//test/Answerer', '//test/Request', $2, '//test/Work', deduplication_key => $1)::text`
	SendOnce = "select (parley.send($1::uuid, '//test/Request', $2, deduplication_key => $3)).is_duplicate"
	PutOnce  = "select (parley.put('jobs', $1::text, deduplication_key => $2)).is_duplicate"
)

// GroupOf gives the group of a conversation.
func (s Session) GroupOf(handle string) string {
	s.Helper()
	return Value[string](s, "select conversation_group_id::text from parley.conversation_endpoints where conversation_handle = $1", handle)
}

// Statements for dialogs that are begun and sent on at once.
const (
	BeginAndSend = "select parley.begin_and_send('//test/Asker', '//test/Answerer', '//test/Request', 'x', '//test/Work')"
	RouteAway    = "select parley.create_route('away', 'tcp://elsewhere:4022', service_name => '//test/Answerer')"
	// KeptDialogs counts what is kept and would be used.
	KeptDialogs = "select count(*) from parley._p_local_dialog where catalog_version = (select last_value from parley._p_catalog_version)"
	GoesAway    = "select coalesce(destination_id, 0) > 0 from parley._p_endpoint where conversation_handle = $1"
)

// GetConversation asks for the conversation of a key.
const GetConversation = "select parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Work', key => $1)::text"

// Pooled asks for the conversation of a key, and sends on it.
func (s Session) Pooled(key, body string) string {
	s.Helper()
	handle := Value[string](s, GetConversation, key)
	s.Send(handle, Request, body)
	return handle
}

// MakePooledDue lets the alarms of the pool ring, and fires them.
func (s Session) MakePooledDue() {
	s.Helper()
	s.Exec("update parley._p_alarm set due_at = clock_timestamp() where kind = 'pooled'")
	s.Exec("select parley.fire_timers()")
}

// Fill begins so many conversations and sends on each so many messages, in turns: "0/0", "1/0", ..., "0/1".
func (s Session) Fill(conversations, messages int) (handles []string) {
	s.Helper()
	for range conversations {
		handles = append(handles, s.Dialog())
	}
	for n := range messages {
		for i, handle := range handles {
			s.Send(handle, Request, fmt.Sprint(i, "/", n))
		}
	}
	return handles
}

// ReceiveReply receives the reply to a request, without waiting.
const ReceiveReply = "select * from parley.receive_reply($1, timeout => 0)"

// SendAndEnd sends one request that needs no answer and gives the handle.
func (s Session) SendAndEnd(to, body string) string {
	s.Helper()
	return Value[string](s, "select parley.send_and_end('//test/Asker', $1, $2, $3, '//test/Work')::text", to, Request, body)
}

// Fire makes what is set due now, and handles it.
func (s Session) Fire(kind string) {
	s.Helper()
	s.Exec("update parley._p_alarm set due_at = now() where kind = $1", kind)
	s.Exec("select setval('parley._p_next_alarm', 0)")
	s.Exec("select parley.fire_timers()")
}

// Text gives the bytes of a text.
func Text(s string) []byte { return []byte(s) }
