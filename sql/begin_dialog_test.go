package sql_test

import (
	"slices"
	"testing"
	"time"
)

func TestBeginDialogCreatesOneSideAndSendsNothing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	b.requireState(handle, "SO")
	equal(b.session, 1, "select count(*) from parley.conversation_endpoints")
	equal(b.session, 0, "select count(*) from parley.transmission_queue")
	equal(b.session, 0, "select count(*) from parley.queue_contents('Answering')")
	equal(b.session, "1 //test/Answerer //test/Asker //test/Work", `
		select format('%s %s %s %s', is_initiator, far_service, service_name, service_contract_name)
		from parley.conversation_endpoints where conversation_handle = $1`, handle)
}

func TestBeginDialogToAnUnknownTargetSendsNothing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//no/such/service', allow_unknown_target => true)")
	b.requireState(handle, "SO")
}

func TestBeginDialogDefaults(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer')")
	equal(b.session, "DEFAULT", "select service_contract_name from parley.conversation_endpoints where conversation_handle = $1", handle)
	// Null is the default too, however it is begun.
	for _, call := range []string{
		"select parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => null)",
		"select parley.begin_and_send('//test/Asker', '//test/Answerer', encryption => null)",
	} {
		equal(b.session, true, "select is_encrypted from parley._p_endpoint where conversation_handle = $1", value[string](b.session, call))
	}
	// 2147483647 seconds, about 68 years. More do not fit into an interval literal of version 14.
	equal(b.session, true, `
		select lifetime between now() + 2147483500 * interval '1 second' and now() + 2147483800 * interval '1 second'
		from parley.conversation_endpoints where conversation_handle = $1`, handle)
	equal(b.session, true, "select far_broker_instance is null from parley.conversation_endpoints where conversation_handle = $1", handle)
}

func TestBothSidesShareConversationIDAndLifetime(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', lifetime => 1000)")
	b.send(handle, "DEFAULT", "x")
	equal(b.session, "2 handles 2 groups 1 ids 1 lifetimes", `
		select format('%s handles %s groups %s ids %s lifetimes', count(distinct conversation_handle), count(distinct conversation_group_id),
			count(distinct conversation_id), count(distinct lifetime))
		from parley.conversation_endpoints`)
}

func TestBrokerInstanceMayNameThisDatabase(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	guid := value[string](b.session, "select service_broker_guid::text from parley.databases")
	for _, instance := range []string{"CURRENT DATABASE", "current database", guid, "{" + guid + "}"} {
		handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', broker_instance => $1)", instance)
		b.send(handle, "DEFAULT", instance)
		if got := b.bodies("Answering"); !slices.Equal(got, []string{instance}) {
			t.Errorf("with instance %s received %q", instance, got)
		}
	}
}

func TestDialogWithAnotherBrokerInstanceIsDelayed(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, `select parley.begin_dialog('//test/Asker', '//test/Answerer',
		broker_instance => gen_random_uuid()::text, allow_unknown_target => true)`)
	b.send(handle, "DEFAULT", "x")
	equal(b.session, true, "select parley.get_transmission_status($1) like '%broker instance%'", handle)
	if got := b.receive("Answering"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
}

func TestEachDialogHasAGroupOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.dialog()
	b.dialog()
	equal(b.session, 2, "select count(*) from parley.conversation_groups")
}

func TestRelatedConversationJoinsItsGroup(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first := b.dialog()
	for range 2 {
		b.exec("select parley.begin_dialog('//test/Asker', '//test/Answerer', related_conversation => $1)", first)
	}
	equal(b.session, 1, "select count(distinct conversation_group_id) from parley.conversation_endpoints")
}

func TestRelatedGroupIsCreatedWhenUnknown(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	const group = "6d1a9fd0-0f14-4f7c-9b0c-0a3a2c8f0001"
	for range 2 {
		b.exec("select parley.begin_dialog('//test/Asker', '//test/Answerer', related_conversation_group => $1)", group)
	}
	equal(b.session, "2 in "+group, "select format('%s in %s', count(*), min(conversation_group_id::text)) from parley.conversation_endpoints")
}

func TestRelatedConversationMayHaveEnded(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	b.end(initiator)
	b.exec("select parley.begin_dialog('//test/Asker', '//test/Answerer', related_conversation => $1)", initiator)
	equal(b.session, 1, "select count(distinct conversation_group_id) from parley.conversation_endpoints where is_initiator = 1")
}

// BEGIN DIALOG into a group takes its lock (spec 3.6).
func TestBeginDialogLocksTheGroupItJoins(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.send(target, reply, "x")
	tx := b.begin()
	tx.exec("select parley.begin_dialog('//test/Asker', '//test/Answerer', related_conversation => $1)", initiator)
	if got := b.receive("Asking"); len(got) > 0 {
		t.Errorf("received %v from a locked group", got)
	}
	tx.commit()
	if got := b.receive("Asking"); len(got) != 1 {
		t.Errorf("received %v", got)
	}
}

func TestDialogBegunAtTheEndOfTime(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', lifetime => 2147483647)")
	b.exec("select parley.begin_conversation_timer($1::uuid, 2147480000)", handle)
	equal(b.session, true, "select dialog_timer > $2 from parley.conversation_endpoints where conversation_handle = $1",
		handle, time.Now().AddDate(60, 0, 0))
}
