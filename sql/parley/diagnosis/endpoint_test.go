package diagnosis_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A route to another server needs a daemon that listens here, and a peer that may answer there (spec 9.4, endpoint).
func TestDiagnosisFindsAnEndpointThatARouteNeeds(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	const dialog = "parley.diagnose_configuration('//test/Asker', '//far/Service', '//test/Work')"
	const local = "parley.diagnose_configuration('//test/Asker', '//test/Answerer', '//test/Work')"
	b.CreateRoute("far", "tcp://far:4022", sqltest.Far)
	if f := b.RequireFinding(dialog, "endpoint-missing"); f.ObjectName != "tcp://far:4022" || f.Cure != "parley serve --listen :4022" {
		t.Errorf("found %+v", f)
	}
	b.RequireNoFinding(local, "endpoint-missing")
	b.Listen()
	b.RequireNoFinding(dialog, "endpoint-missing")

	if f := b.RequireFinding(dialog, "peer-unknown"); f.Level != "WARNING" || !strings.HasPrefix(f.Cure, "parley pair ") {
		t.Errorf("found %+v", f)
	}
	b.RequireNoFinding(local, "peer-unknown")
	// A peer whose address is not known may be there.
	b.Exec("select parley.trust_peer($1, 'somebody')", sqltest.AnotherKey)
	b.RequireNoFinding(dialog, "peer-unknown")
	b.Exec("select parley.trust_peer($1, 'shop''s', address => 'tcp://FAR:4022')", sqltest.OneKey)
	if found := b.Findings(dialog); len(found) > 0 {
		t.Errorf("found %+v", found)
	}

	b.Exec("update parley._p_peer_certificate set not_before = now() + interval '1 hour' where fingerprint = $1", sqltest.OneKey)
	if f := b.RequireFinding(dialog, "peer-not-trusted"); !strings.Contains(f.Cause, "not valid yet") {
		t.Errorf("found %+v", f)
	}
	b.Exec("update parley._p_peer_certificate set not_before = null")
	b.RequireNoFinding(dialog, "peer-not-trusted")
	b.Exec("select parley.revoke_peer('shop''s')")
	f := b.RequireFinding(dialog, "peer-not-trusted")
	if f.ObjectName != "shop's" || !strings.Contains(f.Cause, "revoked") {
		t.Errorf("found %+v", f)
	}
	b.RequireNoFinding(local, "peer-not-trusted")
	b.Exec(f.Cure)
	b.RequireNoFinding(dialog, "peer-not-trusted")

	// The second server of a mirrored database has an address too.
	b.Exec("select parley.alter_route('far', broker_instance => gen_random_uuid()::text, mirror_address => 'tcp://far2:4022')")
	b.Exec("select parley.trust_peer($1, 'far2', address => 'tcp://far2:4022')", sqltest.OneKey)
	b.Exec("select parley.revoke_peer('far2')")
	b.RequireFinding(dialog, "peer-not-trusted")
}

// Until a dialog has begun nobody knows which databases of the daemon have a service; what is created here would take what is meant for
// them.
func TestCureOfAMissingServiceDoesNotDivertWhatIsSentNextDoor(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	const dialog = "parley.diagnose_configuration('//test/Asker', '//test/answerer', '//test/Work')"
	want := "parley diagnose --from //test/Asker --to //test/answerer --contract //test/Work --far-dsn '<database that has it>'"
	if f := b.RequireFinding(dialog, "service-missing"); !strings.HasPrefix(f.Cure, want) || !strings.Contains(f.Cause, "//test/Answerer") {
		t.Errorf("found %+v", f)
	}
	// No daemon runs that could have asked its other databases.
	b.Exec("select parley.begin_dialog('//test/Asker', '//test/answerer', '//test/Work', allow_unknown_target => true)")
	if f := b.RequireFinding(sqltest.Configuration, "service-missing"); !strings.HasPrefix(f.Cure, want) {
		t.Errorf("found %+v", f)
	}
	b.Lead()
	b.Exec("select parley._p_record_neighbours(true)")
	if f := b.RequireFinding(sqltest.Configuration, "service-missing"); !strings.HasPrefix(f.Cure, "select parley.create_service('//test/answerer'") {
		t.Errorf("found %+v", f)
	}
}
