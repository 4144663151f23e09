package sql_test

import (
	"strings"
	"testing"
)

// listen reports a daemon that listens for other servers.
func (b *broker) listen() {
	b.Helper()
	b.exec(`select parley._p_report_daemon(gen_random_uuid(), 'host', '{"ip_address": "0.0.0.0", "port": 4022, "forwards": false, "forward_size_mb": 10}',
		'[]', '[]', '{}')`)
}

// lead makes as if a daemon ran.
func (b *broker) lead() {
	b.Helper()
	b.exec("update parley._p_leader set leader = 'test'")
	b.exec("select setval('parley._p_leader_lease', (extract(epoch from clock_timestamp()) * 1000000)::bigint + 30000000)")
}

// A route to another server needs a daemon that listens here, and a peer that may answer there (spec 9.4, endpoint).
func TestDiagnosisFindsAnEndpointThatARouteNeeds(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	const dialog = "parley.diagnose_configuration('//test/Asker', '//far/Service', '//test/Work')"
	const local = "parley.diagnose_configuration('//test/Asker', '//test/Answerer', '//test/Work')"
	b.createRoute("far", "tcp://far:4022", far)
	if f := b.requireFinding(dialog, "endpoint-missing"); f.ObjectName != "tcp://far:4022" || f.Cure != "parley serve --listen :4022" {
		t.Errorf("found %+v", f)
	}
	b.requireNoFinding(local, "endpoint-missing")
	b.listen()
	b.requireNoFinding(dialog, "endpoint-missing")

	if f := b.requireFinding(dialog, "peer-unknown"); f.Level != "WARNING" || !strings.HasPrefix(f.Cure, "parley pair ") {
		t.Errorf("found %+v", f)
	}
	b.requireNoFinding(local, "peer-unknown")
	// A peer whose address is not known may be there.
	b.exec("select parley.trust_peer($1, 'somebody')", anotherKey)
	b.requireNoFinding(dialog, "peer-unknown")
	b.exec("select parley.trust_peer($1, 'shop''s', address => 'tcp://FAR:4022')", oneKey)
	if found := b.findings(dialog); len(found) > 0 {
		t.Errorf("found %+v", found)
	}

	b.exec("update parley._p_peer_certificate set not_before = now() + interval '1 hour' where fingerprint = $1", oneKey)
	if f := b.requireFinding(dialog, "peer-not-trusted"); !strings.Contains(f.Cause, "not valid yet") {
		t.Errorf("found %+v", f)
	}
	b.exec("update parley._p_peer_certificate set not_before = null")
	b.requireNoFinding(dialog, "peer-not-trusted")
	b.exec("select parley.revoke_peer('shop''s')")
	f := b.requireFinding(dialog, "peer-not-trusted")
	if f.ObjectName != "shop's" || !strings.Contains(f.Cause, "revoked") {
		t.Errorf("found %+v", f)
	}
	b.requireNoFinding(local, "peer-not-trusted")
	b.exec(f.Cure)
	b.requireNoFinding(dialog, "peer-not-trusted")

	// The second server of a mirrored database has an address too.
	b.exec("select parley.alter_route('far', broker_instance => gen_random_uuid()::text, mirror_address => 'tcp://far2:4022')")
	b.exec("select parley.trust_peer($1, 'far2', address => 'tcp://far2:4022')", oneKey)
	b.exec("select parley.revoke_peer('far2')")
	b.requireFinding(dialog, "peer-not-trusted")
}

// Until a dialog has begun nobody knows which databases of the daemon have a service; what is created here would take what is meant for
// them.
func TestCureOfAMissingServiceDoesNotDivertWhatIsSentNextDoor(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	const dialog = "parley.diagnose_configuration('//test/Asker', '//test/answerer', '//test/Work')"
	want := "parley diagnose --from //test/Asker --to //test/answerer --contract //test/Work --far-dsn '<database that has it>'"
	if f := b.requireFinding(dialog, "service-missing"); !strings.HasPrefix(f.Cure, want) || !strings.Contains(f.Cause, "//test/Answerer") {
		t.Errorf("found %+v", f)
	}
	// No daemon runs that could have asked its other databases.
	b.exec("select parley.begin_dialog('//test/Asker', '//test/answerer', '//test/Work', allow_unknown_target => true)")
	if f := b.requireFinding(configuration, "service-missing"); !strings.HasPrefix(f.Cure, want) {
		t.Errorf("found %+v", f)
	}
	b.lead()
	b.exec("select parley._p_record_neighbours(true)")
	if f := b.requireFinding(configuration, "service-missing"); !strings.HasPrefix(f.Cure, "select parley.create_service('//test/answerer'") {
		t.Errorf("found %+v", f)
	}
}
