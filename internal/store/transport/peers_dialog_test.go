package transport_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// Fingerprints of keys that nobody has.
var (
	oneKey     = strings.Repeat("a1", 32)
	anotherKey = strings.Repeat("b2", 32)
	thirdKey   = strings.Repeat("c3", 32)
)

// deliverAs brings runs to this side that have come over the link of a peer.
func (s *side) deliverAs(fingerprint string, speaker transportstore.Speaker, runs ...transportstore.Run) []transportstore.Result {
	s.Helper()
	arrival := transportstore.Arrival{Speaker: speaker, Runs: runs}
	for range runs {
		arrival.Identities = append(arrival.Identities, "peer:"+fingerprint)
	}
	results, err := transportstore.AcceptArrival(s.Context(), s.db, arrival)
	s.noError(err)
	return results
}

// The grants of the role that a peer acts as decide which messages it may send.
func TestRoleOfAPeerDecidesWhatItMaySend(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	asker.Send(asker.dialog(), request, "first")
	runs := asker.take(answerer)
	shop := one[string](answerer, "select 'shop ' || current_database()")
	answerer.Exec("create role " + pgx.Identifier{shop}.Sanitize())
	t.Cleanup(func() {
		if _, err := answerer.db.Exec(context.Background(), "drop role "+pgx.Identifier{shop}.Sanitize()); err != nil {
			t.Error(err)
		}
	})
	answerer.Exec("select parley.revoke('SEND', 'service', '//test/Answerer', 'public')")
	answerer.Exec("select parley.trust_peer($1, 'one')", oneKey)
	answerer.Exec("select parley.trust_peer($1, 'two', role => $2)", anotherKey, shop)
	// Each of them is to be the first that speaks for the asker.
	release := func() { answerer.Exec("delete from parley._p_peer_broker") }
	for _, nobody := range []string{oneKey, anotherKey, thirdKey} {
		release()
		if got := answerer.deliverAs(nobody, asker.speaker(), runs...); got[0].Outcome != transportstore.Refused || got[0].ErrorNumber != 8494 {
			t.Errorf("%s: %+v", nobody, got)
		}
	}
	answerer.Exec("select parley.grant('SEND', 'service', '//test/Answerer', $1)", shop)
	release()
	if got := answerer.deliverAs(oneKey, asker.speaker(), runs...); got[0].Outcome != transportstore.Refused || got[0].ErrorNumber != 8494 {
		t.Errorf("the grant of another peer's role counts: %+v", got)
	}
	release()
	if got := answerer.deliverAs(anotherKey, asker.speaker(), runs...); got[0].Outcome != transportstore.Accepted {
		t.Errorf("%+v", got)
	}
}

// Revoked, it can send nothing more, on open conversations neither; what it sends waits there, and no conversation is ended by
// that.
func TestNothingMoreIsTakenFromARevokedPeer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, change, undo string
		number             int32
	}{
		{"revoked", "select parley.revoke_peer('one')", "update parley._p_peer set revoked_at = null", 28034},
		{
			"expired", "update parley._p_peer_certificate set not_after = now()",
			"update parley._p_peer_certificate set not_after = null", 28023,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			asker, answerer := newSides(t)
			answerer.Exec("select parley.trust_peer($1, 'one')", oneKey)
			handle := asker.dialog()
			asker.Send(handle, request, "first")
			runs := asker.take(answerer)
			asker.acknowledge(runs, answerer.deliverAs(oneKey, asker.speaker(), runs...))
			asker.Send(handle, request, "second")
			runs = asker.take(answerer)
			answerer.Exec(test.change)
			got := answerer.deliverAs(oneKey, asker.speaker(), runs...)
			if got[0].Outcome != transportstore.Held || got[0].ErrorNumber != test.number || got[0].Description == "" {
				t.Errorf("%+v", got)
			}
			equal(answerer, 1, `select count(*)::int from parley_queue."Answering"`)
			answerer.Exec(test.undo)
			// Nor what another key has signed, when the link is that of the peer.
			signed := transportstore.Arrival{Speaker: asker.speaker(), Runs: runs, Identities: []string{"certificate:" + thirdKey + " over peer:" + oneKey}}
			answerer.Exec(test.change)
			got, err := transportstore.AcceptArrival(t.Context(), answerer.db, signed)
			if err != nil || got[0].Outcome != transportstore.Held || got[0].ErrorNumber != test.number {
				t.Errorf("%+v (%v)", got, err)
			}
			answerer.Exec(test.undo)
			if got := answerer.deliverAs(oneKey, asker.speaker(), runs...); got[0].Outcome != transportstore.Accepted || got[0].Next != 2 {
				t.Errorf("%+v", got)
			}
			equal(answerer, 2, `select count(*)::int from parley_queue."Answering"`)
		})
	}
}

// A peer that knows the id of a conversation, and of the broker that it is with, can neither write into it nor shut that broker out.
func TestPeerCannotSpeakForTheBrokerOfAnother(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	answerer.Exec("select parley.trust_peer($1, 'one', broker_instances => array[$2::text::uuid])", oneKey, asker.guid.String())
	answerer.Exec("select parley.trust_peer($1, 'two')", anotherKey)
	handle := asker.dialog()
	asker.Send(handle, request, "first")
	runs := asker.take(answerer)
	asker.acknowledge(runs, answerer.deliverAs(oneKey, asker.speaker(), runs...))

	forged := runs[0]
	forged.FirstSequence, forged.Bodies = 1, [][]byte{[]byte("forged")}
	speaker := asker.speaker()
	speaker.Term += 1000
	if got := answerer.deliverAs(anotherKey, speaker, forged); got[0].Outcome != transportstore.Held || got[0].ErrorNumber != 28047 {
		t.Errorf("%+v", got)
	}
	_, err := transportstore.AcceptFragment(t.Context(), answerer.db, transportstore.Fragment{
		Speaker: speaker, ConversationID: forged.ConversationID, FromInitiator: true, Sequence: 1, Size: 9, Data: []byte("forged"),
		ToService: forged.ToService, ToBroker: answerer.guid, Identity: "peer:" + anotherKey,
	})
	if err != nil {
		t.Logf("the fragment: %v", err)
	}
	equal(answerer, 0, "select count(*)::int from parley._p_fragment")

	asker.Send(handle, request, "second")
	runs = asker.take(answerer)
	if got := answerer.deliverAs(oneKey, asker.speaker(), runs...); got[0].Outcome != transportstore.Accepted {
		t.Errorf("the true broker is shut out: %+v", got)
	}
	equal(answerer, "first second", `
		select string_agg(convert_from(message_body, 'UTF8'), ' ' order by message_sequence_number) from parley_queue."Answering"`)
}
