package transport_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/sqltest"
)

const outsideTheOrder = int64(9223372036854775807)

// store gives how many bytes of a large message there are after a part of it has come, -1 when it is not wanted.
func store(s sqltest.Session, a sqltest.Arriving, at, size int64) int64 {
	s.Helper()
	a = a.Completed()
	return sqltest.Value[int64](s, `
		select coalesce(parley._p_accept_fragment(
			$1::text::uuid, $2, 1, '00000000-0000-0000-0000-00000000000a', $3::text::uuid, $4, $5, $6, $7, convert_to($8::text, 'UTF8'),
			$9, $10::text::uuid, $11, null
		), -1)`,
		a.Broker, a.Epoch, a.Conversation, !a.FromTarget, a.First, at, size, a.Body, a.To, a.ToBroker, a.Identity)
}

const stored = `
	select (select count(*) from parley._p_endpoint) || ' ' || (select count(*) from parley._p_message) || ' ' || (select count(*) from parley._p_fragment)`

// A message that must not begin a dialog begins none, and leaves nothing behind.
func TestFirstMessageFromAfarIsRefusedForEachReason(t *testing.T) {
	t.Parallel()
	over, other := time.Now().Add(-time.Minute), sqltest.AnotherBroker
	for _, c := range []struct {
		name    string
		change  string
		arrives sqltest.Arriving
		want    string
	}{
		{"taken", "", sqltest.Arriving{}, "accepted"},
		{"an Error", "", sqltest.Arriving{MessageType: sqltest.ErrorMessage, Contract: "DEFAULT"}, "refused 11277"},
		{"an end", "", sqltest.Arriving{MessageType: sqltest.EndDialog, Contract: "DEFAULT"}, "refused 11277"},
		{"a service that is not here", "", sqltest.Arriving{To: "//nobody"}, "unroutable 9796"},
		{"a broker that is not this one", "", sqltest.Arriving{ToBroker: &other}, "unroutable 9795"},
		{"a peer without SEND", "", sqltest.Arriving{Identity: "peer:" + sqltest.AnotherKey}, "refused 8494"},
		{"nobody", "", sqltest.Arriving{Identity: "peer:" + sqltest.ThirdKey}, "refused 8494"},
		{"a queue that is off", "select parley.alter_queue('Answering', status => false)", sqltest.Arriving{}, "held 11219"},
		{"a contract that is not here", "", sqltest.Arriving{Contract: "//nothing"}, "refused 8425"},
		{
			"a contract that is not accepted", "select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])",
			sqltest.Arriving{},
			"refused 8408",
		},
		{"a life that is over", "", sqltest.Arriving{EndsAt: &over}, "refused 8489"},
		{"a later message", "", sqltest.Arriving{First: 1}, "expected"},
		{"the answer to a dialog that was never begun", "", sqltest.Arriving{FromTarget: true, MessageType: sqltest.Reply}, "gone 8462"},
		{"a peer that was revoked", "select parley.revoke_peer('one')", sqltest.Arriving{}, "held 28034"},
		{"a broker that is disabled", "select parley.disable_broker()", sqltest.Arriving{}, "held 28012"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewTarget(t)
			if c.change != "" {
				b.Exec(c.change)
			}
			if got := b.Accept(c.arrives); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
			want := "0 0 0"
			if c.want == "accepted" {
				want = "1 1 0"
			}
			sqltest.Equal(b.Session, want, stored)
		})
	}
}

// In a dialog that is open each message is judged as the first was.
func TestFurtherMessageFromAfarIsRefusedForEachReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		change  string
		arrives sqltest.Arriving
		want    string
	}{
		{"taken", "", sqltest.Arriving{First: 1}, "accepted"},
		{"by another broker", "", sqltest.Arriving{First: 1, Broker: sqltest.AnotherBroker}, "refused 8495"},
		{"an older epoch of the broker", "", sqltest.Arriving{First: 1, Epoch: 4}, "superseded 9772"},
		{"a type that is not here", "", sqltest.Arriving{First: 1, MessageType: "//nothing"}, "refused 8428"},
		{"a type that is not of the contract", "", sqltest.Arriving{First: 1, MessageType: "DEFAULT"}, "refused 8498"},
		{"a type that the target sends", "", sqltest.Arriving{First: 1, MessageType: sqltest.Reply}, "refused 8437"},
		{"a body that is not valid", "select parley.alter_message_type('//test/Request', 'EMPTY')", sqltest.Arriving{First: 1}, "refused 8430"},
		{"a queue that is off", "select parley.alter_queue('Answering', status => false)", sqltest.Arriving{First: 1}, "held 11219"},
		{"a queue that is full", sqltest.FullQueue, sqltest.Arriving{First: 1}, "held 10928"},
		{"a message outside the order", "", sqltest.Arriving{First: outsideTheOrder}, "refused 8457"},
		{"an end outside the order", "", sqltest.Arriving{First: outsideTheOrder, MessageType: sqltest.EndDialog}, "refused 8457"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewTarget(t)
			if got := b.Accept(sqltest.Arriving{}); got != "accepted" {
				t.Fatalf("the first message is %s", got)
			}
			if c.change != "" {
				b.Exec(c.change)
			}
			if got := b.Accept(c.arrives); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
			want := 1
			if c.want == "accepted" {
				want = 2
			}
			sqltest.Equal(b.Session, want, "select count(*) from parley._p_message as m where m.body = convert_to('body', 'UTF8')")
		})
	}
}

// A conversation between services of this database, and one that has not left it, take nothing from the network.
func TestConversationOfThisDatabaseTakesNothingFromTheNetwork(t *testing.T) {
	t.Parallel()
	b := sqltest.NewTarget(t)
	inside, unsent := b.Dialog(), sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//far', '//test/Work', allow_unknown_target => true)::text")
	b.Send(inside, sqltest.Request, "inside")
	id := func(handle string) string {
		return sqltest.Value[string](b.Session, "select conversation_id::text from parley.conversation_endpoints where conversation_handle = $1::text::uuid", handle)
	}
	before := b.Everything()
	for _, c := range []struct {
		arrives sqltest.Arriving
		want    string
	}{
		{sqltest.Arriving{Conversation: id(inside), FromTarget: true, MessageType: sqltest.Reply}, "refused 8495"},
		{sqltest.Arriving{Conversation: id(inside), First: 1}, "refused 8495"},
		{sqltest.Arriving{Conversation: id(unsent), FromTarget: true, MessageType: sqltest.Reply}, "gone 8462"},
	} {
		if got := b.Accept(c.arrives); got != c.want {
			t.Errorf("%+v is %s, want %s", c.arrives, got, c.want)
		}
	}
	if lines := sqltest.Difference(before, b.Everything()); lines != "" {
		t.Logf("changed: %s", lines)
	}
	sqltest.Equal(b.Session, 1, "select count(*) from parley._p_message")
}

// Without the right to send a message a peer fills no disk with its parts.
func TestPartOfAMessageFromAfarIsNotStoredForEachReason(t *testing.T) {
	t.Parallel()
	other := sqltest.AnotherBroker
	for _, c := range []struct {
		name    string
		change  string
		arrives sqltest.Arriving
		at      int64
		want    int64
	}{
		{"stored", "", sqltest.Arriving{}, 0, 4},
		{"a peer that was revoked", "select parley.revoke_peer('one')", sqltest.Arriving{}, 0, -1},
		{"a service that is not here", "", sqltest.Arriving{To: "//nobody"}, 0, -1},
		{"a broker that is not this one", "", sqltest.Arriving{ToBroker: &other}, 0, -1},
		{"a peer without SEND", "", sqltest.Arriving{Identity: "peer:" + sqltest.AnotherKey, Broker: sqltest.AnotherBroker}, 0, -1},
		{"nobody", "", sqltest.Arriving{Identity: "peer:" + sqltest.ThirdKey, Broker: sqltest.AnotherBroker}, 0, -1},
		{"a later message of a dialog that was not begun", "", sqltest.Arriving{First: 1}, 0, -1},
		{"the answer to a dialog that was never begun", "", sqltest.Arriving{FromTarget: true}, 0, -1},
		{"a part that is not the next", "", sqltest.Arriving{}, 4, 0},
		{"more than the message has", "", sqltest.Arriving{Body: "more than eight"}, 0, 0},
		{"nothing", "", sqltest.Arriving{Body: " "}, 8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewTarget(t)
			if c.change != "" {
				b.Exec(c.change)
			}
			if got := store(b.Session, c.arrives, c.at, 8); got != c.want {
				t.Errorf("%d bytes are stored, want %d", got, c.want)
			}
			sqltest.Equal(b.Session, fmt.Sprintf("0 0 %d", max(min(c.want, 1), 0)), stored)
		})
	}
}

// In a dialog that is open the parts are those of its other side, and of the daemon that speaks for it now.
func TestPartOfAMessageIsTakenFromTheOtherSideOfItsDialog(t *testing.T) {
	t.Parallel()
	b := sqltest.NewTarget(t)
	if got := b.Accept(sqltest.Arriving{}); got != "accepted" {
		t.Fatalf("the first message is %s", got)
	}
	for _, c := range []struct {
		name    string
		arrives sqltest.Arriving
		want    int64
	}{
		{"another broker", sqltest.Arriving{First: 1, Broker: sqltest.AnotherBroker, Identity: "peer:" + sqltest.AnotherKey}, -1},
		{"an older epoch", sqltest.Arriving{First: 1, Epoch: 4}, -1},
		{"its other side", sqltest.Arriving{First: 1}, 4},
	} {
		if got := store(b.Session, c.arrives, 0, 8); got != c.want {
			t.Errorf("%s: %d bytes are stored, want %d", c.name, got, c.want)
		}
	}
}
