package send_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// The named arguments of SEND and PUT have their effects together as well.
func TestNamedArgumentsOfSendAndPutCombine(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('jobs', kind => 'SIMPLE')")
	handle := b.Dialog()
	for name, call := range map[string]string{
		"send text":  "parley.send($1::uuid, '//test/Request', 'later'",
		"send bytes": "parley.send(conversation_handle => $1::uuid, message_type => '//test/Request', body => 'later'::bytea",
		"send JSON":  "parley.send($1::uuid, '//test/Request', '7'::jsonb",
		"put text":   "parley.put('jobs', case when $1::uuid is not null then 'later' end",
		"put bytes":  "parley.put(queue => 'jobs', body => uuid_send($1::uuid)",
		"put JSON":   "parley.put('jobs', to_jsonb($1::uuid)",
	} {
		t.Run(name, func(t *testing.T) {
			s := sqltest.Session{T: t, DB: b.DB}
			call += ", trace_context => '" + traceContext + "', deliver_at => now() + interval '1 hour', deduplication_key => '" + name + "')"
			sqltest.Equal(s, true, "select not s.is_duplicate and s.delayed_id is not null and s.message_id is null from "+call+" as s", handle)
			sqltest.Equal(s, true, "select s.is_duplicate and s.delayed_id is not null and s.sent_at is not null from "+call+" as s", handle)
		})
	}
	sqltest.Equal(b.Session, 6, `
		select (select count(*) from parley._p_delayed_send where trace_context = $1)::int
			+ (select count(*) from parley._p_delayed_message where trace_context = $1)::int`, traceContext)
}

// A time of delivery alone gives the number by which what waits is withdrawn; a trace context alone gives none of what is sent.
func TestSendAndPutGiveTheNumberOfWhatIsNotDue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('jobs', kind => 'SIMPLE')")
	handle := b.Dialog()
	sqltest.Equal(b.Session, true, `
		select parley.withdraw_send($1::uuid, s.delayed_id)
		from parley.send($1::uuid, '//test/Request', 'later', deliver_at => now() + interval '1 hour') as s`, handle)
	sqltest.Equal(b.Session, true, `
		select parley.withdraw_message('jobs', s.delayed_id) from parley.put('jobs', 'later', deliver_at => now() + interval '1 hour') as s`)
	sqltest.Equal(b.Session, true, "select parley.send($1::uuid, '//test/Request', 'x', trace_context => null) is null", handle)
	sqltest.Equal(b.Session, "(f,,1024,,)", "select parley.put('jobs', 'x', key => 'k')::text")
	sqltest.Equal(b.Session, "(f,,2048,,)", "select parley.put('jobs', 'x', deliver_at => now() - interval '1 hour')::text")
}

// A key that is null is none; one that is empty is a mistake.
func TestAnEmptyDeduplicationKeyIsRefused(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('jobs', kind => 'SIMPLE')")
	handle := b.Dialog()
	for range 2 {
		b.Exec("select parley.send($1::uuid, '//test/Request', 'x', deduplication_key => null)", handle)
		b.Exec("select parley.put('jobs', 'x', deduplication_key => null)")
	}
	sqltest.Equal(b.Session, 2, "select count(*)::int from parley.receive('Answering')")
	sqltest.Equal(b.Session, 2, "select count(*)::int from parley.take('jobs', 10)")
	b.Refuses(8402, "select parley.send($1::uuid, '//test/Request', 'x', deduplication_key => '')", handle)
	b.Refuses(8402, "select parley.put('jobs', 'x', deduplication_key => '')")
	b.Refuses(8402, "select parley.begin_dialog_once('//test/Asker', '//test/Answerer', null, '//test/Work')")
}

// A role that may not send learns nothing of keys, and sends nothing for later.
func TestNamedArgumentsAskForTheRightsOfTheCaller(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('jobs', kind => 'SIMPLE')")
	handle := b.Dialog()
	outsider := b.As(b.Role("outsider"))
	for _, argument := range []string{
		"trace_context => null", "deliver_at => now()", "deliver_at => now() + interval '1 hour'", "deduplication_key => 'k'",
	} {
		outsider.Refuses(229, "select parley.send($1::uuid, '//test/Request', 'x', "+argument+")", handle)
		outsider.Refuses(229, "select parley.put('jobs', 'x', "+argument+")")
	}
	outsider.Refuses(229, "select parley.begin_dialog_once('//test/Asker', '//test/Answerer', 'k', '//test/Work')")
}

// SQL says whether a dialog was begun before, in the transaction that began it, and after something was sent on it.
func TestBeginDialogOnceSaysWhatItBegan(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	const once = `
		select s.is_duplicate, s.conversation_handle::text
		from parley.begin_dialog_once('//test/Asker', '//test/Answerer', 'k', contract => '//test/Work') as s`
	begin := func(want bool) (handle string) {
		t.Helper()
		var isDuplicate bool
		if err := b.DB.QueryRow(t.Context(), once).Scan(&isDuplicate, &handle); err != nil {
			t.Fatal(err)
		}
		if isDuplicate != want {
			t.Errorf("is_duplicate is %t, want %t", isDuplicate, want)
		}
		return handle
	}
	first := begin(false)
	if begin(true) != first {
		t.Error("before anything was sent, another dialog is given")
	}
	b.Exec("select parley.send($1::uuid, $2, $3)", first, sqltest.Request, "x")
	if begin(true) != first {
		t.Error("after something was sent, another dialog is given")
	}
	sqltest.Equal(b.Session, first, `
		select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', deduplication_key => 'k')::text`)
}
