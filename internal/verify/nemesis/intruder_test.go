//go:build unix

package nemesis_test

import (
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	"github.com/parley-broker/parley/internal/verify/faultinjection"
)

// intruder has a key that its victim trusts, and keeps to nothing.
type intruder struct {
	t       testing.TB
	key     *identity.Certificate
	victim  *outpost
	speaker transportstore.Speaker
	dialog  parley.UUID
}

func newIntruder(t testing.TB, key *identity.Certificate, victim *outpost) *intruder {
	t.Helper()
	i := &intruder{t: t, key: key, victim: victim, speaker: transportstore.Speaker{Epoch: 5, Term: 5, Token: parley.UUID{5}}}
	_, _ = rand.Read(i.speaker.Instance[:])
	_, _ = rand.Read(i.dialog[:])
	return i
}

// tlsOf is how a holder of a key connects, or is connected to, without a check of the other's key.
func tlsOf(key *identity.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{*key.TLS()}, InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
}

// dial opens a stream and sends nothing yet.
func (i *intruder) dial() *faultinjection.Peer {
	i.t.Helper()
	var peer *faultinjection.Peer
	await(i.t, "the victim takes connections", func() (isOpen bool) {
		var err error
		peer, err = faultinjection.Dial(i.t.Context(), i.victim.address(), tlsOf(i.key))
		return err == nil
	})
	i.t.Cleanup(peer.Close)
	return peer
}

// greet opens a stream and sends a Hello.
func (i *intruder) greet() *faultinjection.Peer {
	i.t.Helper()
	peer := i.dial()
	if _, err := peer.Hello(wire.Hello{Lowest: 1, Highest: 1, Software: "intruder"}); err != nil {
		i.t.Fatal(err)
	}
	return peer
}

// run is one message of the intruder's own dialog.
func (i *intruder) run(sequence int64) transportstore.Run {
	return transportstore.Run{
		ConversationID: i.dialog, FromInitiator: true, FirstSequence: sequence, MessageType: "DEFAULT", Contract: "DEFAULT",
		FromService: "intruder/initiator", ToService: "ajar", Bodies: [][]byte{fmt.Append(nil, sequence+1)}, EnqueuedAt: time.Now(),
	}
}

func (i *intruder) batch(id uint64, speaker transportstore.Speaker, runs ...transportstore.Run) *pb.Frame {
	i.t.Helper()
	payload, err := wire.EncodeBatch(transport.Batch{Passage: transport.Outset(), Speaker: speaker, Runs: runs})
	if err != nil {
		i.t.Fatal(err)
	}
	return wire.Pack(pb.Kind_KIND_BATCH, id, payload, false)
}

// ask sends runs in the name of a speaker, on a connection of its own, and returns the answers.
func (i *intruder) ask(speaker transportstore.Speaker, runs ...transportstore.Run) []transportstore.Result {
	i.t.Helper()
	peer := i.greet()
	defer peer.Close()
	if err := peer.Send(i.batch(1, speaker, runs...)); err != nil {
		i.t.Fatal(err)
	}
	for {
		frame, err := peer.Receive()
		if err != nil {
			i.t.Fatal(err)
		}
		if frame.GetKind() != pb.Kind_KIND_RESULTS {
			continue
		}
		payload, err := wire.Unpack(frame, wire.LargestPayload)
		if err != nil {
			i.t.Fatal(err)
		}
		results, err := wire.DecodeResults(payload, len(runs))
		if err != nil {
			i.t.Fatal(err)
		}
		return results
	}
}

// wantOutcome sends one run and checks the answer. Where the conversation is locked just then it sends it again, as any
// sender does.
func (i *intruder) wantOutcome(what string, want transportstore.Outcome, next int64, speaker transportstore.Speaker, run transportstore.Run) {
	i.t.Helper()
	got := i.ask(speaker, run)[0]
	for end := time.Now().Add(patience); got.Outcome == transportstore.Held && want != transportstore.Held && time.Now().Before(end); {
		<-time.After(10 * time.Millisecond)
		got = i.ask(speaker, run)[0]
	}
	if got.Outcome != want || got.Next != next {
		i.t.Errorf("%s was answered %+v, want %s %d", what, got, want, next)
	}
}

// wantClosed reads until the daemon closes the stream, and checks how.
func (i *intruder) wantClosed(what string, peer *faultinjection.Peer, want codes.Code) {
	i.t.Helper()
	for {
		if _, err := peer.Receive(); err != nil {
			if code := status.Code(err); code != want {
				i.t.Errorf("%s: closed with %v, want %s", what, err, want)
			}
			return
		}
	}
}

// breakRules speaks in ways that are against the protocol, and gives how many there were.
func (i *intruder) breakRules() (broken int) {
	i.t.Helper()
	cut := i.batch(1, i.speaker, i.run(0))
	cut.Payload = cut.GetPayload()[:len(cut.GetPayload())-3]
	for _, c := range []struct {
		name   string
		code   codes.Code
		greets bool
		frames []*pb.Frame
	}{
		{"a batch before hello", codes.InvalidArgument, false, []*pb.Frame{i.batch(1, i.speaker, i.run(0))}},
		{"garbage for a hello", codes.InvalidArgument, false, []*pb.Frame{{Kind: pb.Kind_KIND_HELLO, Payload: []byte("garbage")}}},
		{"a batch that is cut off", codes.InvalidArgument, true, []*pb.Frame{cut}},
		{"an answer without a question", codes.InvalidArgument, true, []*pb.Frame{{Kind: pb.Kind_KIND_RESULTS, Id: 1}}},
		{"a number again", codes.InvalidArgument, true, []*pb.Frame{i.batch(7, i.speaker, i.run(5)), i.batch(7, i.speaker, i.run(5))}},
		{"an oversized frame", codes.ResourceExhausted, true, []*pb.Frame{
			{Kind: pb.Kind_KIND_BATCH, Id: 1, Payload: make([]byte, wire.LargestPayload+2*wire.FrameOverhead)},
		}},
		{"a frame that grows when it is unpacked", codes.InvalidArgument, true, []*pb.Frame{
			wire.Pack(pb.Kind_KIND_BATCH, 1, make([]byte, 4*wire.LargestPayload), true),
		}},
	} {
		peer := i.dial()
		if c.greets {
			if _, err := peer.Hello(wire.Hello{Lowest: 1, Highest: 1, Software: "intruder"}); err != nil {
				i.t.Fatal(err)
			}
		}
		for _, frame := range c.frames {
			if err := peer.Send(frame); err != nil {
				i.t.Fatal(err)
			}
		}
		i.wantClosed(c.name, peer, c.code)
		peer.Close()
		broken++
	}
	return broken
}

// flood sends large batches on several connections as fast as they are taken, and listens to nothing: 45 MB on each.
func (i *intruder) flood(connections int) {
	i.t.Helper()
	run := i.run(0)
	run.ToService, run.Bodies = "nobody", [][]byte{make([]byte, 3<<20)}
	frame := i.batch(1, i.speaker, run)
	peers := make([]*faultinjection.Peer, connections)
	for n := range peers {
		peers[n] = i.greet()
	}
	var flooding sync.WaitGroup
	for _, peer := range peers {
		flooding.Go(func() {
			for id := uint64(1); id <= 15; id++ {
				if err := peer.Send(&pb.Frame{Kind: frame.GetKind(), Id: id, Payload: frame.GetPayload()}); err != nil {
					return // it was faster than the answers, and is thrown out
				}
			}
		})
	}
	flooding.Wait()
}

// overflow has more open than its window allows: something in the database makes its messages wait.
func (i *intruder) overflow() {
	i.t.Helper()
	holder := connect(i.t, i.victim.dsn())
	defer holder.Close(i.t.Context())
	must(i.t, holder, "begin")
	must(i.t, holder, "select from parley._p_known_broker where broker_instance = $1 for update", i.speaker.Instance)
	peer := i.greet()
	// It has sent that before, so nothing comes of it, whether it is still taken in or not.
	run := i.run(0)
	run.Bodies = [][]byte{make([]byte, 3<<20)}
	for id := uint64(1); id <= 4; id++ {
		if err := peer.Send(i.batch(id, i.speaker, run)); err != nil {
			i.t.Fatal(err)
		}
	}
	await(i.t, "more than the window is noticed", func() bool {
		return strings.Contains(i.victim.log.String(), "more is open than the window allows")
	})
	must(i.t, holder, "rollback")
	i.wantClosed("more than the window", peer, codes.InvalidArgument)
}

// linger opens connections that come to nothing, and keeps them open.
func (i *intruder) linger(each int) {
	i.t.Helper()
	for range each {
		raw, err := new(net.Dialer).DialContext(i.t.Context(), "tcp", i.victim.address())
		if err != nil {
			i.t.Fatal(err)
		}
		i.t.Cleanup(func() { _ = raw.Close() })
		secured, err := (&tls.Dialer{Config: tlsOf(i.key)}).DialContext(i.t.Context(), "tcp", i.victim.address())
		if err != nil {
			i.t.Fatal(err)
		}
		i.t.Cleanup(func() { _ = secured.Close() })
		i.dial()
		deaf := i.greet()
		if err := deaf.Send(i.batch(1, i.speaker, i.run(9))); err != nil {
			i.t.Fatal(err)
		}
	}
}

// converse talks on a dialog of its own as badly as it can, and sends three messages in all.
func (i *intruder) converse() {
	i.t.Helper()
	i.wantOutcome("a message before the first", transportstore.Expected, 0, i.speaker, i.run(1))
	for range 3 {
		i.wantOutcome("the first message", transportstore.Accepted, 1, i.speaker, i.run(0))
	}
	i.wantOutcome("a message after a hole", transportstore.Expected, 1, i.speaker, i.run(2))
	i.wantOutcome("a message of the far future", transportstore.Expected, 1, i.speaker, i.run(1<<60))
	var racing sync.WaitGroup
	for range 8 {
		racing.Go(func() { i.ask(i.speaker, i.run(1)) })
	}
	racing.Wait()
	i.wantOutcome("the second message", transportstore.Accepted, 2, i.speaker, i.run(1))
	older, copied := i.speaker, i.speaker
	older.Epoch, older.Term = 4, 99
	copied.Token[0]++
	i.wantOutcome("what comes of an older epoch", transportstore.Superseded, 0, older, i.run(2))
	i.wantOutcome("what comes of a copy", transportstore.Superseded, 0, copied, i.run(2))
	backwards := i.ask(i.speaker, i.run(2), i.run(1), i.run(0))
	if slices.ContainsFunc(backwards, func(r transportstore.Result) bool { return r.Outcome != transportstore.Accepted || r.Next > 3 }) {
		i.t.Errorf("three messages in the wrong order were answered %+v", backwards)
	}
	unknown := i.run(3)
	unknown.ToBroker = parley.UUID{0xde, 0xad}
	i.wantOutcome("a message for a broker that is not there", transportstore.Unroutable, 0, i.speaker, unknown)
	unknown = i.run(0)
	unknown.ConversationID, unknown.ToService = parley.UUID{0xbe, 0xef}, "nobody"
	i.wantOutcome("a dialog with a service that is not there", transportstore.Unroutable, 0, i.speaker, unknown)
}

// meddle speaks on dialogs of others, and in the name of their broker.
func (i *intruder) meddle(owner *outpost) {
	i.t.Helper()
	h := owner.hand()
	handle, dialog := h.begin(owner.party.name, i.victim.party.name)
	h.send(handle)
	i.victim.hand().receive("target_queue", dialog, 1)
	id, err := parley.ParseUUID(dialog)
	if err != nil {
		i.t.Fatal(err)
	}
	run := i.run(1)
	run.ConversationID = id
	i.wantOutcome("a word on the dialog of others", transportstore.Refused, 0, i.speaker, run)
	run.FirstSequence, run.MessageType = transportstore.Unsequenced, "http://schemas.microsoft.com/SQL/ServiceBroker/Error"
	i.wantOutcome("an Error on the dialog of others", transportstore.Refused, 0, i.speaker, run)
	name := transportstore.Speaker{Epoch: 1 << 40, Term: 1 << 40, Token: parley.UUID{5}}
	if name.Instance, err = parley.ParseUUID(owner.instance()); err != nil {
		i.t.Fatal(err)
	}
	i.wantOutcome("a word in the name of another broker", transportstore.Held, 0, name, run)
	h.send(handle)
	i.victim.hand().receive("target_queue", dialog, 2)
}

// Keeps S1 to S4, T3 to T6, R2: whatever a trusted peer sends, its victim lives, does to its dialogs what is right, and serves others.
func TestADaemonBearsAPeerThatMisbehaves(t *testing.T) {
	t.Parallel()
	keys := newTrust(t)
	key := keys.identify(t, "intruder", t.TempDir())
	victim, good := newOutpost(t, keys, "victim"), newOutpost(t, keys, "good")
	introduce(t, keys, victim, good)
	must(t, victim.conn, "select parley.alter_peer('good', broker_instances => array[$1::uuid])", good.instance())
	victim.route(t, good.party, "tcp://"+good.address())
	good.route(t, victim.party, "tcp://"+victim.address())
	must(t, victim.conn, "select parley.create_queue('ajar')")
	must(t, victim.conn, "select parley.create_service('ajar', 'ajar', '{DEFAULT}')")
	must(t, victim.conn, "select parley.grant('SEND', 'service', 'ajar', 'public')")
	work := newWorkload(t, 1, []*party{victim.party, good.party})
	stop := work.run(1)

	i := newIntruder(t, key, victim)
	i.linger(5)
	closed := i.breakRules()
	i.converse()
	i.flood(2)
	i.overflow()
	closed++
	// The others could receive the dialog that is meddled with, and end it; what comes for one that is over is accepted as a replay.
	stop()
	i.meddle(good)

	await(t, "it is counted", func() bool { return victim.metric("parley_transport_corrupted_total") >= float64(closed) })
	if counted := victim.metric("parley_transport_corrupted_total"); counted > float64(closed+2) {
		t.Errorf("%v connections were counted as corrupted, want %d, and 2 that flooded at the most", counted, closed)
	}
	if dropped := victim.metric("parley_transport_messages_dropped_total"); dropped == 0 {
		t.Error("no message was counted as dropped")
	}
	for _, line := range []string{
		`event="Broker:Message Undeliverable"`, `msg="accepted connection closed"`, "more is open than the window allows",
	} {
		if !strings.Contains(victim.log.String(), line) {
			t.Errorf("the log does not say %s", line)
		}
	}
	const shown = "select count(*)::int from parley.dm_broker_connections where is_accept and software = 'intruder'"
	if deaf := ask[int](t, victim.conn, shown); deaf < 5 {
		t.Errorf("%d connections of the peer are shown, want those that are open", deaf)
	}
	if most := victim.memoryMost(); most > memoryMax {
		t.Errorf("the daemon took %d MiB, want at most %d", most, memoryMax)
	} else {
		t.Logf("the daemon took %d MiB", most)
	}

	// Its messages are there once, in order.
	const received = "select string_agg(parley.body_text(message_body), ',' order by queuing_order) from parley.receive('ajar')"
	if got := ask[string](t, victim.conn, received); got != "1,2,3" {
		t.Errorf("received %s of the peer", got)
	}
	const forget = `
		select parley.end_conversation(conversation_handle, cleanup => true) from parley.conversation_endpoints where conversation_id = $1`
	must(t, victim.conn, forget, i.dialog)
	h := judgeOutposts(t, work)
	t.Logf("%d messages sent, %d received, quiet after %v", len(h.Sent), len(h.Received), (h.Quiet - h.Healed).Round(time.Millisecond))
	if len(h.Received) < 20 {
		t.Error("others could receive few messages")
	}
}

// memoryMax is how much memory a daemon may ever take, in MiB, whatever is sent to it here.
const memoryMax = 400
