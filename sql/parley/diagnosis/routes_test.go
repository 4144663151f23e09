package diagnosis_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A route that has expired is missed by nobody while another one leads to the same broker.
func TestDiagnosisLeavesOutAnExpiredRouteBesideALiveOne(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.CreateRoute("old", "tcp://a:1", "//far/Service")
	b.CreateRoute("new", "tcp://b:1", "//far/Service")
	b.Exec("select parley.begin_dialog('//test/Asker', '//far/Service')")
	b.Exec("update parley._p_route set expires_at = clock_timestamp() where name = 'old'")
	b.RequireNoFinding(sqltest.Configuration, "route-expired")
	// One that is for what arrives leads nowhere, and one to another broker not there.
	b.Exec("select parley.alter_route('new', broker_instance => gen_random_uuid()::text)")
	b.RequireFinding(sqltest.Configuration, "route-expired")
}
