package operations_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Hosts read the thresholds, measure and record; an administrator alone changes them, and nobody else sees them.
func TestPressureOfTheEngineIsMeasuredByHosts(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.PublishFlow("urn:s#Order", `{"urn:p#Amount": 1}`)
	f.Exec("select parley_flow.maintain()")
	sqltest.Equal(f.Tx, "messages waiting, spool", `select string_agg(resource, ', ' order by resource) from parley_flow._p_measure() where resource <> 'connections'`)
	sqltest.Equal(f.Tx, 1, "select value::integer from parley_flow._p_measure() where resource = 'messages waiting'")
	sqltest.Equal(f.Tx, 50000, "select medium_at::integer from parley_flow.thresholds where resource = 'messages waiting'")
	f.Tx.Exec("select parley_flow._p_record_pressure('n', 'spool', 15004, 'NORMAL', 'MEDIUM', 5, '{}', 'x')")
	f.Tx.RefusesFlow(1, "select parley_flow.set_threshold('spool', 5, 6, 5, 4)")
	f.Exec("select parley_flow.set_threshold('spool', 5, 6, 5, 4)")
	f.RefusesFlow(10, "select parley_flow.set_threshold('moods', 5, 6, 5, 4)")
	sqltest.Equal(f.Rx, 5, "select medium_at::integer from parley_flow.thresholds where resource = 'spool'")
	outsider := f.As(f.Role("outsider"))
	outsider.RefusesFlow(1, "select parley_flow._p_measure()")
	outsider.RefusesFlow(1, "select parley_flow._p_record_pressure('n', 'spool', 15004, 'NORMAL', 'MEDIUM', 5, '{}', 'x')")
	sqltest.Equal(outsider, 0, "select count(*)::integer from parley_flow.thresholds")
}

// Retentions of the engine are settings, with bounds, and maintenance goes by them.
func TestRetentionsOfTheEngineAreSettings(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	audited := func() int {
		return sqltest.Value[int](f.Session, "select count(*)::integer from parley_flow._p_audit where operation = 'made up'")
	}
	f.Exec(`insert into parley_flow._p_audit (at, role, operation, object) values (clock_timestamp() - interval '3 days', 'x', 'made up', 'y')`)
	f.Exec("select parley_flow.maintain()")
	if audited() != 1 {
		t.Error("it is forgotten before its time")
	}
	f.Exec("select parley_flow.set_retention('audit', '2 days'), parley_flow.maintain()")
	if audited() != 0 {
		t.Error("it is remembered for longer than it should be")
	}
	sqltest.Equal(f.Session, "2 days", "select retention::text from parley_flow.retentions where what = 'audit'")
	f.Exec("select parley_flow.set_retention('audit', null)")
	sqltest.Equal(f.Session, "1 year", "select retention::text from parley_flow.retentions where what = 'audit'")
	f.RefusesFlow(10, "select parley_flow.set_retention('audit', '1 hour')")
	f.RefusesFlow(10, "select parley_flow.set_retention('moods', '1 day')")
	f.RefusesFlow(10, "select parley_flow.set_retention(null, '1 day')")
	f.Tx.RefusesFlow(1, "select parley_flow.set_retention('audit', '2 days')")
}

// A report that is no report of ours breaks no diagnosis.
func TestDiagnosisBearsAnyReportOfANode(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	for _, report := range []string{
		"null", "5", `"x"`, "[]", `{"problems": null, "publishing": 5, "delivery": []}`, `{"problems": {"code": 5}, "publishing": {"state": "x"}}`,
		`{"problems": [5, null, {"code": "flow-node-port", "cause": {"a": 1}, "since": "never"}], "delivery": {"state": {"a": 1}, "since": "x", "delay_ms": []}}`,
	} {
		f.Tx.Exec("select parley_flow._p_report('Send', 'n', $1::jsonb)", report)
		f.Exec("select from parley_flow._p_find_faults('RUNTIME', '0')")
		f.Exec("select from parley_flow.hosts")
	}
	sqltest.Equal(f.Session, "flow-node-port flow-throttled", `select string_agg(code, ' ' order by code) from parley_flow._p_find_faults('RUNTIME', '0')
		where code in ('flow-node-port', 'flow-throttled')`)
}
