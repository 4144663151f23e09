//go:build unix

package nemesis_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	"github.com/parley-broker/parley/internal/verify/faultinjection"
)

// Keeps S1 to S4, T2, T6, L2: a forwarder holds no more than it may for a target that takes nothing, drops the rest, which loses nothing,
// and passes on what is for others.
func TestAForwarderWithATargetThatTakesNothingServesOthers(t *testing.T) {
	t.Parallel()
	keys := newTrust(t)
	key := keys.identify(t, "stuck", t.TempDir())
	sender, other := newOutpost(t, keys, "sender"), newOutpost(t, keys, "other")
	forwarder := newOutpost(t, keys, "forwarder", "--forward", "--forward-size", "1")
	target := newOutpost(t, keys, "target")
	introduce(t, keys, sender, other, forwarder, target)
	stuck, err := faultinjection.Listen(t.Context(), tlsOf(key), func(*pb.Frame) []*pb.Frame { return nil })
	if err != nil {
		t.Fatal(err)
	}
	isOpen := true
	closeStuck := func() {
		if isOpen {
			isOpen = false
			if err := stuck.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(closeStuck)
	must(t, target.conn, "select parley.create_service('stuck/target', 'target_queue', '{DEFAULT}')")
	must(t, target.conn, "select parley.grant('SEND', 'service', 'stuck/target', 'public')")
	onward := func(service, address string) {
		t.Helper()
		must(t, forwarder.conn, "select parley.create_route($1, 'tcp://' || $2, service_name => $1, is_inbound => true)", service, address)
	}
	onward("stuck/target", stuck.Address())
	onward("target/target", target.address())
	for _, o := range []*outpost{sender, other} {
		onward(o.party.name+"/initiator", o.address())
		must(t, o.conn, "select parley.create_route('all else', 'tcp://' || $1)", forwarder.address())
	}
	must(t, target.conn, "select parley.create_route('all else', 'tcp://' || $1)", forwarder.address())
	work := newWorkload(t, 1, []*party{sender.party, other.party, target.party})

	// A forwarder cannot protect a dialog.
	begin := func(h *hand, from, to string) (handle, dialog string) {
		t.Helper()
		handle = ask[string](t, h.conn, "select parley.begin_dialog($1, $2, encryption => false)::text", from+"/initiator", to+"/target")
		return handle, ask[string](t, h.conn,
			"select conversation_id::text from parley.conversation_endpoints where conversation_handle = $1::uuid", handle)
	}
	here, there := sender.hand(), target.hand()
	const each = 3
	var dialogs []string
	for range 6 {
		handle, dialog := begin(here, "sender", "stuck")
		dialogs = append(dialogs, dialog)
		for range each {
			must(t, here.conn, "select ledger.send($1::uuid, 'large', repeat('x', 100000), 1)", handle)
		}
	}
	const limit = 1 << 20
	pending := func() float64 { return forwarder.metric("parley_transport_forward_pending_bytes") }
	await(t, "the forwarder drops what is too much", func() bool {
		return forwarder.metric("parley_transport_forward_dropped_total") > 0 && pending() > 0
	})
	if held := pending(); held > limit {
		t.Errorf("the forwarder holds %v bytes, and may hold %d", held, limit)
	}
	await(t, "what is on its way is shown", func() bool {
		return ask[bool](t, forwarder.conn, `
			select count(*) > 0 and bool_and(adjacent_broker_address like '%' || $1) from parley.dm_broker_forwarded_messages`, stuck.Address())
	})
	if !strings.Contains(forwarder.log.String(), `event="Broker:Forwarded Message Dropped"`) {
		t.Error("the log does not say that messages were dropped")
	}

	// Meanwhile others converse through it, and all is still with its sender.
	fromOther := other.hand()
	handle, dialog := begin(fromOther, "other", "target")
	for n := 1; n <= 5; n++ {
		fromOther.send(handle)
		there.send(there.receive("target_queue", dialog, n))
		fromOther.receive("initiator_queue", dialog, n)
		if held := pending(); held > limit {
			t.Errorf("the forwarder holds %v bytes, and may hold %d", held, limit)
		}
	}
	if kept := ask[int](t, here.conn, "select count(*)::int from parley.transmission_queue"); kept != len(dialogs)*each {
		t.Errorf("of %d messages %d are still with their sender", len(dialogs)*each, kept)
	}
	if most := forwarder.memoryMost(); most > memoryMax {
		t.Errorf("the forwarder took %d MiB, want at most %d", most, memoryMax)
	}

	// It has passed on nothing of what nobody took, and does when the way leads on.
	must(t, forwarder.conn, "select parley.alter_route('stuck/target', 'tcp://' || $1)", target.address())
	closeStuck()
	for _, dialog := range dialogs {
		there.receive("target_queue", dialog, each)
	}
	judgeOutposts(t, work)
}
