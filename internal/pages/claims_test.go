package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/sql"
)

// claimScene is the scene against which the claims are judged.
const claimScene = `
	select parley.create_queue('q');
	select parley.create_service('s', 'q', array['DEFAULT']);
	select parley.create_queue('inbox');
	select parley.create_service('asker', 'inbox');
	create table public.c as select parley.begin_dialog('asker', 's') as handle;
	select parley.send(c.handle, body => 'zero') from public.c;
	create function public.h() returns uuid language sql as 'select handle from public.c';
	create function public.number_of(statement text) returns text language plpgsql as $$
	begin
		execute statement;
		return 'no error';
	exception
		when others then
			return coalesce(substring(sqlstate from '^SB...$'), sqlstate || ' ' || sqlerrm);
	end $$;
	create function public.holds_after(statement text, query text) returns boolean language plpgsql as $$
	declare
		holds boolean;
	begin
		execute statement;
		execute query into holds;
		return holds;
	end $$;
	create function public.fails(number integer, statement text) returns boolean language sql
	return public.number_of(statement) = parley.sqlstate_of(number);
`

// claim is a sentence of a page with a query.
type claim struct{ page, sentence, query string }

// claims are sentences of the documentation, each with a query that is true as long as the sentence is.
var claims = []claim{
	{"reference/differences", "It [takes no group lock](#sending)", `
		with sent as materialized (select parley.send(public.h(), body => 'x')), waited as materialized (select count(*) as n from sent)
		select w.n = 1 and not exists (
			select from pg_locks as l
			where l.pid = pg_backend_pid() and l.relation = 'parley._p_conversation_group'::regclass and l.mode <> 'AccessShareLock'
		)
		from waited as w`},
	{"reference/differences", "The [conversation is set aside](#poison-messages)", `
		select poison_action = 'SET_ASIDE' and poison_rollbacks = 5 and is_poison_message_handling_enabled from parley.service_queues where name = 'q'`},
	{"reference/differences", "It [ends by itself after 30 minutes](#ending)", `select abandoned_target_seconds = 1800 from parley.databases`},
	{"reference/differences", "**A closed target is remembered for 30 minutes,**", `select tombstone_seconds = 1800 from parley._p_broker`},
	{"reference/differences", "8429 is `SB6I5`", `select parley.sqlstate_of(8429) = 'SB6I5' and parley.error_number('SB6I5') = 8429`},
	{"guides/migration", "and is null for errors of PostgreSQL", `select parley.error_number('23505') is null`},
	{"reference/differences", "`select parley.end_abandoned_after(2147483647);`", `
		select public.holds_after('select parley.end_abandoned_after(2147483647)', 'select abandoned_target_seconds = 2147483647 from parley.databases')`},
	{"reference/differences", "`select parley.alter_queue('queue', poison_action => 'DISABLE_QUEUE');`", `
		select public.holds_after('select parley.alter_queue(''q'', poison_action => ''DISABLE_QUEUE'')',
			'select poison_action = ''DISABLE_QUEUE'' and poison_rollbacks = 5 from parley.service_queues where name = ''q''')`},
	{"reference/differences", "Always false: rights are those of roles", `
		select not is_trustworthy_on and not is_master_key_encrypted_by_server from parley.databases`},
	{"reference/differences", "are there, and empty", `
		select not exists (select from parley.server_event_notifications)
			and not exists (select from parley.message_type_xml_schema_collection_usages)`},
	{"reference/differences", "**Error messages are XML in UTF-8, without a byte-order mark.**", `
		with ended as materialized (select parley.end_conversation(public.h(), 7, 'é') as done)
		select convert_from(m.message_body, 'UTF8') like '<%é%' and get_byte(m.message_body, 0) = ascii('<')
		from (select count(done) as n from ended) as e
		cross join lateral parley.receive('q', top => (e.n * 10)::integer) as m
		where m.message_type_name like '%/Error'`},
	{"reference/differences", "They count from 0 without gaps in each direction of a conversation", `
		select message_sequence_number = 0 from parley.receive('q', top => 1)`},
	{"reference/differences", "Error and DialogTimer messages stand outside the sequence and have -1.", `
		with timer as materialized (select parley.begin_conversation_timer(public.h(), 0) as done)
		select m.message_sequence_number = -1
		from (select count(done) as n from timer) as t
		cross join lateral parley.receive('inbox', top => t.n::integer) as m`},
	{"reference/differences", "**`top => 0` returns nothing.**", `select not exists (select from parley.receive('q', top => 0))`},
	{"reference/differences", "Here 1 is a message that waits, and 0 one that was\nreceived", `
		select p.status = 1 and r.status = 0 from parley.peek('q', 1) as p cross join lateral parley.receive('q', top => p.status) as r`},
	{"reference/differences", "and null in what `receive` returns", `
		select p.message_id is not null and r.message_id is null
		from parley.peek('q', 1) as p cross join lateral parley.receive('q', top => p.status) as r`},
	{"reference/differences", "**`queuing_order` is a position in steps of 1024.**", `select queuing_order % 1024 = 0 from parley.peek('q', 1)`},
	{"reference/differences", "**`get_conversation_group` returns null when there is nothing.**", `select parley.get_conversation_group('inbox') is null`},
	{"reference/differences", "**A null body is no body.**", `
		select public.number_of('select parley.send(public.h(), ''DEFAULT'', null::bytea)') = 'no error'`},
	{"reference/differences", "**A message to oneself can be received before the commit,**", `
		with sent as materialized (select parley.send(public.h(), body => 'mine') as done)
		select exists (
			select from (select count(done) as n from sent) as e
			cross join lateral parley.receive('q', top => (10 + e.n)::integer) as m where m.message_body = 'mine'
		)`},
	{"reference/differences", "So `first_out_of_order_sequence` and its kin are always -1", `
		select bool_and(first_out_of_order_sequence = -1 and last_out_of_order_sequence = -1 and last_out_of_order_frag = -1)
		from parley.conversation_endpoints`},
	{"reference/differences", "here what is no GUID is refused with 8413", `
		select public.fails(8413, 'select parley.begin_dialog(''asker'', ''s'', broker_instance => ''here'')')`},
	{"reference/differences", "**EndDialog, Error and DialogTimer cannot stand in a contract,** which gets 9663, nor be sent, which gets 8431.", `
		select bool_and(
			public.fails(9663, format('select parley.create_contract(''//new'', array[%L])', t.name))
			and public.fails(8431, format('select parley.send(public.h(), %L, ''x'')', t.name))
		)
		from parley.service_message_types as t where t.name similar to '%/(EndDialog|Error|DialogTimer)'`},
	{"reference/differences", "Without a function it\nis refused", `select public.fails(8402, 'select parley.create_message_type(''//new'', ''VALID_XML'')')`},
	{"reference/differences", "they are refused with 8430, XML with 9615 and 9616", `
		select parley._p_validated_bytes_max() = 16 * 1024 * 1024
			and exists (select from parley.errors as e where e.number = 8430 and e.situation = 'too long')
			and exists (select from parley.errors as e where e.number = 9616 and e.situation = 'too long')`},
	{"reference/differences", "**There is no `DENY`.**", `select to_regproc('parley.deny') is null`},
	{"reference/differences", "It is `dbo` when none is given", `select schema_name = 'dbo' from parley.service_queues where name = 'q'`},
	{"reference/differences", "`principal_id` is the oid of a role", `
		select exists (select from pg_roles as r where r.oid = s.principal_id) from parley.services as s where s.name = 's'`},
	{"reference/differences", "`conversation_endpoints` has four columns of ours at its end.", `
		select array_agg(a.attname::text order by a.attnum) = '{begun_at,state_since,service_name,service_contract_name}'
		from pg_attribute as a where a.attrelid = 'parley.conversation_endpoints'::regclass and a.attnum > 28`},
	{"reference/differences", "`REBUILD`, `REORGANIZE` and `MOVE TO` do not exist.", `
		select not exists (select from pg_proc where pronamespace = 'parley'::regnamespace and proname ~ 'rebuild|reorganize')`},
	{"reference/differences", "| Event notifications other than QUEUE_ACTIVATION and BROKER_QUEUE_DISABLED, query notifications |", `
		select public.number_of('select parley.create_event_notification(''n'', ''q'', ''CREATE_TABLE'', ''s'')') <> 'no error'`},
	{"reference/differences", "**The catalog shows an object to whoever holds any permission on it,**", `
		select exists (select from pg_class where oid = 'parley.services'::regclass and 'security_barrier=true' = any (reloptions))`},
	{"concepts/broker", "30 minutes (`parley.end_abandoned_after`) after the initiator has ended", `select abandoned_target_seconds = 1800 from parley.databases`},
	{"concepts/broker", "| 8429 | nothing | 8427 |", `
		select public.fails(8427, format('select parley.end_conversation(%L); select parley.end_conversation(%L)', public.h(), public.h()))`},
	{"internals/message-store", "a row's position is 1024 times a number of the sequence", `select min(position) % 1024 = 0 from parley._p_message`},
	{"internals/message-store", "All waiting messages of all queues stand in one table, `parley._p_message`,", `
		select count(*) = 1 from parley._p_message as m
		join parley._p_queue as q on q.name = 'q' and m.lane between q.queue_id * 16 + 1 and q.queue_id * 16 + 10`},
	{"internals/architecture", "So there are no temporary tables", `
		select not exists (select from pg_proc where pronamespace = 'parley'::regnamespace and prosrc ~* 'create (local )?temp')`},
	{"internals/lock-order", "No advisory lock of a session exists", `
		select count(*) = 0 from pg_proc where pronamespace = 'parley'::regnamespace and prosrc ~ 'pg_(try_)?advisory_lock'`},
	{"internals/architecture", "no C, no superuser", `
		select not exists (
			select from pg_proc as p join pg_language as l on l.oid = p.prolang
			where p.pronamespace = 'parley'::regnamespace and l.lanname not in ('sql', 'plpgsql')
		)`},
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", filepath.FromSlash(name)+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func words(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// Each statement of a page about the broker is so; a sentence that is changed is to be changed here, too.
func TestClaimsOfTheDocumentationHold(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	if _, err := pool.Exec(t.Context(), claimScene); err != nil {
		t.Fatal(err)
	}
	for _, c := range slices.Concat(claims, pageClaims) {
		if !strings.Contains(words(page(t, c.page)), words(c.sentence)) {
			t.Errorf("docs/%s.md no longer says %q", c.page, c.sentence)
			continue
		}
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var holds *bool
		err = tx.QueryRow(t.Context(), c.query).Scan(&holds)
		if err != nil || holds == nil || !*holds {
			t.Errorf("docs/%s.md says %q, which is not so (%v)", c.page, c.sentence, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

var named = regexp.MustCompile(`\b(?:parley\.)?(_p_[a-z0-9_]+)|\b(?:` + strings.Join(sql.OwnSchemas(), "|") + `)\.([a-z][a-z0-9_]*)\b`)

// Each name of the schema on a page exists.
func TestTheDocumentationNamesWhatExists(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	rows, err := pool.Query(t.Context(), `
		with ours as (select oid from pg_namespace where nspname = any ($1))
		select proname::text from pg_proc where pronamespace in (select oid from ours)
		union select relname::text from pg_class where relnamespace in (select oid from ours)
		union select typname::text from pg_type where typnamespace in (select oid from ours)`, sql.OwnSchemas())
	if err != nil {
		t.Fatal(err)
	}
	exist, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "*", "*.md"))
	if err != nil || len(files) < 40 {
		t.Fatalf("found the pages %q (%v)", files, err)
	}
	for _, file := range files {
		if filepath.Base(file) == "flow.md" && !slices.Contains(sql.OwnSchemas(), "parley_flow") {
			continue // the page is of a schema that is not there yet
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			for _, found := range named.FindAllStringSubmatch(line, -1) {
				name := found[1] + found[2]
				if !slices.Contains(exist, name) && !isNoObject(name) {
					t.Errorf("%s:%d names %s, which the schema does not have", filepath.Base(file), n+1, name)
				}
			}
		}
	}
}

// isNoObject distinguishes names of files, packages and settings from those of the schema.
func isNoObject(name string) bool {
	return slices.Contains([]string{
		"go", "service", "socket", "md", "yml", "yaml", "json", "svg", "log", "key", "conf", "example", "rules", "env", "v1", "reader", "notify",
		"allow_unknown_targets", "tsql",
	}, name)
}

var tableRow = regexp.MustCompile(`(?m)^\| (.+) \| (.+) \|$`)

// Each function that the table of the migration page puts beside a statement exists.
func TestTheMigrationTableNamesFunctions(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	quoted := regexp.MustCompile("`([a-z_]+)(?:\\(|`)")
	count := 0
	for _, row := range tableRow.FindAllStringSubmatch(page(t, "guides/migration"), -1) {
		if strings.Contains(row[1], "SELECT *") || strings.Contains(row[2], "parley ") {
			continue
		}
		for _, name := range quoted.FindAllStringSubmatch(row[2], -1) {
			count++
			var exists bool
			err := pool.QueryRow(t.Context(), fmt.Sprintf(
				"select exists (select from pg_proc where pronamespace = 'parley'::regnamespace and proname = '%s')", name[1])).Scan(&exists)
			if err != nil || !exists {
				t.Errorf("the migration page names %s, which does not exist (%v)", name[1], err)
			}
		}
	}
	if count < 30 {
		t.Errorf("the table names %d functions", count)
	}
}
