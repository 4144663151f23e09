package settings_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A new database has no statistics, and for large guesses a server with jit on compiles: that takes longer than any call here.
func TestCallsAreNotCompiled(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	role := b.Role("grantee")
	config := b.Pool.Config().ConnConfig.Copy()
	statements, compiled := 0, []string{}
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		if !strings.HasPrefix(notice.Message, "duration:") {
			return
		}
		statements++
		if strings.Contains(notice.Message, "JIT:") {
			compiled = append(compiled, notice.Message)
		}
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	s := sqltest.Session{T: t, DB: conn}
	s.Exec("load 'auto_explain'")
	for setting, value := range map[string]string{
		"jit": "on", "auto_explain.log_min_duration": "0", "auto_explain.log_analyze": "on", "auto_explain.log_timing": "off",
		"auto_explain.log_nested_statements": "on", "auto_explain.log_level": "notice",
	} {
		s.Exec("select set_config($1, $2, false)", setting, value)
	}
	if !sqltest.Value[bool](s, "select pg_jit_available()") {
		t.Skip("the server has no compiler")
	}
	s.Exec("select parley.grant('SEND', 'queue', 'jobs', $1)", role)
	for _, statement := range []string{
		"select parley.create_queue('more', kind => 'SIMPLE')",
		"select parley.schedule('s', 'jobs', 'b', every => '1 day'), parley.run_schedule('s')",
		"select parley.put('jobs', 'a'), parley.put('jobs', 'b', key => 'k'), parley.put('jobs', 'c', deliver_at => now() + interval '1 hour')",
		"select parley.put('jobs', 'd', deduplication_key => 'd'), parley.put_unique('jobs', 'e', 'e')",
		"select parley.put_each('jobs', array['f', 'g']), parley.put_group('jobs', array['h'], 'more', 'then'), parley.put_batch('jobs', array['i'])",
		"select parley.set_queue_limits('jobs', concurrency => 3, rate => 100, ageing => '1 hour')",
		"select from parley.take('jobs', 5)",
		"select parley.complete('jobs', c.claim) from parley.claim('jobs') as c",
		"select parley.give_back('jobs', c.claim, 'no') from parley.claim('jobs') as c",
		"select from parley.queue_limits", "select from parley.schedules", "select from parley.batches", "select from parley.simple_queues",
		"select parley.begin_and_send('//test/Asker', '//test/Answerer', '//test/Request', 'a', contract => '//test/Work', deduplication_key => 'k')",
		"select from parley.receive('Answering')", "select from parley.service_queues", "select from parley.conversation_endpoints",
		"select parley.fire_timers()",
	} {
		s.Exec(statement)
	}
	if statements < 100 {
		t.Fatalf("%d statements were explained", statements)
	}
	for _, plan := range compiled {
		t.Errorf("compiled was %s", sqltest.Clip(plan))
	}
}
