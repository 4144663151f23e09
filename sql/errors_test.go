package sql_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// refusal is a statement that the broker refuses.
type refusal struct {
	number    int
	because   string
	statement string
	// ordinary is set when an ordinary role executes it; else the administrator does.
	ordinary bool
}

// scene is what the refused statements are about, in the fixture of two services: conversations in each state, named in table c.
const scene = `
	create table public.c (name text primary key, handle uuid);
	grant select on public.c to public;
	create function public.h(name text) returns uuid language sql stable as 'select c.handle from public.c where c.name = $1';
	create function public.yes(body text) returns boolean language sql as 'select true';
	create function public.fit() returns void language sql as '';
	create procedure public.read() language sql as '';
	create procedure public.greedy(x integer) language sql as '';

	select parley.create_queue('Elsewhere');
	select parley.create_queue('Off', status => false, retention => true);
	select parley.create_service('//test/Elsewhere', 'Elsewhere', array['DEFAULT']);
	select parley.create_service('//test/Off', 'Off');
	select parley.create_broker_priority('Rank', '//test/Work', '//test/Asker');
	select parley.create_queue('Procedure', activation_procedure => 'public.read', execute_as => 'OWNER', max_queue_readers => 1);
	select parley.create_queue('Program');
	select parley.create_program_activation('Program', array['/opt/reader']);
	select parley.create_queue('Simple', kind => 'SIMPLE');
	select parley.create_queue('Event');
	select parley.create_service('//test/Listener', 'Event', array['http://schemas.microsoft.com/SQL/Notifications/PostEventNotification']);
	select parley.create_event_notification('activated', 'Event', 'QUEUE_ACTIVATION', '//test/Listener');
	select parley.create_contract('//test/Free', '{"//test/Note": "ANY"}');
	select parley.trust_peer(repeat('a1', 32), 'friend');
	select parley.trust_peer(repeat('b2', 32), 'enemy');
	select parley.revoke_peer('enemy');

	insert into public.c
	select n.name, parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', lifetime => 600)
	from unnest(array['new', 'talking', 'ended', 'failed', 'closed']) as n (name);
	insert into public.c select 'from off', parley.begin_dialog('//test/Off', '//test/Answerer');
	insert into public.c select 'elsewhere', parley.begin_dialog('//test/Elsewhere', '//test/Answerer');
	select parley.send(handle, '//test/Request', 'x') from public.c where name in ('talking', 'ended', 'failed', 'closed');
	insert into public.c
	select 'far ' || c.name, f.conversation_handle
	from public.c
	join parley.conversation_endpoints as e on e.conversation_handle = c.handle
	join parley.conversation_endpoints as f on f.conversation_id = e.conversation_id and not f.is_initiator::integer::boolean
	where c.name in ('talking', 'ended', 'failed', 'closed');
	select parley.end_conversation(public.h('ended'));
	select parley.end_conversation(public.h('far failed'), 1, 'no');
	select parley.end_conversation(public.h('closed'));
	select parley.end_conversation(public.h('far closed'));
`

// errorRow is a row of parley.errors, its texts as patterns of what an error of it says.
type errorRow struct {
	Number    int
	Situation string
	Message   string
	Detail    string
	Hint      string
}

// situation is what a row is named by.
type situation struct {
	number int
	name   string
}

// errorRows reads what the broker raises, by its own account. A rule of internal/sqlrules holds that each call of _p_raise has a row,
// and each row a call.
func errorRows(s session) []errorRow {
	s.Helper()
	found, err := s.db.Query(s.Context(), `
		select e.number, e.situation, e.message,
			'Service Broker error ' || e.number || '.' || coalesce(' ' || e.cause, '') as detail, e.remedy as hint
		from parley.errors as e
		where e.form = 'RAISED'`)
	if err != nil {
		s.Fatal(err)
	}
	rows, err := pgx.CollectRows(found, pgx.RowToStructByName[errorRow])
	if err != nil {
		s.Fatal(err)
	}
	if len(rows) < 100 {
		s.Fatalf("only %d situations: is this the table of errors?", len(rows))
	}
	return rows
}

// makes reports whether an error has the texts of the row, with any values in their places.
func (r errorRow) makes(e pgconn.PgError) bool {
	return e.Code == sqlState(r.Number) && fits(r.Message, e.Message) && fits(r.Detail, e.Detail) && fits(r.Hint, e.Hint)
}

var place = regexp.MustCompile(`%[0-9]+\\\$[sIL]`)

func fits(template, text string) bool {
	pattern := place.ReplaceAllString(regexp.QuoteMeta(template), "(?s:.*)")
	return regexp.MustCompile("^" + strings.ReplaceAll(pattern, "%%", "%") + "$").MatchString(text)
}

func refusals() []refusal {
	all := [][]refusal{
		definitionRefusals, activationRefusals, nameRefusals, conversationRefusals, readingRefusals, diagnosisRefusals, rightRefusals,
		switchRefusals, peerRefusals, routeRefusals, securityRefusals,
	}
	list := []refusal{}
	for _, some := range all {
		list = append(list, some...)
	}
	return list
}

// provokedElsewhere are situations that need more than a statement, with the file of the test that makes them.
var provokedElsewhere = map[situation]string{
	{229, "bound role"}:              "certificates_test.go",
	{2714, "address of a peer"}:      "pairing_refusals_test.go",
	{574, "transaction"}:             "wait_statement_test.go",
	{574, "transaction has written"}: "wait_statement_test.go",
	{2714, "certificate"}:            "certificates_test.go",
	{3716, "queue holds messages"}:   "simple_inspection_test.go",
	{3716, "messages wait"}:          "message_types_test.go",
	{3716, "used unseen"}:            "rights_names_test.go",
	{8402, "isolation"}:              "poison_test.go",
	{8402, "level"}:                  "diagnosis_test.go",
	{8426, "ended meanwhile"}:        "services_test.go",
	{9750, "unknown target"}:         "unknown_targets_test.go",
	{9785, "unknown target"}:         "unknown_targets_test.go",
	{8493, "certificate"}:            "certificates_test.go",
	{15297, "private key"}:           "certificates_test.go",
	{15297, "subject"}:               "certificates_test.go",
	{15517, "execute as"}:            "acting_as_test.go",
	{15517, "owner of the queue"}:    "acting_as_test.go",
	{28055, "dialog certificates"}:   "pairing_refusals_test.go",
}

// Each error carries its number in SQLSTATE and DETAIL, and a HINT that states what to do: the texts of a row of parley.errors.
// Each row is provoked.
func TestRefusalsCarryNumberAndRemedy(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(scene)
	ordinary := b.as(b.role("ordinary"))
	rows := errorRows(b.session)
	provoked := map[situation]bool{}
	for _, r := range refusals() {
		t.Run(strconv.Itoa(r.number)+" "+r.because, func(t *testing.T) {
			s := session{T: t, db: b.db}
			if r.ordinary {
				s.db = ordinary.db
			}
			refusal := s.refuses(r.number, r.statement)
			i := slices.IndexFunc(rows, func(row errorRow) bool { return row.makes(refusal) })
			if i < 0 {
				t.Fatalf("no row of parley.errors makes %s", describe(&refusal))
			}
			provoked[situation{rows[i].Number, rows[i].Situation}] = true
		})
	}
	for _, row := range rows {
		s := situation{row.Number, row.Situation}
		switch file := provokedElsewhere[s]; {
		case !provoked[s] && file == "":
			t.Errorf("nothing here provokes error %d, %q", s.number, s.name)
		case provoked[s] && file != "":
			t.Errorf("error %d, %q is provoked here: remove it from those that %s provokes", s.number, s.name, file)
		}
	}
}

func TestSQLStateOfErrorNumbers(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	for _, number := range values[int](b.session, "select distinct e.number from parley.errors as e") {
		equal(b.session, sqlState(number), "select parley.sqlstate_of($1)", number)
		equal(b.session, number, "select parley.error_number(parley.sqlstate_of($1))", number)
		equal(b.session, sqlState(number), "select distinct e.sqlstate from parley.errors as e where e.number = $1", number)
	}
}
