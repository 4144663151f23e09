package sql_test

import (
	"slices"
	"testing"
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
	b := newBroker(t)
	got := values[string](b.session, `
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
	equal(b.session, 5, "select count(*) from parley.service_contracts where name like 'http://schemas.microsoft.com/SQL/%'")
}

// The same contract in each form that is understood.
func TestContractIsWrittenInSeveralForms(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	want := []string{"//test/Note 1 1", "//test/Reply 0 1", "//test/Request 1 0"}
	for _, statement := range []string{
		`select parley.create_contract('//c', '{"//test/Request": "INITIATOR", "//test/Reply": "TARGET", "//test/Note": "ANY"}')`,
		`select parley.create_contract('//c', '{"//test/Request": "initiator", "//test/Reply": "Target", "//test/Note": "any"}'::jsonb)`,
		`select parley.create_contract('//c', '{"//test/Request": "SENT BY INITIATOR", "//test/Reply": "sent  by TARGET", "//test/Note": " ANY"}')`,
	} {
		b.exec(statement)
		if got := values[string](b.session, usages, "//c"); !slices.Equal(got, want) {
			t.Errorf("%s gives %q", statement, got)
		}
		b.exec("select parley.drop_contract('//c')")
	}
}

func TestContractOfAListIsSentByOneSide(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_contract('//any', array['//test/Request', '//test/Reply'])")
	b.exec("select parley.create_contract('//initiator', array['//test/Request', '//test/Reply'], 'INITIATOR')")
	for contract, want := range map[string][]string{
		"//any":       {"//test/Reply 1 1", "//test/Request 1 1"},
		"//initiator": {"//test/Reply 1 0", "//test/Request 1 0"},
	} {
		if got := values[string](b.session, usages, contract); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", contract, got, want)
		}
	}
}

func TestContractRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	before := value[int](b.session, "select count(*) from parley.service_contract_message_usages")
	b.refuses(8492, `select parley.create_contract('//c', '{"//test/Reply": "TARGET"}')`)
	b.refuses(15151, `select parley.create_contract('//c', '{"//test/Note": "ANY", "//missing": "ANY"}')`)
	equal(b.session, before, "select count(*) from parley.service_contract_message_usages")
	equal(b.session, false, "select exists (select from parley.service_contracts where name = '//c')")
}

// A second entry could only contradict the first, or be lost without a word (spec 2.3).
func TestContractThatNamesAMessageTypeTwiceIsRefused(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.refuses(8403, `select parley.create_contract('//c', '{"//test/Note": "ANY", "//test/Note": "INITIATOR"}')`)
	b.refuses(8403, `select parley.create_contract('//c', '{"//test/Note": "ANY", "//test/\u004eote": "ANY"}'::text)`)
	b.refuses(8403, "select parley.create_contract('//c', array['//test/Note', '//test/Note'])")
	equal(b.session, false, "select exists (select from parley.service_contracts where name = '//c')")
	b.refuses(8402, `select parley.create_contract('//c', '["//test/Note", "//test/Note"]')`)
	b.exec(`select parley.create_contract('//c', '{"//test/Note": "ANY"}')`)
}

// EndDialog, Error and DialogTimer are the broker's: sent by hand they would end a side that has not ended (spec 2.2).
func TestSystemMessagesAreInNoContractAndCannotBeSent(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	for _, name := range []string{endDialog, errorMessage, dialogTimer} {
		b.refuses(9663, "select parley.create_contract('//c', jsonb_build_object($1::text, 'ANY'))", name)
		b.refuses(9663, "select parley.create_contract('//c', array['//test/Note', $1])", name)
		b.refuses(8431, "select parley.send($1::uuid, $2, '<a/>'::text)", initiator, name)
	}
	// Not even where a contract of an older installation lists one.
	b.exec(`
		insert into parley._p_contract_message_type (service_contract_id, message_type_id, is_sent_by_initiator, is_sent_by_target)
		select e.service_contract_id, t.message_type_id, true, true
		from parley._p_endpoint as e, parley._p_message_type as t
		where e.is_initiator and t.message_type_id in (1, 2, 5)`)
	for _, name := range []string{endDialog, errorMessage, dialogTimer} {
		b.refuses(8431, "select parley.send($1::uuid, $2, '<a/>'::text)", initiator, name)
		b.refuses(8431, "select parley.send_batch($1::uuid, $2, array['<a/>'])", target, name)
	}
	b.requireState(initiator, "CO")
	b.requireState(target, "CO")
}

// There is no ALTER CONTRACT (spec 2.3): endpoints may remember what a contract allows.
func TestContractCannotBeAltered(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	equal(b.session, false, "select exists (select from pg_proc where proname = 'alter_contract')")
}

// After the first message either side sends what its role allows, any number of times, in any order (spec 2.3).
func TestContractEnforcesNoChoreography(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator := b.dialog()
	b.send(initiator, note, "1")
	target := b.farHandle(initiator)
	for _, messageType := range []string{reply, reply, note, reply} {
		b.send(target, messageType, "x")
	}
	for _, messageType := range []string{note, request, request, note} {
		b.send(initiator, messageType, "x")
	}
	if got := typesOf(b.receive("Asking")); !slices.Equal(got, []string{reply, reply, note, reply}) {
		t.Errorf("the initiator received %q", got)
	}
	if got := typesOf(b.receive("Answering")); !slices.Equal(got, []string{note, note, request, request, note}) {
		t.Errorf("the target received %q", got)
	}
}

// Those that a service lists are ended before, when it stops to list it; what is left are initiators that never reached a target.
func TestDropContractEndsTheConversationsLeftOnIt(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_contract('//c', array['//test/Note'])")
	started := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//c')")
	sent := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Missing', '//c', allow_unknown_target => true)")
	b.send(sent, note, "x")
	ended := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Missing', '//c', allow_unknown_target => true)")
	b.send(ended, note, "x")
	b.end(ended)
	other, _ := b.conversation()

	b.exec("select parley.drop_contract('//c')")
	b.requireState(started, "ER")
	b.requireState(sent, "ER")
	b.requireState(ended, "")
	b.requireState(other, "CO")
	b.requireError("Asking", -8487)
	b.requireError("Asking", -8487)
	b.refuses(8425, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//c')")
	b.end(started)
	b.end(sent)
}
