package sql_test

import (
	"fmt"
	"testing"
	"time"
)

const outsideTheOrder = int64(9223372036854775807)

// arriving is a run, or a part of a large message, as a daemon gives it to the database. What is not stated is that of a first message to
// //test/Answerer that is taken.
type arriving struct {
	broker, conversation string
	epoch                int64
	fromTarget           bool
	first                int64
	messageType          string
	body                 string
	to, contract         string
	toBroker             *string
	endsAt               *time.Time
	identity             string
}

const (
	farBroker     = "00000000-0000-0000-0000-0000000000f1"
	anotherBroker = "00000000-0000-0000-0000-0000000000f2"
	newDialog     = "00000000-0000-0000-0000-0000000000c1"
)

func (a arriving) completed() arriving {
	for field, standard := range map[*string]string{
		&a.broker: farBroker, &a.conversation: newDialog, &a.messageType: request, &a.body: "body", &a.to: "//test/Answerer",
		&a.contract: "//test/Work", &a.identity: "peer:" + oneKey,
	} {
		if *field == "" {
			*field = standard
		}
	}
	if a.epoch == 0 {
		a.epoch = 5
	}
	return a
}

// accept gives what becomes of a run: the outcome, and the number of the refusal.
func (s session) accept(a arriving) string {
	s.Helper()
	a = a.completed()
	return value[string](s, `
		select outcome || coalesce(' ' || error_number, '')
		from parley._p_accept_runs(
			$1::text::uuid, $2, 1, '00000000-0000-0000-0000-00000000000a', array[$3::text::uuid], array[$4::boolean], array[$5::bigint], array[$6::text],
			array[1], array[0], array[convert_to($7::text, 'UTF8')], array['//far/Asker'], array[$8::text], array[$9::text], array[$10::text::uuid],
			array[$11::timestamptz], array[''], array[$12::text], array[false], array[null::bigint], array[null::bigint], array[null::timestamptz]
		)`,
		a.broker, a.epoch, a.conversation, !a.fromTarget, a.first, a.messageType, a.body, a.to, a.contract, a.toBroker, a.endsAt, a.identity)
}

// store gives how many bytes of a large message there are after a part of it has come, -1 when it is not wanted.
func (s session) store(a arriving, at, size int64) int64 {
	s.Helper()
	a = a.completed()
	return value[int64](s, `
		select coalesce(parley._p_accept_fragment(
			$1::text::uuid, $2, 1, '00000000-0000-0000-0000-00000000000a', $3::text::uuid, $4, $5, $6, $7, convert_to($8::text, 'UTF8'),
			$9, $10::text::uuid, $11, null
		), -1)`,
		a.broker, a.epoch, a.conversation, !a.fromTarget, a.first, at, size, a.body, a.to, a.toBroker, a.identity)
}

// newTarget returns a fixture in which peer one may send to //test/Answerer.
func newTarget(t *testing.T) *broker {
	t.Helper()
	b := newWorld(t)
	role := b.role("peer")
	b.exec("select parley.trust_peer($1, 'one', role => $2), parley.trust_peer($3, 'two')", oneKey, role, anotherKey)
	b.grant(right{"SEND", "service", "//test/Answerer"}, role)
	b.afterwards("select parley.drop_peer('one'), parley.revoke('SEND', 'service', '//test/Answerer', '" + role + "')")
	return b
}

const stored = `
	select (select count(*) from parley._p_endpoint) || ' ' || (select count(*) from parley._p_message) || ' ' || (select count(*) from parley._p_fragment)`

// What must not begin a dialog begins none, and leaves nothing behind.
func TestFirstMessageFromAfarIsRefusedForEachReason(t *testing.T) {
	t.Parallel()
	over, other := time.Now().Add(-time.Minute), anotherBroker
	for _, c := range []struct {
		name    string
		change  string
		arrives arriving
		want    string
	}{
		{"taken", "", arriving{}, "accepted"},
		{"an Error", "", arriving{messageType: errorMessage, contract: "DEFAULT"}, "refused 11277"},
		{"an end", "", arriving{messageType: endDialog, contract: "DEFAULT"}, "refused 11277"},
		{"a service that is not here", "", arriving{to: "//nobody"}, "unroutable 9796"},
		{"a broker that is not this one", "", arriving{toBroker: &other}, "unroutable 9795"},
		{"a peer without SEND", "", arriving{identity: "peer:" + anotherKey}, "refused 8494"},
		{"nobody", "", arriving{identity: "peer:" + thirdKey}, "refused 8494"},
		{"a queue that is off", "select parley.alter_queue('Answering', status => false)", arriving{}, "held 11219"},
		{"a contract that is not here", "", arriving{contract: "//nothing"}, "refused 8425"},
		{
			"a contract that is not accepted", "select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])",
			arriving{},
			"refused 8408",
		},
		{"a life that is over", "", arriving{endsAt: &over}, "refused 8489"},
		{"a later message", "", arriving{first: 1}, "expected"},
		{"the answer to a dialog that was never begun", "", arriving{fromTarget: true, messageType: reply}, "gone 8462"},
		{"a peer that was revoked", "select parley.revoke_peer('one')", arriving{}, "held 28034"},
		{"a broker that is disabled", "select parley.disable_broker()", arriving{}, "held 28012"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newTarget(t)
			if c.change != "" {
				b.exec(c.change)
			}
			if got := b.accept(c.arrives); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
			want := "0 0 0"
			if c.want == "accepted" {
				want = "1 1 0"
			}
			equal(b.session, want, stored)
		})
	}
}

// In a dialog that is open each message is judged as the first was.
func TestFurtherMessageFromAfarIsRefusedForEachReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		change  string
		arrives arriving
		want    string
	}{
		{"taken", "", arriving{first: 1}, "accepted"},
		{"by another broker", "", arriving{first: 1, broker: anotherBroker}, "refused 8495"},
		{"an older epoch of the broker", "", arriving{first: 1, epoch: 4}, "superseded 9772"},
		{"a type that is not here", "", arriving{first: 1, messageType: "//nothing"}, "refused 8428"},
		{"a type that is not of the contract", "", arriving{first: 1, messageType: "DEFAULT"}, "refused 8498"},
		{"a type that the target sends", "", arriving{first: 1, messageType: reply}, "refused 8437"},
		{"a body that is not valid", "select parley.alter_message_type('//test/Request', 'EMPTY')", arriving{first: 1}, "refused 8430"},
		{"a queue that is off", "select parley.alter_queue('Answering', status => false)", arriving{first: 1}, "held 11219"},
		{"a queue that is full", fullQueue, arriving{first: 1}, "held 10928"},
		{"a message outside the order", "", arriving{first: outsideTheOrder}, "refused 8457"},
		{"an end outside the order", "", arriving{first: outsideTheOrder, messageType: endDialog}, "refused 8457"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newTarget(t)
			if got := b.accept(arriving{}); got != "accepted" {
				t.Fatalf("the first message is %s", got)
			}
			if c.change != "" {
				b.exec(c.change)
			}
			if got := b.accept(c.arrives); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
			want := 1
			if c.want == "accepted" {
				want = 2
			}
			equal(b.session, want, "select count(*) from parley._p_message as m where m.body = convert_to('body', 'UTF8')")
		})
	}
}

// A conversation between services of this database, and one that has not left it, take nothing from the network.
func TestConversationOfThisDatabaseTakesNothingFromTheNetwork(t *testing.T) {
	t.Parallel()
	b := newTarget(t)
	inside, unsent := b.dialog(), value[string](b.session, "select parley.begin_dialog('//test/Asker', '//far', '//test/Work', allow_unknown_target => true)::text")
	b.send(inside, request, "inside")
	id := func(handle string) string {
		return value[string](b.session, "select conversation_id::text from parley.conversation_endpoints where conversation_handle = $1::text::uuid", handle)
	}
	before := b.everything()
	for _, c := range []struct {
		arrives arriving
		want    string
	}{
		{arriving{conversation: id(inside), fromTarget: true, messageType: reply}, "refused 8495"},
		{arriving{conversation: id(inside), first: 1}, "refused 8495"},
		{arriving{conversation: id(unsent), fromTarget: true, messageType: reply}, "gone 8462"},
	} {
		if got := b.accept(c.arrives); got != c.want {
			t.Errorf("%+v is %s, want %s", c.arrives, got, c.want)
		}
	}
	if lines := difference(before, b.everything()); lines != "" {
		t.Logf("changed: %s", lines)
	}
	equal(b.session, 1, "select count(*) from parley._p_message")
}

// Without the right to send a message a peer fills no disk with its parts.
func TestPartOfAMessageFromAfarIsNotStoredForEachReason(t *testing.T) {
	t.Parallel()
	other := anotherBroker
	for _, c := range []struct {
		name    string
		change  string
		arrives arriving
		at      int64
		want    int64
	}{
		{"stored", "", arriving{}, 0, 4},
		{"a peer that was revoked", "select parley.revoke_peer('one')", arriving{}, 0, -1},
		{"a service that is not here", "", arriving{to: "//nobody"}, 0, -1},
		{"a broker that is not this one", "", arriving{toBroker: &other}, 0, -1},
		{"a peer without SEND", "", arriving{identity: "peer:" + anotherKey, broker: anotherBroker}, 0, -1},
		{"nobody", "", arriving{identity: "peer:" + thirdKey, broker: anotherBroker}, 0, -1},
		{"a later message of a dialog that was not begun", "", arriving{first: 1}, 0, -1},
		{"the answer to a dialog that was never begun", "", arriving{fromTarget: true}, 0, -1},
		{"a part that is not the next", "", arriving{}, 4, 0},
		{"more than the message has", "", arriving{body: "more than eight"}, 0, 0},
		{"nothing", "", arriving{body: " "}, 8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newTarget(t)
			if c.change != "" {
				b.exec(c.change)
			}
			if got := b.store(c.arrives, c.at, 8); got != c.want {
				t.Errorf("%d bytes are stored, want %d", got, c.want)
			}
			equal(b.session, fmt.Sprintf("0 0 %d", max(min(c.want, 1), 0)), stored)
		})
	}
}

// In a dialog that is open the parts are those of its other side, and of the daemon that speaks for it now.
func TestPartOfAMessageIsTakenFromTheOtherSideOfItsDialog(t *testing.T) {
	t.Parallel()
	b := newTarget(t)
	if got := b.accept(arriving{}); got != "accepted" {
		t.Fatalf("the first message is %s", got)
	}
	for _, c := range []struct {
		name    string
		arrives arriving
		want    int64
	}{
		{"another broker", arriving{first: 1, broker: anotherBroker, identity: "peer:" + anotherKey}, -1},
		{"an older epoch", arriving{first: 1, epoch: 4}, -1},
		{"its other side", arriving{first: 1}, 4},
	} {
		if got := b.store(c.arrives, 0, 8); got != c.want {
			t.Errorf("%s: %d bytes are stored, want %d", c.name, got, c.want)
		}
	}
}
