package conversation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestBeginDialogCreatesOneSideAndSendsNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	b.RequireState(handle, "SO")
	sqltest.Equal(b.Session, 1, "select count(*) from parley.conversation_endpoints")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.transmission_queue")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Answering')")
	sqltest.Equal(b.Session, "1 //test/Answerer //test/Asker //test/Work", `
		select format('%s %s %s %s', is_initiator, far_service, service_name, service_contract_name)
		from parley.conversation_endpoints where conversation_handle = $1`, handle)
}

func TestBeginDialogToAnUnknownTargetSendsNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//no/such/service', allow_unknown_target => true)")
	b.RequireState(handle, "SO")
}

func TestBeginDialogDefaults(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer')")
	sqltest.Equal(b.Session, "DEFAULT", "select service_contract_name from parley.conversation_endpoints where conversation_handle = $1", handle)
	// Null is the default too, however it is begun.
	for _, call := range []string{
		"select parley.begin_dialog('//test/Asker', '//test/Answerer', encryption => null)",
		"select parley.begin_and_send('//test/Asker', '//test/Answerer', encryption => null)",
	} {
		sqltest.Equal(b.Session, true, "select is_encrypted from parley._p_endpoint where conversation_handle = $1", sqltest.Value[string](b.Session, call))
	}
	// 2147483647 seconds, about 68 years. More do not fit into an interval literal of version 14.
	sqltest.Equal(b.Session, true, `
		select lifetime between now() + 2147483500 * interval '1 second' and now() + 2147483800 * interval '1 second'
		from parley.conversation_endpoints where conversation_handle = $1`, handle)
	sqltest.Equal(b.Session, true, "select far_broker_instance is null from parley.conversation_endpoints where conversation_handle = $1", handle)
}

func TestBothSidesShareConversationIDAndLifetime(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', lifetime => 1000)")
	b.Send(handle, "DEFAULT", "x")
	sqltest.Equal(b.Session, "2 handles 2 groups 1 ids 1 lifetimes", `
		select format('%s handles %s groups %s ids %s lifetimes', count(distinct conversation_handle), count(distinct conversation_group_id),
			count(distinct conversation_id), count(distinct lifetime))
		from parley.conversation_endpoints`)
}

func TestBrokerInstanceMayNameThisDatabase(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	guid := sqltest.Value[string](b.Session, "select service_broker_guid::text from parley.databases")
	for _, instance := range []string{"CURRENT DATABASE", "current database", guid, "{" + guid + "}"} {
		handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', broker_instance => $1)", instance)
		b.Send(handle, "DEFAULT", instance)
		if got := b.Bodies("Answering"); !slices.Equal(got, []string{instance}) {
			t.Errorf("with instance %s received %q", instance, got)
		}
	}
}

func TestDialogWithAnotherBrokerInstanceIsDelayed(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, `select parley.begin_dialog('//test/Asker', '//test/Answerer',
		broker_instance => gen_random_uuid()::text, allow_unknown_target => true)`)
	b.Send(handle, "DEFAULT", "x")
	sqltest.Equal(b.Session, true, "select parley.get_transmission_status($1) like '%broker instance%'", handle)
	if got := b.Receive("Answering"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
}

func TestEachDialogHasAGroupOfItsOwn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Dialog()
	b.Dialog()
	sqltest.Equal(b.Session, 2, "select count(*) from parley.conversation_groups")
}

func TestRelatedConversationJoinsItsGroup(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first := b.Dialog()
	for range 2 {
		b.Exec("select parley.begin_dialog('//test/Asker', '//test/Answerer', related_conversation => $1)", first)
	}
	sqltest.Equal(b.Session, 1, "select count(distinct conversation_group_id) from parley.conversation_endpoints")
}

func TestRelatedGroupIsCreatedWhenUnknown(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	const group = "6d1a9fd0-0f14-4f7c-9b0c-0a3a2c8f0001"
	for range 2 {
		b.Exec("select parley.begin_dialog('//test/Asker', '//test/Answerer', related_conversation_group => $1)", group)
	}
	sqltest.Equal(b.Session, "2 in "+group, "select format('%s in %s', count(*), min(conversation_group_id::text)) from parley.conversation_endpoints")
}

func TestRelatedConversationMayHaveEnded(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	b.End(initiator)
	b.Exec("select parley.begin_dialog('//test/Asker', '//test/Answerer', related_conversation => $1)", initiator)
	sqltest.Equal(b.Session, 1, "select count(distinct conversation_group_id) from parley.conversation_endpoints where is_initiator = 1")
}

// BEGIN DIALOG into a group takes its lock (spec 3.6).
func TestBeginDialogLocksTheGroupItJoins(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Send(target, sqltest.Reply, "x")
	tx := b.Begin()
	tx.Exec("select parley.begin_dialog('//test/Asker', '//test/Answerer', related_conversation => $1)", initiator)
	if got := b.Receive("Asking"); len(got) > 0 {
		t.Errorf("received %v from a locked group", got)
	}
	tx.Commit()
	if got := b.Receive("Asking"); len(got) != 1 {
		t.Errorf("received %v", got)
	}
}

func TestDialogBegunAtTheEndOfTime(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', lifetime => 2147483647)")
	b.Exec("select parley.begin_conversation_timer($1::uuid, 2147480000)", handle)
	sqltest.Equal(b.Session, true, "select dialog_timer > $2 from parley.conversation_endpoints where conversation_handle = $1",
		handle, time.Now().AddDate(60, 0, 0))
}
