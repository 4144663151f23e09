//go:build unix

package nemesis_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	"github.com/parley-broker/parley/internal/verify/faultinjection"
)

// lie is the answer of a trusted peer to batches.
type lie struct {
	name string
	// answer gives the frames for a question of so many runs.
	answer func(t testing.TB, id uint64, runs int) []*pb.Frame
	// breaks reports that the conversation ends with an Error: both sides cannot be brought together any more.
	breaks bool
}

// answered is a frame with the same result for each run.
func answered(t testing.TB, id uint64, runs int, result transportstore.Result) *pb.Frame {
	t.Helper()
	results := make([]transportstore.Result, runs)
	for i := range results {
		results[i] = result
	}
	payload, err := wire.EncodeResults(results)
	if err != nil {
		t.Error(err)
	}
	return wire.Pack(pb.Kind_KIND_RESULTS, id, payload, false)
}

var lies = []lie{
	{name: "says nothing, ever", answer: func(testing.TB, uint64, int) []*pb.Frame { return nil }},
	{name: "answers what nobody has asked", answer: func(t testing.TB, id uint64, runs int) []*pb.Frame {
		t.Helper()
		return []*pb.Frame{answered(t, id+100, runs, transportstore.Result{Outcome: transportstore.Accepted, Next: 2})}
	}},
	{name: "answers more than was asked", answer: func(t testing.TB, id uint64, runs int) []*pb.Frame {
		t.Helper()
		return []*pb.Frame{answered(t, id, runs+1, transportstore.Result{Outcome: transportstore.Accepted, Next: 2})}
	}},
	{name: "answers twice", answer: func(_ testing.TB, id uint64, _ int) []*pb.Frame {
		failure := &pb.Frame{Kind: pb.Kind_KIND_FAILURE, Id: id}
		return []*pb.Frame{failure, failure}
	}},
	{name: "answers garbage", answer: func(_ testing.TB, id uint64, _ int) []*pb.Frame {
		return []*pb.Frame{{Kind: pb.Kind_KIND_RESULTS, Id: id, Payload: []byte("garbage")}}
	}},
	{name: "answers with an outcome that there is not", answer: func(t testing.TB, id uint64, runs int) []*pb.Frame {
		t.Helper()
		results := &pb.Results{}
		for range runs {
			results.Results = append(results.Results, &pb.Result{Outcome: 99, Next: 2})
		}
		payload, err := proto.Marshal(results)
		if err != nil {
			t.Error(err)
		}
		return []*pb.Frame{wire.Pack(pb.Kind_KIND_RESULTS, id, payload, false)}
	}},
	{name: "answers as if it were a fragment", answer: func(t testing.TB, id uint64, _ int) []*pb.Frame {
		t.Helper()
		payload, err := wire.EncodeStored(1)
		if err != nil {
			t.Error(err)
		}
		return []*pb.Frame{wire.Pack(pb.Kind_KIND_STORED, id, payload, false)}
	}},
	{name: "acknowledges nothing at all", answer: func(t testing.TB, id uint64, runs int) []*pb.Frame {
		t.Helper()
		return []*pb.Frame{answered(t, id, runs, transportstore.Result{Outcome: transportstore.Accepted})}
	}},
	{name: "acknowledges what was never sent", breaks: true, answer: func(t testing.TB, id uint64, runs int) []*pb.Frame {
		t.Helper()
		return []*pb.Frame{answered(t, id, runs, transportstore.Result{Outcome: transportstore.Accepted, Next: 1 << 40})}
	}},
	{name: "expects what was never sent", breaks: true, answer: func(t testing.TB, id uint64, runs int) []*pb.Frame {
		t.Helper()
		return []*pb.Frame{answered(t, id, runs, transportstore.Result{Outcome: transportstore.Expected, Next: 1 << 40})}
	}},
}

// host answers falsely at an address, and counts how often it was asked.
func (l lie) host(t testing.TB, key *identity.Certificate) (address string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	host, err := faultinjection.Listen(t.Context(), tlsOf(key), func(question *pb.Frame) []*pb.Frame {
		payload, err := wire.Unpack(question, wire.LargestPayload)
		if err != nil {
			t.Error(err)
			return nil
		}
		batch, err := wire.DecodeBatch(payload)
		if err != nil {
			t.Error(err)
			return nil
		}
		asked.Add(1)
		return l.answer(t, question.GetId(), len(batch.Runs))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	return "tcp://" + host.Address(), asked
}

// Keeps S1 to S5, T2, T4, L2: what is sent to a server that answers falsely is neither lost nor repeated, and no other dialog waits for it.
// When its route leads to an honest broker at last it arrives there.
func TestForgedMessagesMakeNoMessageVanish(t *testing.T) {
	t.Parallel()
	keys := newTrust(t)
	key := keys.identify(t, "intruder", t.TempDir())
	sender, honest := newOutpost(t, keys, "sender"), newOutpost(t, keys, "honest")
	introduce(t, keys, sender, honest)
	sender.route(t, honest.party, "tcp://"+honest.address())
	honest.route(t, sender.party, "tcp://"+sender.address())
	must(t, sender.conn, "select parley.create_queue('plain')")
	must(t, sender.conn, "select parley.create_service('plain/initiator', 'plain')")
	work := newWorkload(t, 1, []*party{sender.party, honest.party})

	h, far := sender.hand(), honest.hand()
	type lie struct{ service, handle, dialog string }
	all := make([]lie, len(lies))
	for i, l := range lies {
		address, asked := l.host(t, key)
		s := lie{service: fmt.Sprint("lie", i)}
		must(t, honest.conn, "select parley.create_service($1, 'target_queue', '{DEFAULT}')", s.service+"/target")
		must(t, honest.conn, "select parley.grant('SEND', 'service', $1, 'public')", s.service+"/target")
		must(t, sender.conn, "select parley.create_route(name => $1, service_name => $1, address => $2)", s.service+"/target", address)
		if l.breaks {
			s.handle, s.dialog = h.begin("plain", s.service)
			must(t, h.conn, "select parley.send($1::uuid, 'DEFAULT', 'x'::text)", s.handle)
		} else {
			s.handle, s.dialog = h.begin("sender", s.service)
			h.send(s.handle)
			h.send(s.handle)
		}
		all[i] = s
		await(t, "somebody asks who "+l.name, func() bool { return asked.Load() > 0 })
	}
	for i, l := range lies {
		if l.breaks {
			await(t, "the sender learns of the end with somebody who "+l.name, func() bool {
				return ask[bool](t, h.conn, `
					select exists (
						select from parley_queue.plain
						where conversation_handle = $1::uuid and message_type_name like '%/Error'
							and parley.body_text(message_body) like '%<Code>-97%')`, all[i].handle)
			})
			must(t, h.conn, "select parley.end_conversation($1::uuid)", all[i].handle)
			continue
		}
		const kept = "select count(*)::int from parley.transmission_queue where conversation_handle = $1::uuid"
		if n := ask[int](t, h.conn, kept, all[i].handle); n != 2 {
			t.Errorf("somebody %s, and of two messages %d are kept", l.name, n)
		}
	}

	// Others have noticed nothing.
	handle, dialog := h.begin("sender", "honest")
	h.send(handle)
	far.receive("target_queue", dialog, 1)
	await(t, "what does not keep to the protocol is reported", func() bool {
		return strings.Count(sender.log.String(), "does not keep to the protocol") >= 2
	})
	if failed := sender.metric("parley_transport_failed_attempts_total"); failed < 5 {
		t.Errorf("%v attempts were counted as failed", failed)
	}

	for i, l := range lies {
		must(t, h.conn, "select parley.alter_route($1, address => $2)", all[i].service+"/target", "tcp://"+honest.address())
		if !l.breaks {
			far.receive("target_queue", all[i].dialog, 2)
		}
	}
	judgeOutposts(t, work)
}
