package catalog_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

const usages = `
	select format('%s %s %s', t.name, u.is_sent_by_initiator::int, u.is_sent_by_target::int)
	from parley.service_contract_message_usages as u
	join parley.service_message_types as t using (message_type_id)
	join parley.service_contracts as c using (service_contract_id)
	where c.name = $1
	order by 1`

func TestBuiltInContractsHaveTheirIDsAndMessageTypes(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	got := sqltest.Values[string](b.Session, `
		select format('%s %s: %s', c.service_contract_id, regexp_replace(c.name, '^.*/', ''), string_agg(
			regexp_replace(t.name, '^.*/', '') || case when u.is_sent_by_initiator and u.is_sent_by_target then ' any'
				when u.is_sent_by_initiator then ' initiator' else ' target' end, ', ' order by t.message_type_id))
		from parley.service_contracts as c
		join parley.service_contract_message_usages as u using (service_contract_id)
		join parley.service_message_types as t using (message_type_id)
		group by c.service_contract_id, c.name
		order by c.service_contract_id`)
	want := []string{
		"1 PostQueryNotification: QueryNotification initiator",
		"2 PostEventNotification: EventNotification initiator",
		"3 BrokerConfigurationNotice: MissingRoute initiator, FailedRoute initiator, MissingRemoteServiceBinding initiator, " +
			"FailedRemoteServiceBinding initiator",
		"4 ServiceEcho: Echo any",
		"5 ServiceDiagnostic: Query initiator, Status target, Description target",
		"6 DEFAULT: DEFAULT any",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	sqltest.Equal(b.Session, 5, "select count(*) from parley.service_contracts where name like 'http://schemas.microsoft.com/SQL/%'")
}

// The same contract in each form that is understood.
func TestContractIsWrittenInSeveralForms(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	want := []string{"//test/Note 1 1", "//test/Reply 0 1", "//test/Request 1 0"}
	for _, statement := range []string{
		`select parley.create_contract('//c', '{"//test/Request": "INITIATOR", "//test/Reply": "TARGET", "//test/Note": "ANY"}')`,
		`select parley.create_contract('//c', '{"//test/Request": "initiator", "//test/Reply": "Target", "//test/Note": "any"}'::jsonb)`,
		`select parley.create_contract('//c', '{"//test/Request": "SENT BY INITIATOR", "//test/Reply": "sent  by TARGET", "//test/Note": " ANY"}')`,
	} {
		b.Exec(statement)
		if got := sqltest.Values[string](b.Session, usages, "//c"); !slices.Equal(got, want) {
			t.Errorf("%s gives %q", statement, got)
		}
		b.Exec("select parley.drop_contract('//c')")
	}
}

func TestContractOfAListIsSentByOneSide(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_contract('//any', array['//test/Request', '//test/Reply'])")
	b.Exec("select parley.create_contract('//initiator', array['//test/Request', '//test/Reply'], 'INITIATOR')")
	for contract, want := range map[string][]string{
		"//any":       {"//test/Reply 1 1", "//test/Request 1 1"},
		"//initiator": {"//test/Reply 1 0", "//test/Request 1 0"},
	} {
		if got := sqltest.Values[string](b.Session, usages, contract); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", contract, got, want)
		}
	}
}

func TestContractRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	before := sqltest.Value[int](b.Session, "select count(*) from parley.service_contract_message_usages")
	b.Refuses(8492, `select parley.create_contract('//c', '{"//test/Reply": "TARGET"}')`)
	b.Refuses(15151, `select parley.create_contract('//c', '{"//test/Note": "ANY", "//missing": "ANY"}')`)
	sqltest.Equal(b.Session, before, "select count(*) from parley.service_contract_message_usages")
	sqltest.Equal(b.Session, false, "select exists (select from parley.service_contracts where name = '//c')")
}

// A second entry could only contradict the first, or be lost without a word (spec 2.3).
func TestContractThatNamesAMessageTypeTwiceIsRefused(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Refuses(8403, `select parley.create_contract('//c', '{"//test/Note": "ANY", "//test/Note": "INITIATOR"}')`)
	b.Refuses(8403, `select parley.create_contract('//c', '{"//test/Note": "ANY", "//test/\u004eote": "ANY"}'::text)`)
	b.Refuses(8403, "select parley.create_contract('//c', array['//test/Note', '//test/Note'])")
	sqltest.Equal(b.Session, false, "select exists (select from parley.service_contracts where name = '//c')")
	b.Refuses(8402, `select parley.create_contract('//c', '["//test/Note", "//test/Note"]')`)
	b.Exec(`select parley.create_contract('//c', '{"//test/Note": "ANY"}')`)
}

// EndDialog, Error and DialogTimer are the broker's: sent by hand they would end a side that has not ended (spec 2.2).
func TestSystemMessagesAreInNoContractAndCannotBeSent(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	for _, name := range []string{sqltest.EndDialog, sqltest.ErrorMessage, sqltest.DialogTimer} {
		b.Refuses(9663, "select parley.create_contract('//c', jsonb_build_object($1::text, 'ANY'))", name)
		b.Refuses(9663, "select parley.create_contract('//c', array['//test/Note', $1])", name)
		b.Refuses(8431, "select parley.send($1::uuid, $2, '<a/>'::text)", initiator, name)
	}
	// Not even where a contract of an older installation lists one.
	b.Exec(`
		insert into parley._p_contract_message_type (service_contract_id, message_type_id, is_sent_by_initiator, is_sent_by_target)
		select e.service_contract_id, t.message_type_id, true, true
		from parley._p_endpoint as e, parley._p_message_type as t
		where e.is_initiator and t.message_type_id in (1, 2, 5)`)
	for _, name := range []string{sqltest.EndDialog, sqltest.ErrorMessage, sqltest.DialogTimer} {
		b.Refuses(8431, "select parley.send($1::uuid, $2, '<a/>'::text)", initiator, name)
		b.Refuses(8431, "select parley.send_batch($1::uuid, $2, array['<a/>'])", target, name)
	}
	b.RequireState(initiator, "CO")
	b.RequireState(target, "CO")
}

// There is no ALTER CONTRACT (spec 2.3): endpoints may remember what a contract allows.
func TestContractCannotBeAltered(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	sqltest.Equal(b.Session, false, "select exists (select from pg_proc where proname = 'alter_contract')")
}

// After the first message either side sends what its role allows, any number of times, in any order (spec 2.3).
func TestContractEnforcesNoChoreography(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Note, "1")
	target := b.FarHandle(initiator)
	for _, messageType := range []string{sqltest.Reply, sqltest.Reply, sqltest.Note, sqltest.Reply} {
		b.Send(target, messageType, "x")
	}
	for _, messageType := range []string{sqltest.Note, sqltest.Request, sqltest.Request, sqltest.Note} {
		b.Send(initiator, messageType, "x")
	}
	if got := sqltest.TypesOf(b.Receive("Asking")); !slices.Equal(got, []string{sqltest.Reply, sqltest.Reply, sqltest.Note, sqltest.Reply}) {
		t.Errorf("the initiator received %q", got)
	}
	if got := sqltest.TypesOf(b.Receive("Answering")); !slices.Equal(got, []string{sqltest.Note, sqltest.Note, sqltest.Request, sqltest.Request, sqltest.Note}) {
		t.Errorf("the target received %q", got)
	}
}

// Those that a service lists are ended before, when it stops to list it; what is left are initiators that never reached a target.
func TestDropContractEndsTheConversationsLeftOnIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_contract('//c', array['//test/Note'])")
	started := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//c')")
	sent := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Missing', '//c', allow_unknown_target => true)")
	b.Send(sent, sqltest.Note, "x")
	ended := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Missing', '//c', allow_unknown_target => true)")
	b.Send(ended, sqltest.Note, "x")
	b.End(ended)
	other, _ := b.Conversation()

	b.Exec("select parley.drop_contract('//c')")
	b.RequireState(started, "ER")
	b.RequireState(sent, "ER")
	b.RequireState(ended, "")
	b.RequireState(other, "CO")
	b.RequireError("Asking", -8487)
	b.RequireError("Asking", -8487)
	b.Refuses(8425, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//c')")
	b.End(started)
	b.End(sent)
}
