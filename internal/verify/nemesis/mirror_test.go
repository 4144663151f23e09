//go:build unix

package nemesis_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/operate"
)

// The partner of a database is a copy of it that follows, with the same objects, and the route to it gives both addresses (spec 9.4,
// mirror).
func TestDiagnosisOfAMirrorChecksThePartnerAndTheRoutes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it makes servers of its own")
	}
	primary := newServer(t, "primary")
	primary.createDatabase(t, "a")
	primary.createDatabase(t, "b")
	standby := primary.copyTo(t, "standby", true)
	a, b, mirror := connect(t, primary.DSN("a")), connect(t, primary.DSN("b")), connect(t, standby.DSN("a"))
	for _, conn := range []interface{ Close(context.Context) error }{a, b, mirror} {
		defer conn.Close(context.Background())
	}
	guid := ask[string](t, a, "select service_broker_guid::text from parley._p_broker")
	must(t, b, "select parley.new_broker()")

	require := func(from, partner, other parley.DB, want ...string) []operate.Finding {
		t.Helper()
		found, err := operate.DiagnoseMirror(t.Context(), from, partner, other, "b/initiator", "a/target", operate.DiagnosisFilter{})
		if err != nil {
			t.Fatal(err)
		}
		var codes []string
		for _, f := range found {
			codes = append(codes, f.Code)
		}
		if !slices.Equal(codes, want) {
			t.Errorf("found %+v, want %v", found, want)
		}
		return found
	}
	caughtUp := func() {
		t.Helper()
		end := ask[string](t, a, "select pg_current_wal_lsn()::text")
		await(t, "the standby has caught up", func() bool {
			return ask[bool](t, mirror, "select pg_last_wal_replay_lsn() >= $1::pg_lsn", end)
		})
	}

	// The rights that the partner lacks.
	must(t, mirror, "select pg_wal_replay_pause()")
	await(t, "replay has paused", func() bool { return ask[string](t, mirror, "select pg_get_wal_replay_pause_state()") == "paused" })
	must(t, a, "select parley.create_service('a/target', 'target_queue', array['DEFAULT'])")
	if found := require(a, mirror, b, "mirror-differs"); len(found) == 1 && !strings.Contains(found[0].Cause, "it lacks service a/target") {
		t.Errorf("found %+v", found)
	}
	must(t, mirror, "select pg_wal_replay_resume()")
	caughtUp()
	require(a, mirror, b)

	// The route of the other side; the cure makes the finding go, whatever the route is.
	for name, route := range map[string]string{
		"by name":      "select parley.create_route('r', 'tcp://first:4022', 'a/target')",
		"by instance":  "select parley.create_route('r', 'tcp://first:4022', 'a/target', '" + guid + "')",
		"for anything": "select parley.drop_route('AutoCreatedLocal'), parley.create_route('r', 'tcp://first:4022')",
	} {
		must(t, b, route)
		found := require(a, mirror, b, "mirror-address-missing")
		if len(found) != 1 || found[0].ObjectName != "r" || found[0].Cure == nil {
			t.Fatalf("%s: found %+v", name, found)
		}
		must(t, b, strings.ReplaceAll(*found[0].Cure, "<host of the partner>", "second"))
		require(a, mirror, b)
		must(t, b, "select parley.drop_route(r.name) from parley.routes as r where r.name in ('r', 'a/target')")
		must(t, b, "select parley.create_route('AutoCreatedLocal', 'LOCAL') where not exists (select from parley.routes where name = 'AutoCreatedLocal')")
	}
	if found := require(a, mirror, nil, "mirror-address-not-checked"); len(found) == 1 && found[0].Part != operate.PartProblem {
		t.Errorf("found %+v", found)
	}

	// Partners that are none.
	caughtUp()
	require(a, b, b, "mirror-other-database")
	again := connect(t, primary.DSN("a"))
	defer again.Close(context.Background())
	if found := require(a, again, b, "mirror-other-database"); !strings.Contains(found[0].Cause, "this very database") {
		t.Errorf("found %+v", found)
	}
	other := newServer(t, "other")
	other.createDatabase(t, "a")
	elsewhere := connect(t, other.DSN("a"))
	defer elsewhere.Close(context.Background())
	if found := require(a, elsewhere, b, "mirror-other-database"); !strings.Contains(found[0].Cause, "another server") {
		t.Errorf("found %+v", found)
	}
	if found := require(mirror, a, b, "mirror-promoted"); !strings.Contains(found[0].Cause, "is the primary") {
		t.Errorf("found %+v", found)
	}

	// A promoted one goes its own way.
	standby.promote(t)
	must(t, mirror, "select parley.create_queue('new')")
	must(t, a, "update parley._p_installation set schema_version = schema_version + 1")
	found := require(a, mirror, b, "mirror-promoted", "mirror-differs", "mirror-differs")
	if len(found) == 3 && (!strings.Contains(found[0].Cause, "was promoted") || !strings.Contains(found[1].Cause, "schema version") ||
		!strings.Contains(found[2].Cause, "it alone has queue new")) {
		t.Errorf("found %+v", found)
	}
}
