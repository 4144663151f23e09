package operate_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
)

func requireCodes(t *testing.T, findings []operate.Finding, want ...string) {
	t.Helper()
	if len(findings) != len(want) {
		t.Fatalf("found %+v, want %v", findings, want)
	}
	for i, f := range findings {
		if f.Code != want[i] || f.Cure == nil || *f.Cure == "" || f.Cause == "" {
			t.Errorf("found %+v, want %s", f, want[i])
		}
	}
}

func TestDiagnoseConnectionFindsNothingOnAGoodOne(t *testing.T) {
	t.Parallel()
	findings, fits, err := operate.DiagnoseConnection(t.Context(), fixture.Connect(t, parleytest.Database(t)))
	if err != nil || !fits {
		t.Fatalf("fits %v, error %v", fits, err)
	}
	requireCodes(t, findings)
}

func TestDiagnoseConnectionFindsAPooler(t *testing.T) {
	t.Parallel()
	dsn := parleytest.PgBouncer(t, parleytest.Database(t))
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	findings, _, err := operate.DiagnoseConnection(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	requireCodes(t, findings, "pooled-connection")
}

func TestDiagnoseConnectionFindsClocksThatDiffer(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	for _, off := range []time.Duration{-time.Minute, time.Minute} {
		findings, _, err := operate.DiagnoseConnectionAt(t.Context(), conn, func() time.Time { return time.Now().Add(off) })
		if err != nil {
			t.Fatal(err)
		}
		requireCodes(t, findings, "clock-skew")
	}
}

func TestDiagnoseConnectionFindsASchemaThatDoesNotFit(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	for statement, code := range map[string]string{
		"update parley._p_installation set schema_version = 0, oldest_client_version = 1":       "upgrade-needed",
		"update parley._p_installation set schema_version = 1000, oldest_client_version = 1000": "release-too-old",
	} {
		fixture.Execute(t, conn, statement)
		findings, fits, err := operate.DiagnoseConnection(t.Context(), conn)
		if err != nil || fits {
			t.Fatalf("fits %v, error %v", fits, err)
		}
		requireCodes(t, findings, code)
	}
}

func TestRepairBringsLostGrantsBack(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	fixture.Execute(t, conn, "revoke usage on schema parley from public")
	find := func() []operate.Finding {
		findings, err := operate.DiagnoseConfiguration(t.Context(), conn, "", "", "", operate.DiagnosisFilter{})
		if err != nil {
			t.Fatal(err)
		}
		return findings
	}
	requireCodes(t, find(), "rights-lost")
	if err := schema.Repair(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	requireCodes(t, find())
}

func TestDiagnosisOfARestoredCopyAsksWhatItIs(t *testing.T) {
	t.Parallel()
	original := parleytest.Database(t)
	fixture.Execute(t, original, fixture.Talk)
	copied := fixture.Copy(t, original)
	conn := fixture.Connect(t, copied)
	if _, _, err := operate.DiagnoseConnection(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	findings, err := operate.DiagnoseConfiguration(t.Context(), conn, "", "", "", operate.DiagnosisFilter{Level: operate.LevelError, Ignore: []string{"service-missing"}})
	if err != nil {
		t.Fatal(err)
	}
	requireCodes(t, findings, "broker-elsewhere")
	fixture.Execute(t, conn, *findings[0].Cure)
	fixture.RequireBrokerState(t, conn, parley.BrokerEnabled)
}

func TestCheckBrokerReportsWhatItRepairs(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	fixture.Execute(t, pool, fixture.Talk, "drop view parley_queue.asking")
	for _, repair := range []bool{false, true} {
		found, err := operate.CheckBroker(t.Context(), pool, repair)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || found[0].ObjectName != "asking" || found[0].Repaired != repair {
			t.Errorf("found %+v", found)
		}
	}
	if found, err := operate.CheckBroker(t.Context(), pool, false); err != nil || len(found) != 0 {
		t.Errorf("found %+v, error %v", found, err)
	}
}

// Each code that can be reported is explained in docs/reference/diagnose.md, and no other.
func TestEveryFindingIsExplained(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/reference/diagnose.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)`").FindAllStringSubmatch(string(page), -1) {
		explained[row[1]] = true
	}
	pool := parleytest.Database(t)
	codes := []string{
		"upgrade-needed", "release-too-old", "pooled-connection", "clock-skew", "contract-differs",
		"endpoint-elsewhere", "certificate-not-valid-yet", "endpoint-not-checked", "far-unreachable",
		"mirror-unreachable", "mirror-other-database", "mirror-promoted", "mirror-differs", "mirror-address-missing", "mirror-not-checked",
		"mirror-address-not-checked",
	}
	rows, err := pool.Query(t.Context(), "select code from parley.diagnosis_checks")
	if err != nil {
		t.Fatal(err)
	}
	checks, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range append(codes, checks...) {
		if !explained[code] {
			t.Errorf("docs/reference/diagnose.md does not explain %s", code)
		}
		delete(explained, code)
	}
	for code := range explained {
		t.Errorf("docs/reference/diagnose.md explains %s, which nothing finds", code)
	}
}
