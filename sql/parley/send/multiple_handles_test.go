package send_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestSendToSeveralConversations(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handles := []string{}
	for range 5 {
		handles = append(handles, b.Dialog())
	}
	// Some have sent before, some have not.
	b.Send(handles[1], sqltest.Request, "before")
	b.Send(handles[3], sqltest.Request, "before")
	b.Exec("select parley.send_to_all($1::uuid[], '//test/Request', 'all'::text)", handles)
	b.Exec("select parley.send_to_all($1::uuid[], '//test/Note', '\\x00'::bytea)", handles)
	for i, handle := range handles {
		want := []string{"all", "\x00"}
		if i%2 == 1 {
			want = append([]string{"before"}, want...)
		}
		got := sqltest.BodiesOf(b.Messages("select * from parley.receive('Answering', conversation_handle => $1)", b.FarHandle(handle)))
		if !slices.Equal(got, want) {
			t.Errorf("conversation %d received %q, want %q", i, got, want)
		}
	}
}

// If one conversation cannot send, nothing is sent (spec 4.2), wherever it stands in the list.
func TestSendToSeveralConversationsIsAllOrNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	good, _ := b.Conversation()
	b.Send(good, sqltest.Request, "before")
	fresh := b.Dialog()
	ended, _ := b.Conversation()
	b.End(ended)
	onDefault := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer')")
	target := b.FarHandle(good)
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
			b.Refuses(number, "select parley.send_to_all($1::uuid[], '//test/Request', 'x'::text)", handles)
			handles = append(handles[1:], handles[0])
		}
	}
	b.RequireState(fresh, "SO")
	sqltest.Equal(b.Session, 1, "select count(*) from parley.queue_contents('Answering') where message_body = 'before' and conversation_handle = $1", target)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Answering') where message_body = 'x'")
}

func TestRefusedListNamesThePosition(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	one, two := b.Dialog(), b.Dialog()
	for number, handles := range map[int][]any{8441: {one, two, nil}, 8451: {one, two, two}} {
		err := b.Refuses(number, "select parley.send_to_all($1::uuid[], '//test/Request', 'x'::text)", handles)
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
	b := sqltest.NewWorld(t).Unhurried()
	initiator, target := b.Conversation()
	b.Send(initiator, sqltest.Request, "x")
	b.Receive("Answering")
	// Begun one by one they would take minutes: these are copies of one that has sent before.
	const columns = `
		from pg_attribute
		where attrelid = 'parley._p_endpoint'::regclass and attnum > 0 and not attisdropped and attname <> 'endpoint_id'`
	names := sqltest.Value[string](b, "select string_agg(attname, ', ' order by attnum)"+columns)
	copies := sqltest.Value[string](b, `
		select string_agg(case when attname in ('conversation_handle', 'conversation_id') then 'gen_random_uuid()' else 'e.' || attname end, ', ' order by attnum)`+columns)
	b.Exec("insert into parley._p_endpoint ("+names+") select "+copies+" from parley._p_endpoint as e cross join generate_series(1, 999999) where e.conversation_handle = $1",
		initiator)
	b.Exec("analyze parley._p_endpoint")

	const all = "array(select conversation_handle from parley._p_endpoint where is_initiator)"
	b.Refuses(8451, "select parley.send_to_all("+all+" || $1::uuid, '//test/Request', 'x'::text)", initiator)
	b.Refuses(8441, "select parley.send_to_all("+all+" || null::uuid, '//test/Request', 'x'::text)")
	sqltest.Equal(b, 0, "select count(*) from parley.queue_contents('Answering')")
	b.Exec("select parley.send_to_all(" + all + ", '//test/Request', 'x'::text)")
	sqltest.Equal(b, 1000000, "select count(*) from parley.receive('Answering', conversation_handle => $1)", target)
}
