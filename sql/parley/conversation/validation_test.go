package conversation_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/parley-broker/parley/internal/sqltest"
)

// utf16Body is text as T-SQL programs send it: UTF-16 with a byte order mark.
func utf16Body(order binary.AppendByteOrder, text string) []byte {
	body := order.AppendUint16(nil, 0xfeff)
	for _, unit := range utf16.Encode([]rune(text)) {
		body = order.AppendUint16(body, unit)
	}
	return body
}

type validationCase struct {
	name string
	body []byte
	good bool
}

// Bodies are checked when they are delivered: SEND never fails for a bad one. It is thrown away, and the sender gets an Error.
func TestBodiesAreValidatedOnDelivery(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(`create function public.is_even(body bytea) returns boolean language sql as 'select octet_length(body) % 2 = 0'`)
	b.Exec(`create function public.is_nothing(body bytea) returns boolean language sql as 'select body is null'`)
	b.Exec(`create function public.is_number(body bytea) returns boolean language sql as $$ select convert_from(body, 'UTF8')::int is not null $$`)
	for _, v := range []struct {
		validation string
		code       int
		cases      []validationCase
	}{
		{"'NONE'", 0, []validationCase{
			{"nothing", nil, true}, {"empty", []byte{}, true}, {"any bytes", []byte{0, 255, 0}, true},
		}},
		{"'EMPTY'", -8430, []validationCase{
			{"nothing", nil, true}, {"empty", []byte{}, true}, {"a byte", []byte{0}, false},
		}},
		{"'WELL_FORMED_XML'", -9615, []validationCase{
			{"nothing", nil, true},
			{"empty", []byte{}, true},
			{"blanks", sqltest.Text(" "), true},
			{"an element", sqltest.Text("<a/>"), true},
			{"open element", sqltest.Text("<a>"), false},
			{"two roots", sqltest.Text("<a/><b/>"), true},
			{"a comment and text", sqltest.Text("<!-- note -->words &amp; more"), true},
			{"text with half a reference", sqltest.Text("words & more"), false},
			{"a root that is closed twice", sqltest.Text("<a/></a>"), false},
			{"UTF-8 with mark", sqltest.Text("\ufeff<a>é</a>"), true},
			{"UTF-16 little", utf16Body(binary.LittleEndian, "<a>é𝄞</a>"), true},
			{"UTF-16 big", utf16Body(binary.BigEndian, "<a>é𝄞</a>"), true},
			{"no characters", []byte{0x3c, 0x61, 0x2f, 0x3e, 0xc3}, false},
			{"NUL", sqltest.Text("<a>\x00</a>"), false},
		}},
		{"'VALID_XML', validation_function => 'public.is_even(bytea)'", -9615, []validationCase{
			{"good", sqltest.Text("<a/>"), true},
			{"function says no", sqltest.Text("<aa/>"), false},
			{"no XML", sqltest.Text("<a>>"), false},
			{"nothing, and the function does not say yes", nil, false},
		}},
		{"'VALID_XML', validation_function => 'public.is_nothing(bytea)'", -9615, []validationCase{
			{"nothing, and the function says yes", nil, true}, {"empty", []byte{}, true}, {"function says no", sqltest.Text("<a/>"), false},
		}},
		{"'JSON'", -8430, []validationCase{
			{"nothing", nil, false},
			{"object", sqltest.Text(`{"a": [1, "é"]}`), true},
			{"number", sqltest.Text("1"), true},
			{"trailing", sqltest.Text("{} {}"), false},
			{"NUL in a string", sqltest.Text(`"\u0000"`), false},
			{"no characters", []byte{'"', 0xff, '"'}, false},
			{"UTF-16", utf16Body(binary.LittleEndian, "{}"), true},
		}},
		{"'JSON_SCHEMA', 'public.is_even(bytea)'", -8430, []validationCase{
			{"good", sqltest.Text("{}"), true}, {"function says no", sqltest.Text("{ }"), false}, {"no JSON", sqltest.Text("{{"), false},
		}},
		{"'FUNCTION', 'public.is_number(bytea)'", -8430, []validationCase{
			{"good", sqltest.Text("12"), true}, {"function raises", sqltest.Text("twelve"), false}, {"function says no", nil, false},
		}},
	} {
		b.Exec("select parley.alter_message_type('//test/Request', " + v.validation + ")")
		for _, c := range v.cases {
			t.Run(v.validation+" "+c.name, func(t *testing.T) {
				requireValidated(sqltest.Session{T: t, DB: b.DB}, c, v.code)
			})
		}
	}
}

func requireValidated(s sqltest.Session, c validationCase, code int) {
	s.Helper()
	handle := s.Dialog()
	s.Exec("select parley.send($1::uuid, '//test/Request', $2::bytea)", handle, c.body)
	got := s.Messages("select * from parley.queue_contents('Answering') where message_type_name = '//test/Request'")
	if !c.good {
		if len(got) > 0 {
			s.Errorf("the bad body arrived: %q", got[0].MessageBody)
		}
		s.RequireError("Asking", code)
		s.RequireState(handle, "ER")
		// A side that received XML that failed has a number of its own.
		if code == -9615 {
			code = -9616
		}
		s.RequireError("Answering", code)
	} else {
		if len(got) != 1 || string(got[0].MessageBody) != string(c.body) {
			s.Errorf("arrived: %q", sqltest.BodiesOf(got))
		}
		s.RequireState(handle, "CO")
	}
	s.Exec("select parley.end_conversation(conversation_handle, cleanup => true) from parley.conversation_endpoints where state <> 'CD'")
}

// Each body of a batch is judged by itself, in its order, as if it had been sent alone (spec 2.2): a bad one takes nothing from those
// before it.
func TestBatchWithABadBodyDeliversWhatComesBeforeIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, bodies string
		want         []string
	}{
		{"in the middle", "array['{}', '{\"a\": 1}', 'bad', '[]']", []string{"{}", `{"a": 1}`}},
		{"first", "array['bad', '{}']", nil},
		{"last", "array['{}', 'bad']", []string{"{}"}},
		{"in an array that begins elsewhere", "'[5:7]={[],bad,[]}'::text[]", []string{"[]"}},
		{"none", "array['{}', '[]']", []string{"{}", "[]"}},
		{"no bodies", "'{}'::text[]", nil},
		{"no array", "null::text[]", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec("select parley.alter_message_type('//test/Note', 'JSON')")
			handle := b.Dialog()
			b.Exec("select parley.send_batch($1::uuid, '//test/Note', "+c.bodies+")", handle)
			got := sqltest.Values[string](b.Session, `
				select convert_from(message_body, 'UTF8') from parley.queue_contents('Answering')
				where message_type_name = '//test/Note' order by queuing_order`)
			if !slices.Equal(got, c.want) {
				t.Errorf("arrived: %q, want %q", got, c.want)
			}
			switch {
			case strings.Contains(c.bodies, "bad"):
				b.RequireError("Asking", -8430)
				b.RequireState(handle, "ER")
			case c.want == nil:
				b.RequireState(handle, "SO")
			default:
				b.RequireState(handle, "CO")
			}
		})
	}
}

func TestValidationFunctionMustBeAnAdministrators(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	role := b.Role("ordinary")
	b.Exec("create function public.judge(body bytea) returns boolean language sql as 'select true'")
	b.Exec("select parley.create_message_type('//m', 'FUNCTION', 'public.judge(bytea)')")
	b.Exec("grant create on schema public to " + sqltest.Quote(role))
	b.Exec("alter function public.judge(bytea) owner to " + sqltest.Quote(role))
	b.Refuses(8402, "select parley.create_message_type('//n', 'FUNCTION', 'public.judge(bytea)')")
	b.Exec("drop function public.judge(bytea)")
	b.Exec("revoke create on schema public from " + sqltest.Quote(role))
}

func TestValidationFunctionMayHaveAnyName(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(`create schema "odd (schema"`)
	b.Exec(`create function "odd (schema"."is ""good"" (or not)"(body bytea) returns boolean language sql as $$ select body = 'good' $$`)
	b.Exec(`select parley.alter_message_type('//test/Request', 'FUNCTION', '"odd (schema"."is ""good"" (or not)"(bytea)')`)
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "good")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"good"}) {
		t.Errorf("received %q", got)
	}
}

func TestNothingIsGoodWhenTheValidationFunctionIsGone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("create function public.judge(body bytea) returns boolean language sql as 'select true'")
	b.Exec("select parley.alter_message_type('//test/Request', 'FUNCTION', 'public.judge(bytea)')")
	b.Exec("drop function public.judge(bytea)")
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "x")
	b.RequireError("Asking", -8430)
}

func TestBodyTextReadsWhatSendersWrite(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	const want = "a é € 𝄞 z"
	for name, body := range map[string][]byte{
		"UTF-8":           sqltest.Text(want),
		"UTF-8 with mark": sqltest.Text("\ufeff" + want),
		"UTF-16 little":   utf16Body(binary.LittleEndian, want),
		"UTF-16 big":      utf16Body(binary.BigEndian, want),
	} {
		if got := sqltest.Value[string](b.Session, "select parley.body_text($1)", body); got != want {
			t.Errorf("%s reads as %q", name, got)
		}
	}
	sqltest.Equal(b.Session, "", "select parley.body_text('')")
	sqltest.Equal(b.Session, true, "select parley.body_text(null) is null")
}

func TestBodyTextOfWhatIsNoTextIsNull(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	for name, body := range map[string]string{
		"a low surrogate alone":                    `\xfffe00dc`,
		"a high surrogate at the end":              `\xfffe610000d8`,
		"a high surrogate before a letter":         `\xfffe00d861000000`,
		"two high surrogates":                      `\xfffe00d800d800dc`,
		"a NUL":                                    `\xfeff0000`,
		"bytes that are neither UTF-8 nor UTF-16":  `\xff00`,
		"UTF-8 with a mark and half of a sequence": `\xefbbbfc3`,
	} {
		if !sqltest.Value[bool](b.Session, "select parley.body_text($1::text::bytea) is null", body) {
			t.Errorf("%s is text", name)
		}
	}
}

// A peer chooses the length of a body, and so may not choose that it costs the square of it. With each byte unpacking the stored value this
// took 80 seconds, with each character copying the text before it 2; it takes a tenth of one.
func TestBodyTextTakesTimeInProportionToTheBody(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	conn, err := b.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	s := sqltest.Session{T: t, DB: conn}
	s.Exec("create table public.stored as select '\\xfffe'::bytea || decode(repeat('6100c3a934d81edd', 400000), 'hex') as body")
	s.Exec("set statement_timeout = '20s'")
	sqltest.Equal(s, 1_200_000, "select length(parley.body_text(body)) from public.stored")
	sqltest.Equal(s, true, "select parley.body_text(body) = repeat('a' || chr(43459) || chr(119070), 400000) from public.stored")
	s.Exec("reset statement_timeout")
}

// SEND keeps its own statements from scanning tables; a validation function is not its own.
func TestValidationFunctionRunsUnderTheSettingsOfItsDatabase(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(`
		create function public.is_usual(body bytea) returns boolean language sql as $$
			select bool_and(s.setting = s.reset_val)
			from pg_settings as s where s.name in ('enable_seqscan', 'jit', 'plan_cache_mode') or s.name like 'enable\_%'
		$$`)
	b.Exec("select parley.create_message_type('//test/Usual', 'FUNCTION', validation_function => 'public.is_usual(bytea)')")
	b.Exec("select parley.create_contract('//test/Usual', array['//test/Usual'])")
	b.Exec("select parley.alter_service('//test/Answerer', add_contracts => array['//test/Usual'])")
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Usual')")
	for range 2 {
		b.Send(handle, "//test/Usual", "x")
	}
	b.Exec("select parley.send_batch($1::uuid, '//test/Usual', array['x', 'y'])", handle)
	sqltest.Equal(b.Session, 4, "select count(*) from parley.receive('Answering') where message_type_name = '//test/Usual'")
	// Settings that are set for the function alone do not stay.
	tx := b.Begin()
	tx.Exec("set local enable_seqscan = off")
	tx.Send(handle, "//test/Usual", "x")
	sqltest.Equal(tx, "off", "show enable_seqscan")
	tx.Commit()
}

// A first send that is under way when the validation of its type changes is waited for, and lets no later one pass by the validation; nor
// does one that begins before the change is committed.
func TestFirstSendUnderWayPassesByNoLaterValidation(t *testing.T) {
	t.Parallel()
	const alter = "select parley.alter_message_type('//test/Request', 'JSON')"
	for _, isFirst := range []bool{true, false} {
		b := sqltest.NewWorld(t)
		tx := b.Begin()
		var initiator string
		if isFirst {
			initiator = tx.Dialog()
			tx.Send(initiator, sqltest.Request, "first")
			other := b.Blocked(alter)
			tx.Commit()
			other.RequireSuccess()
		} else {
			tx.Exec(alter)
			initiator = b.Dialog()
			other := b.Blocked("select parley.send($1, '//test/Request', 'first'::text)", initiator)
			tx.Commit()
			other.RequireSuccess()
		}
		b.Send(initiator, sqltest.Request, "second")
		b.RequireState(initiator, "ER")
	}
}
