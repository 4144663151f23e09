package dialogsecurity_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

func TestDialogWithoutEncryptionPassesInClear(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	answerer.exec("select parley.grant('SEND', 'service', $1, 'public')", answering)
	way := &forwarder{}
	handle := asker.begin(false)
	asker.send(handle, "hello")
	asker.requireOutcomes(asker.carry(answerer, way), transportstore.Accepted, "")
	there := answerer.expect("hello")
	answerer.send(there, "answer")
	answerer.requireOutcomes(answerer.carry(asker, way), transportstore.Accepted, "")
	asker.expect("answer")
	// Even the keys are not needed.
	if asker.guard.Counts().Sealed != 0 || !strings.Contains(way.bytes.String(), "helloanswer") {
		t.Errorf("it was not in clear: %q", way.bytes.String())
	}
	// A binding that comes later is for later dialogs, from the first one on.
	asker.bind(true)
	asker.send(handle, "again")
	asker.requireOutcomes(asker.carry(answerer, way), transportstore.Accepted, "")
	answerer.expect("again")
	asker.send(asker.begin(false), "sealed after all")
	asker.requireOutcomes(asker.carry(answerer, way), transportstore.Accepted, "")
	answerer.expect("sealed after all")
	if asker.guard.Counts().Sealed != 1 {
		t.Errorf("%d runs were sealed", asker.guard.Counts().Sealed)
	}
}

func TestDialogToBeEncryptedWaitsForItsBinding(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	handle := asker.begin(true)
	asker.send(handle, "one", "two")
	way := &forwarder{}
	asker.requireOutcomes(asker.carry(answerer, way), transportstore.Held, "9727")
	if status := one[string](asker, "select max(transmission_status) from parley.transmission_queue"); !strings.Contains(status, "remote service binding") {
		t.Errorf("the transmission queue says %q", status)
	}
	if len(way.seen) > 0 {
		t.Error("something has left the server")
	}
	asker.bind(false)
	asker.requireOutcomes(asker.carry(answerer, way), transportstore.Accepted, "")
	answerer.expect("one", "two")
}

// A large message travels in parts; each is sealed, and so is the digest of the whole.
func TestLargeMessageIsSealedInParts(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, asker, answerer *side) {
		large := strings.Repeat("large secret ", 50_000)
		way := &forwarder{}
		handle := asker.begin(true)
		asker.send(handle, large)
		asker.requireOutcomes(asker.carry(answerer, way), transportstore.Accepted, "")
		there := answerer.expect(large)
		if strings.Contains(way.bytes.String(), "secret") || way.bytes.Len() < len(large) {
			t.Errorf("the forwarder could read some of %d bytes", way.bytes.Len())
		}
		answerer.send(there, large+"!")
		answerer.restart()
		answerer.requireOutcomes(answerer.carry(asker, way), transportstore.Accepted, "")
		asker.expect(large + "!")
	})
}

// A part that is slipped into a message spoils it, and is not delivered.
func TestForeignPartOfALargeMessageIsFound(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, asker, answerer *side) {
		large := strings.Repeat("x", 300_000)
		handle := asker.begin(true)
		asker.send(handle, large)
		runs := asker.take()
		// Parts in clear come first, before the dialog is known to be secured.
		stored, err := answerer.guard.AcceptFragment(t.Context(), answerer.pool, transportstore.Fragment{
			Speaker: asker.speaker(), ConversationID: runs[0].ConversationID, FromInitiator: true, Offset: 0, Size: runs[0].Size,
			Data: []byte("forged"), ToService: answering, Identity: "",
		})
		asker.noError(err)
		if stored > 0 {
			asker.requireOutcomes(asker.transmit(answerer, &forwarder{}, runs), transportstore.Held, "a part of the message was changed")
			runs = asker.take()
		}
		asker.requireOutcomes(asker.transmit(answerer, &forwarder{}, runs), transportstore.Accepted, "")
		there := answerer.expect(large)

		// In an open dialog such a part is not even stored.
		asker.send(handle, large)
		runs = asker.take()
		stored, err = answerer.guard.AcceptFragment(t.Context(), answerer.pool, transportstore.Fragment{
			Speaker: asker.speaker(), ConversationID: runs[0].ConversationID, FromInitiator: true, Sequence: 1, Offset: 0, Size: runs[0].Size,
			Data: []byte("forged"), ToService: answering,
		})
		asker.noError(err)
		if stored > 0 {
			t.Errorf("%d bytes of an unknown sender were stored", stored)
		}
		asker.requireOutcomes(asker.transmit(answerer, &forwarder{}, runs), transportstore.Accepted, "")
		if got := answerer.expect(large); got != there {
			t.Errorf("it came in another conversation, %s", got)
		}
	})
}

// The certificates of the fixture are good for an hour.
func TestLogWarnsOfCertificatesThatExpireSoon(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	asker.bind(false)
	var log bytes.Buffer
	asker.guard = dialogsecurity.New(dialogsecurity.Config{Keys: asker.keys, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		asker.send(asker.begin(true), "hello")
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		asker.wait()
	}
	// Ours and that of the other side, each once.
	if n := strings.Count(log.String(), "expires soon"); n != 2 {
		t.Errorf("the log has it %d times:\n%s", n, log.String())
	}
}

// A daemon that has just begun knows no dialog. For a run that has come in clear it asks the database whether the dialog is secured, and a
// first message is one that could bring a second one with it.
func TestRunInClearForASecuredDialogIsRefusedByADaemonThatHasJustBegun(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, asker, answerer *side) {
		handle := asker.begin(true)
		asker.send(handle, "one")
		way := &forwarder{}
		asker.requireOutcomes(asker.carry(answerer, way), transportstore.Accepted, "")
		answerer.expect("one")
		for _, first := range []int64{0, 1} {
			answerer.restart()
			inClear := transportstore.Run{
				ConversationID: way.seen[0].ConversationID, FromInitiator: true, FirstSequence: first, MessageType: "DEFAULT",
				Bodies: [][]byte{[]byte("one"), []byte("forged")}, FromService: asking, ToService: answering, Contract: "DEFAULT",
			}
			answerer.requireOutcomes(answerer.accept(asker.speaker(), inClear), transportstore.Held, "9727: it came in clear for a dialog that is secured")
		}
		if got := answerer.receive(); len(got.texts) > 0 {
			t.Errorf("received %q", got.texts)
		}
	})
}

// meanwhile is a database in which something happens before the first transaction begins.
type meanwhile struct {
	*pgxpool.Pool
	happens func()
}

func (m *meanwhile) Begin(ctx context.Context) (pgx.Tx, error) {
	if happens := m.happens; happens != nil {
		m.happens = nil
		happens()
	}
	return m.Pool.Begin(ctx)
}

// Two daemons take in one dialog: the first message comes to one, sealed, when the other has just read that the dialog is not secured.
func TestRunInClearIsNotTakenBehindAFirstMessageThatIsBeingSecured(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, asker, answerer *side) {
		asker.send(asker.begin(true), "one")
		speaker := asker.speaker()
		sealed, _, err := asker.guard.Seal(t.Context(), asker.pool, speaker, asker.take())
		asker.noError(err)
		forged := transportstore.Run{
			ConversationID: sealed[0].ConversationID, FromInitiator: true, FirstSequence: 1, MessageType: "DEFAULT",
			Bodies: [][]byte{[]byte("forged")}, FromService: asking, ToService: answering, Contract: "DEFAULT",
		}
		other := dialogsecurity.New(dialogsecurity.Config{Keys: answerer.keys})
		db := &meanwhile{Pool: answerer.pool, happens: func() {
			answerer.requireOutcomes(answerer.accept(speaker, sealed...), transportstore.Accepted, "")
		}}
		results, err := other.Accept(t.Context(), db, transportstore.Arrival{Speaker: speaker, Runs: []transportstore.Run{forged}, Identities: []string{""}})
		answerer.noError(err)
		if db.happens != nil {
			t.Error("the run was judged without a transaction")
		}
		answerer.requireOutcomes(results, transportstore.Held, "9727: it came in clear for a dialog that is secured")
		answerer.expect("one")
	})
}

// A forwarder of links in clear can strip a seal; removing the mark makes another dialog of it.
func TestRunThatIsMarkedEncryptedAndCameInClearIsRefusedWhereLinksAreNotEncrypted(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	answerer.exec("select parley.grant('SEND', 'service', $1, 'public')", answering)
	run := transportstore.Run{
		ConversationID: parley.UUID{7}, FromInitiator: true, MessageType: "DEFAULT", Bodies: [][]byte{[]byte("hello")},
		FromService: asking, ToService: answering, Contract: "DEFAULT", IsEncrypted: true,
	}
	for _, security := range [][]byte{nil, {0}} {
		run.Security = security
		answerer.requireOutcomes(answerer.accept(asker.speaker(), run), transportstore.Held, "9727: it is of a dialog that is to be encrypted")
		if n := one[int](answerer, "select count(*)::int from parley._p_endpoint"); n != 0 {
			t.Fatalf("%d conversations were begun", n)
		}
	}
	// Where links are encrypted this is how such a dialog travels.
	answerer.guard = dialogsecurity.New(dialogsecurity.Config{Keys: answerer.keys, IsLinkEncrypted: true})
	answerer.requireOutcomes(answerer.accept(asker.speaker(), run), transportstore.Accepted, "")
	answerer.expect("hello")
}
