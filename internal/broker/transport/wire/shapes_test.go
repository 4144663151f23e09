package wire

import (
	"time"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// Any value that the protocol can carry, for properties that hold for all of them.

func anyUUID(t *rapid.T, what string) (u parley.UUID) {
	copy(u[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, what))
	u[0] |= 1 // never zero
	return u
}

func anyName(t *rapid.T, what string) string {
	return rapid.StringOfN(rapid.RuneFrom([]rune("aZ_/:. äλ語𝄞'\"")), 0, 20, -1).Draw(t, what)
}

func anyTime(t *rapid.T, what string) time.Time {
	n := rapid.Int64Range(0, lastTime).Draw(t, what)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

func anySpeaker(t *rapid.T) transportstore.Speaker {
	return transportstore.Speaker{
		Instance: anyUUID(t, "instance"),
		Epoch:    rapid.Int64Min(0).Draw(t, "epoch"),
		Term:     rapid.Int64Min(0).Draw(t, "term"),
		Token:    anyUUID(t, "token"),
	}
}

func anyPassage(t *rapid.T) transport.Passage {
	milliseconds := func(what string) time.Duration {
		return time.Duration(rapid.Int64Range(0, maxTimeToLive.Milliseconds()).Draw(t, what)) * time.Millisecond
	}
	return transport.Passage{
		HopsRemaining: rapid.IntRange(0, MaxHops).Draw(t, "hops"),
		TimeToLive:    milliseconds("time to live"),
		TimeConsumed:  milliseconds("time consumed"),
	}
}

func anySecurity(t *rapid.T) []byte {
	if rapid.Bool().Draw(t, "is in clear") {
		return nil
	}
	return rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "security")
}

func anyRun(t *rapid.T) transportstore.Run {
	run := transportstore.Run{
		ConversationID: anyUUID(t, "conversation"),
		FromInitiator:  rapid.Bool().Draw(t, "from initiator"),
		FirstSequence:  rapid.Int64Range(0, 1<<62).Draw(t, "first"),
		MessageType:    anyName(t, "type"),
		FromService:    anyName(t, "from"),
		ToService:      anyName(t, "to"),
		Contract:       anyName(t, "contract"),
		Priority:       rapid.Int16Range(0, MaxPriority).Draw(t, "priority"),
		EnqueuedAt:     anyTime(t, "enqueued"),
		EndsAt:         anyTime(t, "ends"),
		TraceContext:   anyName(t, "trace"),
		IsEncrypted:    rapid.Bool().Draw(t, "encrypted"),
		Security:       anySecurity(t),
	}
	if rapid.Bool().Draw(t, "is bound") {
		run.ToBroker = anyUUID(t, "to broker")
	}
	switch rapid.IntRange(0, 9).Draw(t, "shape") {
	case 2:
		run.Probe = &transportstore.Probe{Given: rapid.Int64Min(0).Draw(t, "given"), Expected: rapid.Int64Min(0).Draw(t, "expected")}
	case 0:
		run.Size = rapid.Int64Range(1, MaxBody).Draw(t, "size")
	case 1:
		run.FirstSequence = transportstore.Unsequenced
		run.Bodies = [][]byte{[]byte("<Error/>")}
	default:
		for range rapid.IntRange(1, 8).Draw(t, "messages") {
			run.Bodies = append(run.Bodies, anyBody(t))
		}
	}
	return run
}

func anyBody(t *rapid.T) []byte {
	if rapid.Bool().Draw(t, "has no body") {
		return nil
	}
	return rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "body")
}

func anyBatch(t *rapid.T) transport.Batch {
	batch := transport.Batch{Passage: anyPassage(t), Speaker: anySpeaker(t), Runs: []transportstore.Run{}}
	for range rapid.IntRange(0, 6).Draw(t, "runs") {
		batch.Runs = append(batch.Runs, anyRun(t))
	}
	return batch
}

func anyFragment(t *rapid.T) transportstore.Fragment {
	fragment := transportstore.Fragment{
		Speaker:        anySpeaker(t),
		ConversationID: anyUUID(t, "conversation"),
		FromInitiator:  rapid.Bool().Draw(t, "from initiator"),
		Sequence:       rapid.Int64Range(0, 1<<62).Draw(t, "sequence"),
		Size:           rapid.Int64Range(100, MaxBody).Draw(t, "size"),
		Data:           rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "data"),
		ToService:      anyName(t, "to"),
		ToBroker:       anyUUID(t, "to broker"),
		Security:       anySecurity(t),
	}
	fragment.Offset = rapid.Int64Range(0, fragment.Size-int64(len(fragment.Data))).Draw(t, "offset")
	return fragment
}

func anyResult(t *rapid.T) transportstore.Result {
	result := transportstore.Result{
		Outcome: rapid.SampledFrom([]transportstore.Outcome{
			transportstore.Accepted, transportstore.Expected, transportstore.Held, transportstore.Refused, transportstore.Gone, transportstore.Unroutable, transportstore.Superseded,
		}).Draw(t, "outcome"),
		Next:        rapid.Int64Min(0).Draw(t, "next"),
		ErrorNumber: rapid.Int32().Draw(t, "number"),
		Description: anyName(t, "description"),
		Security:    anySecurity(t),
	}
	if rapid.Bool().Draw(t, "somebody answers") {
		result.Broker, result.Epoch = anyUUID(t, "broker"), rapid.Int64Min(0).Draw(t, "epoch")
	}
	return result
}
