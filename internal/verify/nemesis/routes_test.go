//go:build unix

package nemesis_test

import (
	"strings"
	"testing"
)

// connections counts the connections that a daemon has taken from others.
func connections(d *daemon) int { return strings.Count(d.log.String(), `msg="connection accepted"`) }

// Keeps S1 to S4, L1: a route with a mirror leads to the server of the two that is there, in the middle of a conversation, and back.
func TestMessagesFollowTheirTargetToItsMirrorAndBack(t *testing.T) {
	t.Parallel()
	keys := newTrust(t)
	asker, target := newOutpost(t, keys, "asker"), newOutpost(t, keys, "target")
	principal := target.daemon
	mirror := keys.second(t, "mirror", "target", target.dsn())
	introduce(t, keys, asker, target)
	// Until it does, the asker rightly goes to the mirror.
	await(t, "the principal listens", func() bool { return strings.Contains(principal.log.String(), "the broker endpoint is open") })
	for _, service := range []string{"target/target", "target/initiator"} {
		must(t, asker.conn, `
			select parley.create_route($1, 'tcp://' || $2, service_name => $1, broker_instance => $3, mirror_address => 'tcp://' || $4)`,
			service, principal.address(), target.instance(), mirror.address())
	}
	target.route(t, asker.party, "tcp://"+asker.address())
	work := newWorkload(t, 1, []*party{asker.party, target.party})
	here, there := asker.hand(), target.hand()
	handle := ask[string](t, here.conn,
		"select parley.begin_dialog('asker/initiator', 'target/target', broker_instance => $1)::text", target.instance())
	dialog := ask[string](t, here.conn,
		"select conversation_id::text from parley.conversation_endpoints where conversation_handle = $1::uuid", handle)
	sent := 0
	talk := func() {
		t.Helper()
		here.send(handle)
		sent++
		there.send(there.receive("target_queue", dialog, sent))
		here.receive("initiator_queue", dialog, sent)
	}
	talk()
	if connections(mirror) != 0 {
		t.Error("the mirror was used while the principal was there")
	}
	principal.kill()
	talk()
	if connections(mirror) == 0 {
		t.Error("the message did not come by the mirror")
	}
	before := connections(principal)
	principal.start(t)
	talk()
	mirror.kill()
	talk()
	if connections(principal) == before {
		t.Error("the message did not come by the principal again")
	}
	judgeOutposts(t, work)
}

// Keeps S1 to S4: with a route whose address is TRANSPORT, service names state where services are, in both directions.
func TestServiceNamesThatAreAddressesAreTransport(t *testing.T) {
	t.Parallel()
	keys := newTrust(t)
	asker, target := newOutpost(t, keys, "asker"), newOutpost(t, keys, "target")
	introduce(t, keys, asker, target)
	names := map[*outpost]string{}
	for _, o := range []*outpost{asker, target} {
		names[o] = "tcp://" + o.address()
		for _, side := range []string{"initiator", "target"} {
			must(t, o.conn, "select parley.create_service($1, $2, '{DEFAULT}')", names[o]+"/"+side, side+"_queue")
			must(t, o.conn, "select parley.grant('SEND', 'service', $1, 'public')", names[o]+"/"+side)
		}
		must(t, o.conn, "select parley.create_route('by name', 'TRANSPORT')")
	}
	work := newWorkload(t, 1, []*party{asker.party, target.party})
	here, there := asker.hand(), target.hand()
	handle, dialog := here.begin(names[asker], names[target])
	for n := 1; n <= 3; n++ {
		here.send(handle)
		there.send(there.receive("target_queue", dialog, n))
		here.receive("initiator_queue", dialog, n)
	}
	judgeOutposts(t, work)
}
