package sql_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestSendToSeveralConversations(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handles := []string{}
	for range 5 {
		handles = append(handles, b.dialog())
	}
	// Some have sent before, some have not.
	b.send(handles[1], request, "before")
	b.send(handles[3], request, "before")
	b.exec("select parley.send_to_all($1::uuid[], '//test/Request', 'all'::text)", handles)
	b.exec("select parley.send_to_all($1::uuid[], '//test/Note', '\\x00'::bytea)", handles)
	for i, handle := range handles {
		want := []string{"all", "\x00"}
		if i%2 == 1 {
			want = append([]string{"before"}, want...)
		}
		got := bodiesOf(b.messages("select * from parley.receive('Answering', conversation_handle => $1)", b.farHandle(handle)))
		if !slices.Equal(got, want) {
			t.Errorf("conversation %d received %q, want %q", i, got, want)
		}
	}
}

// If one conversation cannot send, nothing is sent (spec 4.2), wherever it stands in the list.
func TestSendToSeveralConversationsIsAllOrNothing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	good, _ := b.conversation()
	b.send(good, request, "before")
	fresh := b.dialog()
	ended, _ := b.conversation()
	b.end(ended)
	onDefault := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer')")
	target := b.farHandle(good)
	const unknown = "00000000-0000-0000-0000-000000000001"
	for number, handles := range map[int][]any{
		8429: {good, fresh, ended},
		8431: {onDefault, good, fresh},
		8434: {good, target, fresh},
		8435: {good, fresh, unknown},
		8441: {good, fresh, nil},
		8451: {good, fresh, good},
	} {
		for range handles {
			b.refuses(number, "select parley.send_to_all($1::uuid[], '//test/Request', 'x'::text)", handles)
			handles = append(handles[1:], handles[0])
		}
	}
	b.requireState(fresh, "SO")
	equal(b.session, 1, "select count(*) from parley.queue_contents('Answering') where message_body = 'before' and conversation_handle = $1", target)
	equal(b.session, 0, "select count(*) from parley.queue_contents('Answering') where message_body = 'x'")
}

func TestRefusedListNamesThePosition(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	one, two := b.dialog(), b.dialog()
	for number, handles := range map[int][]any{8441: {one, two, nil}, 8451: {one, two, two}} {
		err := b.refuses(number, "select parley.send_to_all($1::uuid[], '//test/Request', 'x'::text)", handles)
		if want := fmt.Sprintf("osition %d", map[int]int{8441: 3, 8451: 2}[number]); !strings.Contains(err.Detail, want) {
			t.Errorf("error %d: the detail %q does not say %q", number, err.Detail, want)
		}
	}
}

func TestSendToAMillionConversations(t *testing.T) {
	if os.Getenv("PARLEY_TEST_LONG") == "" {
		t.Skip("a million endpoints take half a minute to make: PARLEY_TEST_LONG=1 has them made")
	}
	t.Parallel()
	b := newWorld(t).unhurried()
	initiator, target := b.conversation()
	b.send(initiator, request, "x")
	b.receive("Answering")
	// Begun one by one they would take minutes: these are copies of one that has sent before.
	const columns = `
		from pg_attribute
		where attrelid = 'parley._p_endpoint'::regclass and attnum > 0 and not attisdropped and attname <> 'endpoint_id'`
	names := value[string](b, "select string_agg(attname, ', ' order by attnum)"+columns)
	copies := value[string](b, `
		select string_agg(case when attname in ('conversation_handle', 'conversation_id') then 'gen_random_uuid()' else 'e.' || attname end, ', ' order by attnum)`+columns)
	b.exec("insert into parley._p_endpoint ("+names+") select "+copies+" from parley._p_endpoint as e cross join generate_series(1, 999999) where e.conversation_handle = $1",
		initiator)
	b.exec("analyze parley._p_endpoint")

	const all = "array(select conversation_handle from parley._p_endpoint where is_initiator)"
	b.refuses(8451, "select parley.send_to_all("+all+" || $1::uuid, '//test/Request', 'x'::text)", initiator)
	b.refuses(8441, "select parley.send_to_all("+all+" || null::uuid, '//test/Request', 'x'::text)")
	equal(b, 0, "select count(*) from parley.queue_contents('Answering')")
	b.exec("select parley.send_to_all(" + all + ", '//test/Request', 'x'::text)")
	equal(b, 1000000, "select count(*) from parley.receive('Answering', conversation_handle => $1)", target)
}
