package rights_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// hostileNames are names that break what is put together carelessly.
var hostileNames = []string{
	"it's", `say "hello"`, `back\slash`, "100% %s %I %L %1$s", "[brackets]", "a[b", "]", "{braces}", "$1", "$$", "$body$", "; drop schema parley cascade; --",
	"/* comment", "new\nline", "tab\t", " ", "null", "NULL", "select", "Grüße", "日本語", "𝄞", "e\u0301", "\u202eright to left", "\ufeff", "a.b", "a..b", ".", "*",
	"//example.com/path?query=1&b=2#part", "<tag attribute='x'>&amp;</tag>", "_p_message", "PUBLIC", "#temporary", "\x7f", "\x01",
}

// Each object by such a name is created, used, shown and dropped again.
func TestObjectsMayHaveHostileNames(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	for _, name := range hostileNames {
		t.Run(name, func(t *testing.T) {
			liveUnder(sqltest.Session{T: t, DB: b.DB}, name)
		})
	}
}

func liveUnder(s sqltest.Session, name string) {
	s.Helper()
	queue := "x." + sqltest.Value[string](s, "select format('[%s]', replace('q ' || $1, ']', ']]'))", name)
	s.Exec("select parley.create_message_type($1)", name)
	s.Exec("select parley.create_contract($1, jsonb_build_object($1::text, 'ANY'))", name)
	s.Exec("select parley.create_queue($1)", queue)
	s.Exec("select parley.create_service($1, $2, array[$1])", name, queue)
	s.Exec("select parley.create_broker_priority($1, $1, $1, $1, 7)", name)
	s.Exec("select parley.grant('SEND', 'service', $1, 'PUBLIC')", name)
	handle := sqltest.Value[string](s, "select parley.begin_dialog($1, $1, $1)", name)
	s.Send(handle, name, name)
	got := s.Receive(queue)
	if len(got) != 1 || string(got[0].MessageBody) != name || got[0].ServiceName != name || got[0].ServiceContractName != name ||
		got[0].MessageTypeName != name || got[0].Priority != 7 {
		s.Fatalf("received %+v", got)
	}
	s.EndWithError(got[0].ConversationHandle, 1, name)
	s.RequireError(queue, 1)
	s.Refuses(8429, "select parley.send($1::uuid, $2, 'x')", handle, name)
	s.End(handle)
	sqltest.Equal(s, name, "select object_name from parley.permissions")
	s.Exec("select parley.drop_broker_priority($1)", name)
	s.Exec("select parley.drop_service($1)", name)
	s.Exec("select parley.drop_queue($1)", queue)
	s.Exec("select parley.drop_contract($1)", name)
	s.Exec("select parley.drop_message_type($1)", name)
}

// A statement under such a name must be refused for the right reason.
func TestErrorsMayBearHostileNames(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	for _, name := range hostileNames {
		b.Refuses(15151, "select parley.drop_service($1)", name)
		b.Refuses(15151, "select parley.drop_contract($1)", name)
		b.Refuses(15151, "select parley.drop_message_type($1)", name)
		b.Refuses(15151, "select parley.drop_broker_priority($1)", name)
		b.Refuses(208, "select parley.receive('[' || replace('q' || $1, ']', ']]') || ']')", name)
		b.Refuses(8423, "select parley.begin_dialog($1, 'x')", name)
		b.Refuses(8425, "select parley.begin_dialog('//test/Asker', 'x', $1)", name)
		b.Refuses(8428, "select parley.send($1::uuid, $2, 'x')", initiator, name)
		b.Refuses(15151, "select parley.grant($1, 'service', '//test/Asker', 'PUBLIC')", name)
		b.Refuses(15151, "select parley.grant('SEND', $1, '//test/Asker', 'PUBLIC')", name)
		if name != "PUBLIC" {
			b.Refuses(15151, "select parley.grant('SEND', 'service', '//test/Asker', $1)", name)
		}
		b.Refuses(8402, "select parley.create_message_type('//m', $1)", name)
		b.Refuses(8413, "select parley.begin_dialog('//test/Asker', 'x', broker_instance => $1)", name)
	}
}

func TestHostileBodiesArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer')")
	bodies := [][]byte{{0}, {0, 0, 0}, {0xff, 0xfe}, []byte(`\x00`), []byte(`\\000`), bytes.Repeat([]byte{0}, 9000), []byte("{null}"), []byte("NULL"), {0xef, 0xbb, 0xbf}}
	for _, name := range hostileNames {
		bodies = append(bodies, []byte(name))
	}
	for _, body := range bodies {
		b.Exec("select parley.send($1::uuid, 'DEFAULT', $2::bytea)", handle, body)
	}
	b.Exec("select parley.send_batch_binary($1::uuid, 'DEFAULT', $2::bytea[])", handle, bodies)
	got := b.Receive("Answering")
	if len(got) != 2*len(bodies) {
		t.Fatalf("received %d", len(got))
	}
	for i, m := range got {
		if !bytes.Equal(m.MessageBody, bodies[i%len(bodies)]) {
			t.Errorf("sent %q, received %q", bodies[i%len(bodies)], m.MessageBody)
		}
	}
}

// Text with a NUL cannot be written in PostgreSQL: it is refused there, and nothing is sent.
func TestTextWithNULIsRefused(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	if _, err := b.DB.Exec(t.Context(), "select parley.send($1::uuid, '//test/Request', $2::text)", handle, "a\x00b"); err == nil {
		t.Error("the text was sent")
	}
	b.RequireState(handle, "SO")
}

func TestBodyOfAHundredMegabytes(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t).Unhurried()
	handle := sqltest.Value[string](b, "select parley.begin_dialog('//test/Asker', '//test/Answerer')")
	b.Exec("create table public.large as select decode(repeat(md5('x') || 'fe00', 5555556), 'hex') as body")
	b.Send(handle, "DEFAULT", "before")
	b.Exec("select parley.send($1::uuid, 'DEFAULT', l.body) from public.large as l", handle)
	b.Send(handle, "DEFAULT", "behind")
	sqltest.Equal(b, 1, "select count(*) from parley.receive('Answering', 1)")
	sqltest.Equal(b, "100000008 t", `
		select format('%s %s', octet_length(m.message_body), m.message_body = l.body) from parley.receive('Answering', 1) as m, public.large as l`)
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"behind"}) {
		t.Errorf("received %q", got)
	}
}
