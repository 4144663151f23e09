package views_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Each thing that can be wrong with mail is found by parley diagnose, with a statement that cures it.
func TestDiagnosisFindsWhatIsWrongWithMail(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	find := func(part string) string {
		t.Helper()
		found := sqltest.Values[string](b.Session, "select f.code || ': ' || f.cure from parley.diagnose_"+part+"() as f where f.code like 'mail-%' or f.part = 'PROBLEM'")
		return strings.Join(found, "\n")
	}
	require := func(part, code, cure string) {
		t.Helper()
		if found := find(part); !strings.Contains(found, code+": ") || !strings.Contains(found, cure) {
			t.Errorf("%s: want %s with %s, found:\n%s", part, code, cure, found)
		}
	}
	report := func(fields string) {
		t.Helper()
		b.Exec("select parley_mail._p_report_daemon('node1', $1::jsonb || jsonb_build_object('configuration_version', "+
			"(select version from parley_mail._p_configuration_version)))", fields)
	}
	age := func() {
		b.Exec("update parley_mail._p_configuration_version set changed_at = changed_at - interval '1 day'")
	}
	age()
	require("runtime", "mail-no-daemon", "parley mail serve")
	// So are its queues: who gave them a procedure as a reader would lose mail.
	b.Exec("select parley_mail.send('shop@example.org', array['ann@example.org'], 'x', 'x')")
	sqltest.Equal(b.Session, "parley_mail_submission: parley mail serve", `select string_agg(f.object_name || ': ' || f.cure, ', ')
		from parley.diagnose_runtime(patience => '0') as f where f.code = 'no-reader'`)
	report(`{"is_start": true, "level": "NORMAL"}`)
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail._p_find_daemon_faults()")
	sqltest.Equal(sqltest.NewBroker(t).Session, 0, "select count(*)::int from parley_mail._p_find_daemon_faults()")
	if found := find("runtime"); strings.Contains(found, "mail-no-daemon") || strings.Contains(found, "PROBLEM") {
		t.Errorf("with a daemon there is found:\n%s", found)
	}

	report(`{"level": "HIGH", "actions": ["refuse submission by SQL"], "resources": [
		{"resource": "data volume", "value": 99.5, "unit": "%", "level": "HIGH"}, {"resource": "connections", "value": 1, "unit": "%", "level": "NORMAL"}]}`)
	require("runtime", "mail-pressure", "make the volume larger")
	report(`{"level": "HIGH", "actions": ["refuse submission by SQL", "pause resubmission"]}`)
	// Nothing is categorized anew; what only goes on in its queue does.
	for _, statement := range []string{
		"resume_queue('UNREACHABLE/-/-')", "resume_queue('POISON/-/-')", "resubmit_messages('{}')", `resume_messages('{"queue": "POISON"}')`,
	} {
		poison := b.Begin()
		poison.Exec(`select parley_mail._p_set_aside(array[a.id], 'x')
			from parley_mail._p_accept(array['{"recipients": ["x@example.com"], "source": "SMTP", "quarantine": "x"}'::jsonb], array['x'::bytea]) as a (id)`)
		poison.RefusesMail(14, "select parley_mail."+statement)
		poison.Rollback()
	}
	b.Exec(`select parley_mail.retry_messages('{}'), parley_mail.resume_messages('{}'), parley_mail.resubmit_messages('{}', dry_run => true)`)
	b.As(b.Role("ordinary")).Fails("PM001", "select parley_mail._p_report_daemon('node2', '{}')")
	if _, err := b.DB.Exec(t.Context(), "select parley_mail.send('shop@example.org', array['ann@example.org'], 'x', 'x')"); err == nil ||
		!strings.Contains(err.Error(), "PM014") {
		t.Errorf("under pressure submission gives %v", err)
	}
	b.Exec("select parley_mail._p_report_daemon('node1', '{\"level\": \"NORMAL\", \"configuration_version\": 1}')")
	require("runtime", "mail-daemon-outdated", "parley_mail.daemons")
	b.Exec("select parley_mail.send('shop@example.org', array['ann@example.org'], 'x', 'x')")

	report(`{"problems": [{"code": "mail-binding", "kind": "receive connector", "object": "node1", "cause": "address in use"},
		{"code": "mail-certificate", "kind": "send connector", "object": "relay", "cause": "no such file"},
		{"code": "mail-certificate-expiring", "kind": "receive connector", "object": "inbound", "cause": "soon"},
		{"code": "mail-certificate-expired", "kind": "receive connector", "object": "inbound", "cause": "yesterday"},
		{"code": "mail-configuration", "kind": "configuration", "object": "node1", "cause": "binding x"}]}`)
	for code, cure := range map[string]string{
		"mail-binding": "alter_object('receive connector'", "mail-configuration": "parley mail apply",
		"mail-certificate":          "alter_object('send connector', 'relay'",
		"mail-certificate-expiring": "alter_object('receive connector', 'inbound'", "mail-certificate-expired": "certificate_file",
	} {
		require("configuration", code, cure)
	}

	b.Exec(`select parley_mail.apply('{"accepted domain": {"unsigned.example": {}}, "send connector": {"outbound": {"address_spaces": [{"pattern": "*"}]}}}')`)
	require("configuration", "mail-signing-key-missing", "create_object('signing key', 'unsigned.example'")
	report(`{"level": "NORMAL"}`)
	b.Exec(`select parley_store.put_work('mail', array['POISON/-/-', 'UNREACHABLE/-/-', 'DNS/outbound/b.example', 'DNS/outbound/c.example'], array[1, 2, 3, 4]::bigint[])`)
	b.Exec("select parley_store.suspend_lane('mail', 'DNS/outbound/c.example', 'maintenance')")
	b.Exec(`update parley_store._p_lane_state as s set suspended_at = s.suspended_at - interval '1 day',
		failing_since = clock_timestamp() - interval '1 day', failures = 3, next_attempt_at = clock_timestamp() + interval '1 hour', last_error = '4.4.1 refused'
		from parley_store._p_lane as l where l.lane_id = s.lane_id and l.lane like 'DNS/%'`)
	for code, cure := range map[string]string{
		"mail-poison": "resume_queue('POISON/-/-')", "mail-unreachable": "resume_queue('UNREACHABLE/-/-')",
		"mail-queue-retry": "retry_queue('DNS/outbound/b.example')", "mail-queue-suspended": "resume_queue('DNS/outbound/c.example')",
	} {
		require("runtime", code, cure)
	}
	b.Exec(`select parley_mail.send_batch('shop@example.org', array(select format('u%s@example.org', n) from generate_series(1, 120) as n), 'x', 'x')`)
	if found := sqltest.Values[string](b.Session, "select f.code from parley.diagnose_runtime(patience => '0') as f"); !strings.Contains(strings.Join(found, " "), "mail-submission-backlog") {
		t.Errorf("a backlog is not found: %v", found)
	}
	// The name of a service puts no commands of a shell into the cure that an operator runs.
	b.Exec(`insert into parley_mail._p_unread_reply (service, is_error, replies, last_text, last_at) values ($1, true, 1, 'x', now())`, "x; touch '#")
	require("runtime", "mail-service-error", `select * from parley.diagnose_configuration('parley_mail/Status', 'x; touch ''#');`)
	id := b.PutContent(1, 600000)
	reader := b.Begin()
	reader.Exec("select parley_store.read_chunks($1, 'mail', 1)", id)
	b.Exec("select parley_store.release_content('mail', array[1]), parley_store.collect_content(1000, '0 seconds')")
	sqltest.Equal(b.Session, fmt.Sprintf("select pg_terminate_backend(%d);", sqltest.Value[int32](reader, "select pg_backend_pid()")),
		"select f.cure from parley.diagnose_runtime(patience => '0') as f where f.code = 'mail-generation-held'")
	reader.Rollback()
	if found := sqltest.Values[string](b.Session, `select f.code from parley.diagnose_runtime(ignore => array['mail-poison'], level => 'ERROR') as f
		where f.code in ('mail-poison', 'mail-queue-retry')`); len(found) > 0 {
		t.Errorf("in spite of what was to be ignored there is found %v", found)
	}
}

// The thresholds are those of the specification; the classic ones are a preset.
func TestThresholdsOfPressureArePresets(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	const shown = `select string_agg(format('%s %s/%s/%s/%s/%s', resource, medium_at, high_at, medium_below, normal_below, history_polls), ', ' order by resource)
		from parley_mail.thresholds where is_watched and resource in ('uncommitted', 'batch points', 'submission queue', 'process memory', 'commit latency')`
	sqltest.Equal(b.Session, "batch points 2000/4000/3000/1000/300, commit latency 50/250/200/40/30, process memory 72/75/73/71/30, "+
		"submission queue 9999/15000/10000/2000/300, uncommitted 999/1500/1000/800/10", shown)
	b.Exec("select parley_mail.set_pressure_preset('2007')")
	sqltest.Equal(b.Session, "process memory 72/75/73/71/30, submission queue 9999/15000/10000/2000/300, uncommitted 120/200/120/80/10", shown)
	b.Exec("select parley_mail.set_pressure_preset('2013')")
	sqltest.Equal(b.Session, "batch points 2000/4000/3000/1000/300, process memory 72/75/73/71/30, submission queue 9999/15000/10000/2000/300, "+
		"uncommitted 2000/2500/2000/1750/10", shown)
	b.Exec("select parley_mail.set_threshold('process memory', 80, 90, 85, 75), parley_mail.set_pressure_action('process memory', 'tarpit', 'MEDIUM')")
	sqltest.Equal(b.Session, "tarpit", "select action from parley_mail.pressure_actions where resource = 'process memory' and action = 'tarpit'")
	ordinary := b.As(b.Role("ordinary"))
	for _, statement := range []string{
		"select parley_mail.set_pressure_preset('2007')", "select parley_mail.set_threshold('process memory', 80, 90, 85, 75)",
		"select parley_mail.set_pressure_action('process memory', 'tarpit', 'HIGH')", "select parley_mail._p_measure()",
	} {
		ordinary.RefusesMail(1, statement)
	}
	sqltest.Equal(ordinary, 0, "select count(*)::int from parley_mail.thresholds")
	sqltest.Equal(ordinary, 0, "select count(*)::int from parley_mail.daemons")
	sqltest.Equal(ordinary, 0, "select count(*)::int from parley_mail.performance_counters")
	b.RefusesMail(10, "select parley_mail.set_pressure_preset('2003')")
	b.RefusesMail(10, "select parley_mail.set_threshold('moon phase', 80, 90, 85, 75)")
	b.RefusesMail(10, "select parley_mail.set_pressure_action('process memory', 'panic', 'HIGH')")
	b.Exec("select parley_mail.send('shop@example.org', array['ann@example.org'], 'x', 'x')")
	sqltest.Equal(b.Session, 1.0, "select value from parley_mail.performance_counters where counter = 'Submission Queue Length'")
}

// The last report of a daemon that is gone says why none serves, until one does.
func TestFaultsOfADaemonThatIsGoneAreFoundUntilAnotherServes(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	report := func(daemon, cause, rest string) {
		b.Exec(`select parley_mail._p_report_daemon($1, jsonb_build_object('configuration_version', 1, 'problems', jsonb_build_array(jsonb_build_object(
			'code', 'mail-configuration', 'kind', 'signing key', 'object', 'chalk', 'cause', $2::text))) || $3::jsonb)`, daemon, cause, rest)
	}
	const causes = "select string_agg(f.cause, ', ' order by f.cause) from parley_mail._p_find_daemon_faults() as f where f.code = 'mail-configuration'"
	report("node1", "first", `{"is_start": true}`)
	report("node1", "first", `{"is_stopped": true}`)
	report("node2", "second", `{"is_start": true}`)
	report("node3", "third", `{"is_start": true}`)
	sqltest.Equal(b.Session, "second, third", causes)
	report("node2", "second", `{"is_stopped": true}`)
	sqltest.Equal(b.Session, "third", causes)
	b.Exec("update parley_mail._p_daemon set reported_at = reported_at - interval '2 minutes' where name = 'node3'")
	sqltest.Equal(b.Session, "second", causes)
	report("node4", "", `{"is_start": true, "problems": []}`)
	sqltest.Equal(b.Session, (*string)(nil), causes)
}
