package sql_test

import "testing"

// A route that has expired is missed by nobody while another one leads to the same broker.
func TestDiagnosisLeavesOutAnExpiredRouteBesideALiveOne(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.createRoute("old", "tcp://a:1", "//far/Service")
	b.createRoute("new", "tcp://b:1", "//far/Service")
	b.exec("select parley.begin_dialog('//test/Asker', '//far/Service')")
	b.exec("update parley._p_route set expires_at = clock_timestamp() where name = 'old'")
	b.requireNoFinding(configuration, "route-expired")
	// One that is for what arrives leads nowhere, and one to another broker not there.
	b.exec("select parley.alter_route('new', broker_instance => gen_random_uuid()::text)")
	b.requireFinding(configuration, "route-expired")
}
