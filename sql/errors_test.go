package sql_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/parley-broker/parley/sql"
)

// refusal is a statement that the broker refuses.
type refusal struct {
	number    int
	because   string
	statement string
	// ordinary is set when an ordinary role says it; else the administrator does.
	ordinary bool
}

// scene is what the refused statements talk about, in the world of two services: conversations in each state, named in table c.
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

var raised = regexp.MustCompile(`_p_raise\(\s*(\d+),`)

// raisedNumbers gives each number that the schema can raise.
func raisedNumbers(t *testing.T) map[int]bool {
	t.Helper()
	files, err := sql.Manifest(sql.Files)
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[int]bool{}
	for _, file := range files {
		text, err := sql.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range raised.FindAllStringSubmatch(string(text), -1) {
			number, err := strconv.Atoi(found[1])
			if err != nil {
				t.Fatal(err)
			}
			numbers[number] = true
		}
	}
	if len(numbers) < 40 {
		t.Fatalf("only %d numbers found in the schema: do they look otherwise now?", len(numbers))
	}
	return numbers
}

func refusals() []refusal {
	all := [][]refusal{
		definitionRefusals, activationRefusals, nameRefusals, conversationRefusals, readingRefusals, rightRefusals, switchRefusals,
		peerRefusals, routeRefusals, securityRefusals,
	}
	list := []refusal{}
	for _, some := range all {
		list = append(list, some...)
	}
	return list
}

func TestEveryErrorNumberHasATest(t *testing.T) {
	t.Parallel()
	numbers := raisedNumbers(t)
	for _, r := range refusals() {
		delete(numbers, r.number)
	}
	// Needs roles that are members of one another: acting_as_test.go.
	delete(numbers, 15517)
	for number := range numbers {
		t.Errorf("nothing here provokes error %d", number)
	}
}

// Each error carries its number in SQLSTATE and DETAIL, and a HINT that says what to do.
func TestRefusalsCarryNumberAndRemedy(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(scene)
	ordinary := b.as(b.role("ordinary"))
	for _, r := range refusals() {
		t.Run(strconv.Itoa(r.number)+" "+r.because, func(t *testing.T) {
			s := session{T: t, db: b.db}
			if r.ordinary {
				s.db = ordinary.db
			}
			s.refuses(r.number, r.statement)
		})
	}
}

func TestSQLStateOfErrorNumbers(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	for number := range raisedNumbers(t) {
		equal(b.session, sqlState(number), "select parley.sqlstate_of($1)", number)
		equal(b.session, number, "select parley.error_number(parley.sqlstate_of($1))", number)
	}
}
