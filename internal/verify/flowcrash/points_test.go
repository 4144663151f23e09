//go:build unix

package flowcrash_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// deals are orchestrations with a step of each kind: an atomic statement, one that is started, a timer, a worker, a question to another
// orchestration, which begins and ends in one step, an operator, a convoy, and a result that goes to a table.
const deals = `{
	"property schema": {"urn:crash": {"application": "Crash", "properties": {"Key": {}, "To": {}}}},
	"send port": {"Results": {"application": "Crash", "host": "Work", "adapter": "PostgreSQL", "address": "local", "retry_policy": "soon",
		"settings": {"table": "public.results", "columns": {"body": {"body": "text"}}}}},
	"orchestration": {
		"Deal": {"application": "Crash", "host": "Work", "retry_policy": "soon", "messages": {"deal": "any", "ask": "any", "answer": "any", "result": "any"},
			"variables": {"charged": "any"}, "correlations": {"of deal": ["urn:crash#Key"]}, "ports": {"all": {}, "out": {"send_port": "Results"}},
			"activations": [{"receive": "0", "filter": [[$TO deal"}]], "convoy": []}],
			"body": [
				{"receive": {"message": "deal", "activate": true, "filter": [[$TO deal"}]], "initialise": ["of deal"]}},
				{"scope": {"transaction": "atomic", "do": [{"query": {"sql": "insert into public.booked values ($1)", "arguments": ["deal.body()"]}}]}},
				{"start": {"orchestration": "Log", "parameters": {"line": "deal.body()"}}},
				{"delay": "50 milliseconds"},
				{"activity": {"name": "charge", "queue": "crash_work", "input": {"of": "deal.body()"}, "result": "charged", "timeout": "1 minute", "attempts": 3}},
				{"construct": {"message": "ask", "from": "deal", "properties": {"urn:crash#To": "'desk'"}}},
				{"send": {"message": "ask", "port": "all"}},
				{"receive": {"message": "answer", "follow": ["of deal"], "filter": [[$TO answer"}]]}},
				{"suspend": "an operator sees it"},
				{"construct": {"message": "result", "template": "<r>{{deal.body()}} {{answer.body()}}</r>"}},
				{"send": {"message": "result", "port": "out"}}
			]},
		"Desk": {"application": "Crash", "host": "Work", "retry_policy": "soon", "messages": {"ask": "any", "answer": "any"}, "ports": {"all": {}},
			"activations": [{"receive": "0", "filter": [[$TO desk"}]], "convoy": []}],
			"body": [
				{"receive": {"message": "ask", "activate": true, "filter": [[$TO desk"}]]}},
				{"construct": {"message": "answer", "from": "ask", "properties": {"urn:crash#To": "'answer'"}}},
				{"send": {"message": "answer", "port": "all"}}
			]},
		"Log": {"application": "Crash", "host": "Work", "retry_policy": "soon", "parameters": {"line": "text"},
			"body": [{"scope": {"transaction": "atomic", "do": [{"query": {"sql": "insert into public.logged values ($1)", "arguments": ["line"]}}]}}]},
		"Parts": {"application": "Crash", "host": "Work", "retry_policy": "soon", "messages": {"part": "any", "result": "any"},
			"variables": {"seen": "text", "parts": {"type": "integer", "value": 1}}, "correlations": {"of deal": ["urn:crash#Key"]},
			"ports": {"out": {"send_port": "Results"}},
			"activations": [{"receive": "0", "filter": [[$TO parts"}]], "convoy": ["urn:crash#Key"]}],
			"body": [
				{"receive": {"message": "part", "activate": true, "filter": [[$TO parts"}]], "initialise": ["of deal"]}},
				{"set": {"seen": "part.body()"}},
				{"while": {"when": "parts < 3", "do": [
					{"receive": {"message": "part", "filter": [[$TO parts"}]], "follow": ["of deal"]}},
					{"set": {"seen": "seen + ' ' + part.body()", "parts": "parts + 1"}}
				]}},
				{"construct": {"message": "result", "template": "<r>{{seen}}</r>"}},
				{"send": {"message": "result", "port": "out"}}
			]}
	}
}`

// gates stop transactions of nodes at points that are counted: in the middle of a statement that changes instances, messages or a table of
// the user, and at the commit. A transaction passes one of each kind. One whose point has a gate waits for the lock of that point, which the test holds.
const gates = `
	create table public.booked (deal text);
	create table public.logged (line text);
	create table public.results (body text);
	create table public.worked (of text);
	create sequence public.point;
	create table public.gate (point bigint);
	select parley.create_queue('crash_work', kind => 'SIMPLE');
	create function public.pass() returns trigger language plpgsql as $$
	declare
		v_seen constant text := tg_argv[0] || pg_current_xact_id();
		v_point bigint;
	begin
		if current_setting('application_name') like 'points-%' and coalesce(current_setting('crash.' || tg_argv[0], true), '') <> v_seen then
			perform set_config('crash.' || tg_argv[0], v_seen, true);
			v_point := nextval('public.point');
			if exists (select from public.gate where point = v_point) then
				perform pg_advisory_xact_lock_shared(4711, v_point::integer);
			end if;
		end if;
		return null;
	end $$;
	create constraint trigger at_commit after insert or update or delete on parley_flow._p_instance deferrable initially deferred
		for each row execute function public.pass('commit');
	create constraint trigger at_commit after insert on parley_flow._p_message deferrable initially deferred
		for each row execute function public.pass('commit');
	create trigger in_step after insert or update or delete on parley_flow._p_instance for each row execute function public.pass('step');
	create trigger in_step after insert on public.booked for each row execute function public.pass('statement');
	create trigger in_step after insert on public.logged for each row execute function public.pass('statement');
	create trigger in_step after insert on public.results for each row execute function public.pass('statement')`

// points is a world in which orchestrations are crashed at each persistence point.
type points struct {
	*world
	test  *pgx.Conn // which holds the locks of gates
	deals int
}

// A node is killed by signal 9 at points of the transactions of steps, before, in and behind their commit: where it dies in it, the server
// goes on with what it has got, or has not. Each deal happens once, whatever the point was.
func (w *world) crashAtEachPoint() {
	w.Helper()
	conn := w.connect()
	if _, err := conn.Exec(w.Context(), gates); err != nil {
		w.Fatal(err)
	}
	w.apply(conn, strings.ReplaceAll(deals, "$TO ", `{"property": "urn:crash#To", "operator": "=", "value": "`))
	p := &points{world: w, test: conn}
	defer func() { _ = p.test.Close(context.Background()) }()
	for _, n := range w.nodes {
		n.kill()
	}
	w.nodes = nil
	for _, name := range []string{"first", "second"} {
		n := newNode(w.T, name, "--dsn", w.server.DSN("flow")+"&application_name=points-"+name, "--host", "Work", "--allow-folder", w.folder)
		n.start(w)
		w.nodes = append(w.nodes, n)
	}
	all := p.round(nil)
	w.Logf("a deal passes %d points", all)
	if all < 15 {
		w.Fatalf("a deal passes %d points, fewer than it has steps", all)
	}
	if os.Getenv("PARLEY_TEST_LONG") == "" {
		p.round(map[int64]string{2: "goes on", all / 3: "rolls back", all / 2: "goes on", all - 2: "rolls back"})
		return
	}
	for point := range all {
		for _, how := range []string{"goes on", "rolls back", "server"} {
			p.round(map[int64]string{point + 1: how})
		}
	}
	for range 20 {
		many := map[int64]string{}
		for range 6 {
			many[w.random.Int64N(all)+1] = []string{"goes on", "rolls back", "server"}[w.random.IntN(3)]
		}
		p.round(many)
	}
}

// lock closes the gates that are given.
func (p *points) lock(at map[int64]string) {
	p.Helper()
	for point := range at {
		p.exec("select pg_advisory_lock(4711, $1::integer)", point)
	}
}

// round makes a deal and kills at the gates that are given. It gives how many points were passed.
func (p *points) round(at map[int64]string) int64 {
	p.Helper()
	isCounted := true // of a server that crashed the sequence goes on behind what it has logged
	for _, how := range at {
		isCounted = isCounted && (how != "server" || len(at) == 1)
	}
	p.deals++
	deal := fmt.Sprintf("deal %d", p.deals)
	p.exec("select pg_advisory_unlock_all()")
	p.exec("truncate public.gate")
	p.exec("alter sequence public.point restart")
	p.lock(at)
	for point := range at {
		p.exec("insert into public.gate values ($1)", point)
	}
	publish := func(to, body string) {
		_, err := p.test.Exec(p.Context(), "select parley_flow.publish($1::text, jsonb_build_object('urn:crash#Key', $2::text, 'urn:crash#To', $3::text))",
			body, deal, to)
		if err != nil {
			p.Fatal(err)
		}
	}
	publish("deal", deal)
	for n := range 3 {
		publish("parts", strconv.Itoa(n))
	}
	left := len(at)
	for deadline := time.Now().Add(parleytest.Patience); !p.isOver(deal); {
		if time.Now().After(deadline) {
			p.Fatalf("%s with gates %v has not ended: %s", deal, at, p.state())
		}
		if p.crash(at) {
			left--
		}
		<-time.After(20 * time.Millisecond)
	}
	p.judge(deal)
	var passed int64
	if err := p.test.QueryRow(p.Context(), "select last_value from public.point").Scan(&passed); err != nil {
		p.Fatal(err)
	}
	if left > 0 && isCounted {
		p.Errorf("%s: %d of the gates %v were not reached, with %d points", deal, left, at, passed)
	}
	return passed
}

// crash kills the node whose transaction waits at a gate, if one does.
func (p *points) crash(at map[int64]string) bool {
	p.Helper()
	var pid int
	var name string
	var point int64
	err := p.test.QueryRow(p.Context(), `select a.pid, a.application_name, l.objid::bigint from pg_locks as l join pg_stat_activity as a on a.pid = l.pid
		where l.locktype = 'advisory' and l.classid = 4711 and not l.granted limit 1`).Scan(&pid, &name, &point)
	if err != nil {
		return false // nobody waits
	}
	how := at[point]
	delete(at, point)
	for _, n := range p.nodes {
		if "points-"+n.name == name {
			n.kill()
			defer n.start(p)
		}
	}
	p.Logf("killed %s at point %d: its transaction %s", name, point, how)
	switch how {
	case "server":
		p.fail("server")
		_ = p.test.Close(context.Background())
		p.test = p.connect()
		p.lock(at)
	case "rolls back":
		p.exec("select pg_terminate_backend($1)", pid)
	default:
		p.exec("select pg_advisory_unlock(4711, $1::integer)", point)
	}
	parleytest.Until(p.T, "the transaction has ended", func() bool {
		var isThere bool
		err := p.test.QueryRow(p.Context(), "select exists (select from pg_stat_activity where pid = $1)", pid).Scan(&isThere)
		return err == nil && !isThere
	})
	return true
}

func (p *points) exec(statement string, arguments ...any) {
	p.Helper()
	if _, err := p.test.Exec(p.Context(), statement, arguments...); err != nil {
		p.Fatal(err)
	}
}

// isOver does what workers and operators do, and reports whether a deal and its parts have ended.
func (p *points) isOver(deal string) bool {
	p.Helper()
	var isOver bool
	err := p.test.QueryRow(p.Context(), `
		with work as materialized (select convert_from(body, 'UTF8')::jsonb as body from parley.take('crash_work', 1)),
		worked as (insert into public.worked select body -> 'input' ->> 'of' from work returning of),
		told as materialized (select parley_flow.complete_activity(body ->> 'activity', '1') from work)
		select count(*) filter (where r.body like '%'||$1||' '||$1||'%') > 0 and (select count(*) from public.results) >= $2
		from public.results as r, (select count(*) from told) as t, (select count(*) from worked) as w`, deal, 2*p.deals).Scan(&isOver)
	if err != nil {
		p.Fatal(err)
	}
	p.exec(`select parley_flow.resume_instances('{}')`) // also those of which nodes have died three times
	return isOver
}

func (p *points) state() (state string) {
	err := p.test.QueryRow(p.Context(), `select coalesce((select string_agg(format('%s %s %s', i.send_port_id, i.status, to_jsonb(i) - 'state'), '; ')
			from parley_flow._p_instance as i), 'no instance') || coalesce((select string_agg(format('; %s', to_jsonb(s)), '') from parley_flow._p_suspended as s), '')`).
		Scan(&state)
	if err != nil {
		return err.Error()
	}
	return state
}

// judge holds that a deal has happened once, and that nothing is left of it.
func (p *points) judge(deal string) {
	p.Helper()
	const left = `select concat_ws(', ', 'messages ' || nullif((select count(*) from parley_flow._p_message), 0),
		'instances ' || nullif((select count(*) from parley_flow._p_instance), 0), 'waits ' || nullif((select count(*) from parley_flow._p_instance_wait), 0),
		'timers ' || nullif((select count(*) from parley_flow._p_instance_timer), 0), 'events ' || nullif((select count(*) from parley_flow._p_instance_event), 0),
		'activities ' || nullif((select count(*) from parley_flow._p_instance_activity), 0), 'holds ' || nullif((select count(*) from parley_flow._p_instance_hold), 0))`
	found := ""
	for deadline := time.Now().Add(parleytest.Patience); ; <-time.After(20 * time.Millisecond) {
		if err := p.test.QueryRow(p.Context(), left).Scan(&found); err != nil {
			p.Fatal(err)
		}
		if found == "" || time.Now().After(deadline) {
			break
		}
	}
	if found != "" {
		p.Errorf("of %s are left %s", deal, found)
	}
	var counts string
	err := p.test.QueryRow(p.Context(), `select format('%s %s %s %s %s', (select count(*) from public.booked where deal = $1),
		(select count(*) from public.logged where line = $1), (select count(*) from public.worked where of = $1),
		(select count(*) from public.results where body = '<r>'||$1||' '||$1||'</r>'), (select count(*) from public.results where body = '<r>0 1 2</r>'))`, deal).
		Scan(&counts)
	if want := fmt.Sprintf("1 1 1 1 %d", p.deals); err != nil || counts != want {
		p.Errorf("%s was booked, logged, worked on, ended and its parts collected %s times, not %s (%v)", deal, counts, want, err)
	}
}
