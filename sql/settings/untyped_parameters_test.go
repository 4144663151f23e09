package settings_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// Some drivers send parameters without a type, others ask the server which types it expects. Both get what PostgreSQL makes of the
// statement, and that has to be what a program in another language holds in its hands: a handle is a uuid, a text is a text.
func TestParametersWithoutATypeAreWhatAProgramHas(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	conn, err := pgx.Connect(t.Context(), parleytest.DSN(t, b.Pool))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	const uuid, text, number = pgtype.UUIDOID, pgtype.TextOID, pgtype.Int4OID
	for statement, want := range map[string][]uint32{
		"select parley.begin_dialog($1, $2)":                                                                     {text, text},
		"select parley.begin_dialog($1, $2, $3, encryption => $4, lifetime => $5)":                               {text, text, text, pgtype.BoolOID, number},
		"select parley.send($1)":                                                                                 {uuid},
		"select parley.send($1, $2)":                                                                             {uuid, text},
		"select parley.send($1, $2, $3)":                                                                         {uuid, text, text},
		"select parley.send(conversation_handle => $1, body => $2)":                                              {uuid, text},
		"select parley.send(conversation_handle => $1, message_type => $2, body => $3)":                          {uuid, text, text},
		"select parley.send($1, $2, $3::bytea)":                                                                  {uuid, text, pgtype.ByteaOID},
		"select parley.send($1, $2, $3::jsonb)":                                                                  {uuid, text, pgtype.JSONBOID},
		"select parley.send($1, body => $2, deliver_at => $3)":                                                   {uuid, text, pgtype.TimestamptzOID},
		"select parley.send($1, $2, $3::xml, deduplication_key => $4)":                                           {uuid, text, pgtype.XMLOID, text},
		"select parley.send($1, $2, $3, $4)":                                                                     {uuid, text, text, text},
		"select parley.send($1, $2, $3, deliver_at => $4)":                                                       {uuid, text, text, pgtype.TimestamptzOID},
		"select parley.send($1, $2, $3::bytea, trace_context => $4)":                                             {uuid, text, pgtype.ByteaOID, text},
		"select parley.send(conversation_handle => $1, message_type => $2, body => $3, deduplication_key => $4)": {uuid, text, text, text},
		"select parley.begin_and_send($1, $2)":                                                                   {text, text},
		"select parley.begin_and_send($1, $2, $3, $4)":                                                           {text, text, text, text},
		"select parley.begin_and_send($1, $2, body => $3, deliver_at => $4)":                                     {text, text, text, pgtype.TimestamptzOID},
		"select parley.begin_and_send($1, $2, $3, $4::bytea)":                                                    {text, text, text, pgtype.ByteaOID},
		"select parley.send_and_end($1, $2, $3)":                                                                 {text, text, text},
		"select parley.send_and_end($1, $2, $3, $4)":                                                             {text, text, text, text},
		"select parley.put($1, $2)":                                                                              {text, text},
		"select parley.put(queue => $1, body => $2)":                                                             {text, text},
		"select parley.put($1, $2::bytea)":                                                                       {text, pgtype.ByteaOID},
		"select parley.put($1, $2::jsonb)":                                                                       {text, pgtype.JSONBOID},
		"select parley.put($1, $2, $3)":                                                                          {text, text, text},
		"select parley.put($1, $2, key => $3, priority => $4, deliver_at => $5)":                                 {text, text, text, number, pgtype.TimestamptzOID},
		"select parley.put($1, $2, deduplication_key => $3)":                                                     {text, text, text},
		"select parley.put_batch($1, $2)":                                                                        {text, pgtype.TextArrayOID},
		"select parley.put_batch_binary($1, $2, trace_context => $3)":                                            {text, pgtype.ByteaArrayOID, text},
		"select parley.send_to_all($1, $2, $3)":                                                                  {pgtype.UUIDArrayOID, text, text},
		"select parley.send_batch($1, $2, $3)":                                                                   {uuid, text, pgtype.TextArrayOID},
		"select parley.send_batch_binary($1, $2, $3, trace_context => $4)":                                       {uuid, text, pgtype.ByteaArrayOID, text},
		"select parley.send_batch_binary($1, $2, $3)":                                                            {uuid, text, pgtype.ByteaArrayOID},
		"select * from parley.receive($1, timeout => $2)":                                                        {text, number},
		"select * from parley.receive($1, $2, conversation_handle => $3)":                                        {text, number, uuid},
		"select parley.get_conversation_group($1, $2)":                                                           {text, number},
		"select parley.get_conversation_groups($1, $2, $3)":                                                      {text, number, number},
		"select parley.end_conversation($1)":                                                                     {uuid},
		"select parley.end_conversation($1, $2, $3)":                                                             {uuid, number, text},
		"select parley.end_conversation($1, cleanup => $2)":                                                      {uuid, pgtype.BoolOID},
		"select parley.begin_conversation_timer($1, $2)":                                                         {uuid, number},
		"select parley.record_failure($1, $2, $3)":                                                               {uuid, text, text},
		"select parley.body_text($1)":                                                                            {pgtype.ByteaOID},
	} {
		prepared, err := conn.PgConn().Prepare(t.Context(), "", statement, nil)
		if err != nil {
			t.Errorf("%s: %v", statement, err)
		} else if !slices.Equal(prepared.ParamOIDs, want) {
			t.Errorf("%s takes parameters of the types %v, want %v", statement, prepared.ParamOIDs, want)
		}
	}
}

// A statement that gives nothing gives the same nothing whichever form was called: some drivers distinguish null and void.
func TestStatementsThatGiveNothingGiveTheSame(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer')")
	for _, call := range []string{
		"send($1)", "send($1, 'DEFAULT', 'x')", "send($1, 'DEFAULT', 'x'::bytea)", "send($1, 'DEFAULT', '{}'::jsonb)", "send($1, 'DEFAULT', '{}'::json)",
		"send($1, 'DEFAULT', '<a/>'::xml)", "send_to_all(array[$1::uuid], 'DEFAULT', 'x')",
		"send_to_all(array[$1::uuid], 'DEFAULT', 'x'::bytea)", "send_batch($1, 'DEFAULT', '{x}')", "send_batch_binary($1, 'DEFAULT', '{x}')",
		"end_conversation($1)", "end_conversation($1, true)",
	} {
		// SEND alone may have something to give, a row, and gives null where it has not.
		sqltest.Equal(b.Session, strings.HasPrefix(call, "send("), "select n is null from (select parley."+call+" as n offset 0) as s", handle)
	}
}

// A body that is no text is one row among others; what reads it as text gets the others.
func TestReceiveReadsTextBesideABodyThatIsNone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	b.Exec(`select parley.send_batch_binary($1, '//test/Note', array['\x61', '\x00ff', '\x62']::bytea[])`, handle)
	const want = "a, no text, b"
	sqltest.Equal(b.Session, want, `
		select string_agg(coalesce(parley.body_text(message_body), 'no text'), ', ' order by queuing_order)
		from parley.receive('Answering')`)
}
