package transport_test

import (
	"testing"

	"github.com/parley-broker/parley"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// A broker that speaks for itself, and knows the id of a conversation of others, cannot write into it; nor can the other side write
// what is not its to write.
func TestConversationTakesOnlyWhatItsOtherSideMaySend(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	handle := asker.dialog()
	asker.Send(handle, request, "first")
	runs := asker.take(answerer)
	asker.acknowledge(runs, answerer.deliverAs(oneKey, asker.speaker(), runs...))
	intruder := transportstore.Speaker{Instance: parley.UUID{9}, Epoch: 1, Term: 1, Token: parley.UUID{9}}
	forged := runs[0]
	forged.FirstSequence, forged.Bodies = 1, [][]byte{[]byte("forged")}
	require := func(result transportstore.Result, outcome transportstore.Outcome, number int32) {
		t.Helper()
		if result.Outcome != outcome || result.ErrorNumber != number {
			t.Errorf("%+v, want %s %d", result, outcome, number)
		}
	}
	require(answerer.deliverAs(anotherKey, intruder, forged)[0], transportstore.Refused, 8495)

	part := transportstore.Fragment{
		Speaker: intruder, ConversationID: forged.ConversationID, FromInitiator: true, Sequence: 1, Size: 9, Data: []byte("forged"),
		ToService: forged.ToService, ToBroker: answerer.guid, Identity: "peer:" + anotherKey,
	}
	store := func(f transportstore.Fragment) int64 {
		t.Helper()
		stored, err := transportstore.AcceptFragment(t.Context(), answerer.db, f)
		answerer.noError(err)
		return stored
	}
	if stored := store(part); stored > 0 {
		t.Errorf("%d bytes of an intruder were stored", stored)
	}
	part.Speaker, part.Identity, part.Size = asker.speaker(), "peer:"+oneKey, 5
	if stored := store(part); stored != 0 {
		t.Errorf("%d bytes were stored of a message that is shorter", stored)
	}
	part.Size = 6
	if stored := store(part); stored != 6 {
		t.Errorf("%d bytes were stored of a part that is in order", stored)
	}
	equal(answerer, "first", `select string_agg(convert_from(message_body, 'UTF8'), ' ') from parley_queue."Answering"`)

	// The last one: the conversation ends with an Error at both sides.
	wrong := runs[0]
	wrong.FirstSequence, wrong.MessageType = 1, reply
	require(answerer.deliverAs(oneKey, asker.speaker(), wrong)[0], transportstore.Refused, 8437)
}
