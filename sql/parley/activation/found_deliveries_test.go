package activation_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// blocked gives a conversation with a message that cannot be delivered now, for each of the reasons.
var blocked = map[string]func(b *sqltest.Broker) (target string){
	"waits after a failure": func(b *sqltest.Broker) string {
		target := oneToDeliver(b)
		b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'no')", target)
		return target
	},
	"is locked": func(b *sqltest.Broker) string {
		target := oneToDeliver(b)
		b.Begin().Exec("select parley.begin_conversation_timer($1::uuid, 3600)", target)
		return target
	},
	"is claimed": func(b *sqltest.Broker) string {
		target := oneToDeliver(b)
		b.Exec(`
			select parley._p_claim_group(current_user::regrole, q, e.group_id, $2, interval '1 hour')
			from parley._p_endpoint as e
			join parley._p_service as s using (service_id)
			join parley._p_queue as q using (queue_id)
			where e.conversation_handle = $1::uuid`, target, ours)
		return target
	},
	"is set aside": func(b *sqltest.Broker) string {
		target := oneToDeliver(b)
		b.Exec("select parley.fail_conversation($1::uuid)", target)
		return target
	},
	// A sender that is under way waits for no END of the other side.
	"got a message when it had ended": func(b *sqltest.Broker) string {
		initiator, target := b.Conversation()
		late := b.Begin()
		late.Send(initiator, sqltest.Request, "blocked")
		b.End(target)
		late.Commit()
		return target
	},
}

// oneToDeliver gives the target of a conversation that has one message.
func oneToDeliver(b *sqltest.Broker) (target string) {
	b.Helper()
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "blocked")
	return b.FarHandle(handle)
}

func TestDeliveryPassesByWhatCannotBeDeliveredNow(t *testing.T) {
	t.Parallel()
	for reason, block := range blocked {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec(hook)
			block(b)
			b.Send(b.Dialog(), sqltest.Request, "free")
			requireNext(b.Begin(), "free")
		})
		t.Run(reason+", behind a thousand", func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec(hook)
			long := b.Dialog()
			b.Exec("select parley.send($1::uuid, $2, 'long') from generate_series(1, 1100)", long, sqltest.Request)
			b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'no')", b.FarHandle(long))
			block(b)
			b.Send(b.Dialog(), sqltest.Request, "free")
			requireNext(b.Begin(), "free")
		})
		t.Run(reason+", beside another one", func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec(hook)
			b.Send(b.Dialog(), sqltest.Request, "first")
			block(b)
			b.Send(b.Dialog(), sqltest.Request, "free")
			const next = "select parley.body_text(message_body) from parley.next_delivery('Answering', top => 2, groups => 2)"
			if got := sqltest.Values[string](b.Begin(), next); !slices.Equal(got, []string{"first", "free"}) {
				t.Errorf("the next delivery is %q", got)
			}
		})
	}
}

// A failure whose time has come is no reason to pass a conversation by.
func TestFailedDeliveryIsFoundAgainBehindAThousand(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	long := b.Dialog()
	b.Exec("select parley.send($1::uuid, $2, 'long') from generate_series(1, 1100)", long, sqltest.Request)
	b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'no')", b.FarHandle(long))
	b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'no')", oneToDeliver(b))
	requireNext(b.Session)
	b.Exec("update parley._p_delivery_failure set retry_at = now() where conversation_handle <> $1::uuid", b.FarHandle(long))
	requireNext(b.Session, "blocked")
}

// Two conversations of one group are delivered one after the other.
func TestDeliveryOfSeveralGroupsHasEachGroupOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	handles := b.Fill(4, 1)
	b.Exec("select parley.move_conversation($1::uuid, $2::uuid)", b.FarHandle(handles[1]), b.GroupOf(b.FarHandle(handles[0])))
	b.Exec("select parley.move_conversation($1::uuid, $2::uuid)", b.FarHandle(handles[3]), b.GroupOf(b.FarHandle(handles[2])))
	const next = "select parley.body_text(message_body) from parley.next_delivery('Answering', top => 10, groups => 10)"
	if got := sqltest.Values[string](b.Session, next); !slices.Equal(got, []string{"0/0", "2/0"}) {
		t.Errorf("the next delivery is %q", got)
	}
}

func TestDeliveryGoesByPriorityBehindAThousand(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	sent := func(body string, priority, messages int) (target string) {
		b.Exec("select parley.create_broker_priority('level', local_service_name => '//test/Answerer', priority_level => $1)", priority)
		handle := b.Dialog()
		b.Exec("select parley.send($1::uuid, $2, $3::text) from generate_series(1, $4)", handle, sqltest.Request, body, messages)
		b.Exec("select parley.drop_broker_priority('level')")
		return b.FarHandle(handle)
	}
	sent("low", 2, 1)
	long := sent("long", 8, 1100)
	sent("middle", 6, 1)
	b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'no')", long)
	requireNext(b.Session, "middle")
}
