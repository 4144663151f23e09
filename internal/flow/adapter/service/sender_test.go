package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/service"
	"github.com/parley-broker/parley/internal/sqltest"
)

func message(id int64, key, body string) *adapter.Message {
	return &adapter.Message{
		ID: id, Type: "urn:o#Order", OrderKey: key, Size: int64(len(body)),
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil },
	}
}

// send sends messages in a transaction of the host that commits.
func (w *world) send(address, settings string, messages ...*adapter.Message) []adapter.Delivery {
	w.Helper()
	made, err := service.Kind.NewSender(w.endpoint(address, settings))
	w.require(err)
	s := made.(adapter.TransactionSender)
	tx, err := w.Pool.Begin(w.Context())
	w.require(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(w.Context())) }()
	deliveries, err := s.SendIn(w.Context(), tx, messages)
	w.require(err)
	w.require(tx.Commit(w.Context()))
	return deliveries
}

// owned lets the role of the host own the service that sends.
func (w *world) owned() {
	w.Helper()
	w.Exec("select parley.grant('SEND', 'SERVICE', '//test/Answerer', $1)", w.role)
	w.Exec("select parley.grant('RECEIVE', 'QUEUE', 'Asking', $1)", w.role)
	w.Exec("select parley.grant('REFERENCES', 'CONTRACT', '//test/Work', $1)", w.role)
	w.Exec("select parley.grant('VIEW DEFINITION', 'MESSAGE TYPE', t, $1) from unnest(array['//test/Request', '//test/Note']) as t", w.role)
	w.Exec("select parley.alter_authorization('SERVICE', '//test/Asker', $1)", w.role)
}

func TestMessagesAreSentOnConversationsAsTheSettingSays(t *testing.T) {
	t.Parallel()
	for conversation, want := range map[string]int{"message": 6, "key": 2, "port": 1} {
		t.Run(conversation, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.owned()
			settings := `{"from_service": "//test/Asker", "contract": "//test/Work", "message_types": {"urn:o#Order": "//test/Request"}, "conversation": "` + conversation + `"}`
			for round := range 2 {
				for i, d := range w.send("//test/Answerer", settings, message(1, "a", fmt.Sprint(round, " 1")), message(2, "b", fmt.Sprint(round, " 2")),
					message(3, "a", fmt.Sprint(round, " 3"))) {
					if d.Err != nil {
						t.Fatalf("message %d: %v", i, d.Err)
					}
				}
			}
			handles := map[parley.UUID][]string{}
			for {
				got, err := parley.Receive(t.Context(), w.Pool, "Answering")
				w.require(err)
				if len(got) == 0 {
					break
				}
				for _, m := range got {
					if m.MessageTypeName == sqltest.Request {
						handles[m.ConversationHandle] = append(handles[m.ConversationHandle], string(m.MessageBody))
					}
				}
			}
			if len(handles) != want {
				t.Errorf("they came on %d conversations: %v", len(handles), handles)
			}
			for _, bodies := range handles {
				if !slicesSorted(bodies) {
					t.Errorf("a conversation has %v", bodies)
				}
			}
		})
	}
}

func slicesSorted(bodies []string) bool {
	for i := 1; i < len(bodies); i++ {
		if bodies[i] < bodies[i-1] {
			return false
		}
	}
	return true
}

// A sender knows its conversations between transactions; one that has ended, or whose begin was rolled back, is no failure of a message.
func TestAConversationThatIsNotThereAnyMoreIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.owned()
	const settings = `{"from_service": "//test/Asker", "contract": "//test/Work", "message_type": "//test/Request", "conversation": "port"}`
	made, err := service.Kind.NewSender(w.endpoint("//test/Answerer", settings))
	w.require(err)
	s := made.(adapter.TransactionSender)
	send := func(body string, end func(context.Context, pgx.Tx) error) {
		t.Helper()
		tx, err := w.Pool.Begin(t.Context())
		w.require(err)
		d, err := s.SendIn(t.Context(), tx, []*adapter.Message{message(1, "", body+" 1"), message(2, "", body+" 2")})
		w.require(err)
		w.require(errors.Join(d[0].Err, d[1].Err))
		w.require(end(t.Context(), tx))
	}
	commit := func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }
	received := func(want string) parley.UUID {
		t.Helper()
		got, err := parley.Receive(t.Context(), w.Pool, "Answering")
		w.require(err)
		if len(got) != 2 || string(got[0].MessageBody) != want+" 1" || string(got[1].MessageBody) != want+" 2" {
			t.Fatalf("received are %v", got)
		}
		return got[0].ConversationHandle
	}
	send("rolled back", func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) })
	send("first", commit)
	first := received("first")
	send("second", commit)
	if second := received("second"); second != first {
		t.Error("the second message came on another conversation")
	}
	w.require(parley.EndConversation(t.Context(), w.Pool, first))
	send("third", commit)
	received("third")
	if open := sqltest.Value[int](w.Session, "select count(*)::integer from parley.conversation_endpoints where is_initiator = 1 and state <> 'CD'"); open != 1 {
		t.Errorf("%d conversations of the port are open", open)
	}
}

func TestABadMessageUndoesNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.owned()
	w.Exec("select parley.alter_message_type('//test/Request', 'WELL_FORMED_XML')")
	w.Exec("select parley.alter_message_type('//test/Note', 'JSON')")
	const settings = `{"from_service": "//test/Asker", "contract": "//test/Work", "message_type": "//test/Request", "conversation": "key",
		"message_types": {"urn:n#Note": "//test/Note"}}`
	note := message(4, "a", "no JSON")
	note.Type = "urn:n#Note"
	cause := &adapter.Failure{Code: "send.pipeline", Err: errors.New("record 5"), Permanent: true}
	unread := message(5, "a", "")
	unread.Open = func(context.Context) (io.ReadCloser, error) { return nil, cause }
	for i, d := range w.send("//test/Answerer", settings, message(1, "a", "<a/>"), message(2, "a", "<a>"), message(3, "b", "<b/>"), note, unread) {
		f, isFailure := errors.AsType[*adapter.Failure](d.Err)
		switch {
		case i == 0 || i == 2:
			w.require(d.Err)
		case !isFailure || !f.Permanent || f.Unreachable:
			t.Errorf("message %d: %v", i, d.Err)
		case i == 4 && f != cause:
			t.Errorf("the failure of the pipeline is %v", f)
		}
	}
	if sent := sqltest.Value[int](w.Session, "select count(*)::integer from parley.queue_contents('Answering')"); sent != 2 {
		t.Errorf("%d messages were sent", sent)
	}
}

func TestWhatIsNotThereHoldsThePort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.owned()
	for name, c := range map[string]struct{ address, settings string }{
		"a queue":                 {"queue:none", `{}`},
		"a queue without right":   {"queue:simple", `{}`},
		"a service":               {"//test/None", `{"from_service": "//test/Asker"}`},
		"a service that sends":    {"//test/Answerer", `{"from_service": "//test/None"}`},
		"a contract":              {"//test/Answerer", `{"from_service": "//test/Asker", "contract": "//test/None"}`},
		"a type that is not seen": {"//test/Answerer", `{"from_service": "//test/Asker", "message_type": "//test/Reply"}`},
		"a type":                  {"//test/Answerer", `{"from_service": "//test/Asker", "message_type": "//test/None"}`},
	} {
		d := w.send(c.address, c.settings, message(1, "", "x"), message(2, "", "x"))
		for _, one := range d {
			if f, ok := errors.AsType[*adapter.Failure](one.Err); !ok || f.Permanent || !f.Unreachable {
				t.Errorf("%s: the delivery has %v", name, one.Err)
			}
		}
	}
	other := `{"from_service": "//test/Answerer", "conversation": "port"}`
	if d := w.send("//test/Asker", other, message(1, "", "x")); d[0].Err == nil || !strings.Contains(d[0].Err.Error(), "own service") {
		t.Errorf("a service of somebody else gave %v", d[0].Err)
	}
}

func TestMessagesArePutIntoASimpleQueueInTheirOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Exec("select parley.grant('SEND', 'QUEUE', 'simple', $1)", w.role)
	for _, d := range w.send("queue:simple", `{"priority": 7}`, message(1, "k", "1"), message(2, "", "2"), message(3, "k", "")) {
		w.require(d.Err)
	}
	got, err := parley.Take(t.Context(), w.Pool, "simple", 10)
	w.require(err)
	if len(got) == 0 || got[0].Priority != 7 || *got[0].Key != "k" || string(got[0].Body) != "1" {
		t.Errorf("taken are %+v", got)
	}
}
