package conversation_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestTimerOfZeroSecondsFiresAtOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	got := b.Receive("Asking")
	if len(got) != 1 || got[0].MessageTypeName != sqltest.DialogTimer || got[0].MessageBody != nil || got[0].Validation != "E" {
		t.Fatalf("received %+v", got)
	}
	if got[0].ConversationHandle != initiator {
		t.Errorf("it is of %s", got[0].ConversationHandle)
	}
	b.RequireState(initiator, "CO")
}

func TestTimerFiresOnceOnItsOwnSideOnly(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Exec("select parley.begin_conversation_timer($1::uuid, 1000)", target)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Answering')")
	sqltest.Equal(b.Session, true, "select dialog_timer > now() + interval '900 s' from parley.conversation_endpoints where conversation_handle = $1", target)
	sqltest.Equal(b.Session, true, "select dialog_timer is null from parley.conversation_endpoints where conversation_handle = $1", initiator)
	b.Fire("timer")
	if got := sqltest.TypesOf(b.Receive("Answering")); !slices.Equal(got, []string{sqltest.DialogTimer}) {
		t.Errorf("received %q", got)
	}
	b.Fire("timer")
	for _, queue := range []string{"Asking", "Answering"} {
		if got := b.Receive(queue); len(got) > 0 {
			t.Errorf("received %v", got)
		}
	}
	sqltest.Equal(b.Session, true, "select dialog_timer is null from parley.conversation_endpoints where conversation_handle = $1", target)
}

func TestTimerSetAgainReplacesTheEarlierSetting(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	for _, seconds := range []int{1000, 5000, 2000} {
		b.Exec("select parley.begin_conversation_timer($1::uuid, $2)", initiator, seconds)
		sqltest.Equal(b.Session, true, `
			select dialog_timer between now() + make_interval(secs => $2 - 100) and now() + make_interval(secs => $2)
			from parley.conversation_endpoints where conversation_handle = $1`, initiator, seconds)
	}
	b.Fire("timer")
	if got := sqltest.TypesOf(b.Receive("Asking")); !slices.Equal(got, []string{sqltest.DialogTimer}) {
		t.Errorf("received %q", got)
	}
}

// A timer that was found due may be set anew before it fires.
func TestTimerSetAnewWhileItIsAboutToFireDoesNotFireThen(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	gate := b.PauseBefore("_p_claim_alarm", "select e.far_endpoint_id into v_far from parley._p_endpoint")
	w := b.Blocked("select parley.fire_timers()")
	b.Exec("select parley.begin_conversation_timer($1::uuid, 1000)", initiator)
	gate.Rollback()
	w.RequireSuccess()
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Asking')")
	sqltest.Equal(b.Session, true, `
		select e.dialog_timer > now() + interval '900 s' from parley.conversation_endpoints as e where e.conversation_handle = $1`, initiator)
}

// A timer fires in SO too: it wakes a program that begins dialogs and waits for something else.
func TestTimerBeforeTheFirstSend(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", handle)
	if got := sqltest.TypesOf(b.Receive("Asking")); !slices.Equal(got, []string{sqltest.DialogTimer}) {
		t.Errorf("received %q", got)
	}
	b.RequireState(handle, "SO")
}

func TestTimerDiesWithItsSide(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Exec("select parley.begin_conversation_timer($1::uuid, 1000)", initiator)
	b.End(initiator)
	b.Fire("timer")
	if got := b.Receive("Asking"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
	b.End(target)
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_alarm")
}

func TestRolledBackTimerDoesNotFire(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	tx := b.Begin()
	tx.Exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	tx.Rollback()
	b.Exec("select parley.fire_timers()")
	if got := b.Receive("Asking"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
}

func TestReceiveFiresTheTimersOfItsOwnQueue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
	if got := sqltest.TypesOf(b.Receive("Asking")); !slices.Equal(got, []string{sqltest.DialogTimer}) {
		t.Errorf("received %q", got)
	}
	sqltest.Equal(b.Session, 1, "select count(*) from parley._p_alarm where kind = 'timer'")
	if got := sqltest.TypesOf(b.Receive("Answering")); !slices.Equal(got, []string{sqltest.DialogTimer}) {
		t.Errorf("received %q", got)
	}
}

func TestWaitingReceiveIsWokenByATimer(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	b.Exec("select parley.begin_conversation_timer($1::uuid, 1)", initiator)
	if got := sqltest.TypesOf(b.Messages("select * from parley.receive('Asking', timeout => -1)")); !slices.Equal(got, []string{sqltest.DialogTimer}) {
		t.Errorf("received %q", got)
	}
}

func TestGetConversationGroupFiresTimersToo(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	sqltest.Equal(b.Session, b.GroupOf(initiator), "select parley.get_conversation_group('Asking')::text")
}

func TestFireTimersReturnsHowManyFiredUpToItsLimit(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for range 5 {
		b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", b.Dialog())
	}
	for _, want := range []int{2, 2, 1, 0} {
		sqltest.Equal(b.Session, want, "select parley.fire_timers(2)")
	}
}

func TestLifetimeFailsBothSides(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', lifetime => 1000)")
	b.Send(initiator, sqltest.Request, "data")
	target := b.FarHandle(initiator)
	b.Fire("lifetime")
	b.RequireState(initiator, "ER")
	b.RequireState(target, "ER")
	b.RequireError("Asking", -8489)
	b.RequireError("Answering", -8489)
	b.Refuses(8429, "select parley.send($1::uuid, '//test/Note', 'x')", target)
	// Messages that were delivered before may still be received.
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"data"}) {
		t.Errorf("received %q", got)
	}
	b.End(initiator)
	b.End(target)
	b.RequireState(initiator, "")
	b.RequireState(target, "CD")
}

func TestLifetimeEndsBeforeTheFirstSend(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', lifetime => 1000)")
	b.Fire("lifetime")
	b.RequireState(handle, "ER")
	b.RequireError("Asking", -8489)
}

// Messages that wait in the transmission queue when the lifetime ends are never delivered (spec 3.5).
func TestLifetimeEndsWhatIsNotDelivered(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Late', '//test/Work', lifetime => 1000, allow_unknown_target => true)")
	b.Send(handle, sqltest.Request, "x")
	b.Fire("lifetime")
	b.RequireError("Asking", -8489)
	b.Exec("select parley.create_service('//test/Late', 'Answering', array['//test/Work'])")
	b.Exec("select parley.fire_timers()")
	if got := b.Receive("Answering"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
	b.End(handle)
	b.RequireState(handle, "")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.transmission_queue")
}

// Each side has its own clock (spec 3.2).
func TestLifetimeFailsASideWhoseOtherSideIsGone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	begin := "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', lifetime => 1000)"
	cleaned := sqltest.Value[string](b.Session, begin)
	b.Send(cleaned, sqltest.Request, "x")
	left := b.FarHandle(cleaned)
	b.Exec("select parley.end_conversation($1::uuid, cleanup => true)", cleaned)
	ended := sqltest.Value[string](b.Session, begin)
	b.Send(ended, sqltest.Request, "x")
	disconnected := b.FarHandle(ended)
	b.End(ended)
	b.Fire("lifetime")
	b.RequireState(left, "ER")
	b.RequireState(disconnected, "ER")
	b.RequireState(ended, "")
}

func TestReceiveEndsLifetimesOfItsQueue(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"Asking", "Answering"} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', lifetime => 1000)")
			b.Send(handle, sqltest.Request, "x")
			b.Receive("Answering")
			b.Exec("update parley._p_alarm set due_at = now()")
			b.Exec("select setval('parley._p_next_alarm', 0)")
			b.RequireError(queue, -8489)
		})
	}
}

func TestLifetimeOfAnEndedConversationMeansNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', lifetime => 1000)")
	b.Send(handle, sqltest.Request, "x")
	target := b.FarHandle(handle)
	b.End(target)
	b.End(handle)
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_alarm")
	b.RequireState(target, "CD")
}

func TestTimerThatIsPutOffIsLateSinceItWasDueFirst(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	b.Exec("update parley._p_alarm set due_at = clock_timestamp() - interval '2 minutes'")
	due := sqltest.Value[string](b.Session, "select due_at::text from parley._p_alarm")
	holder := b.Begin()
	holder.Exec("select from parley._p_endpoint where conversation_handle = $1 for update", initiator)
	for range 2 {
		b.Exec("select parley.fire_timers()")
		sqltest.Equal(b.Session, true, "select due_at > clock_timestamp() from parley._p_alarm")
		b.Exec("update parley._p_alarm set due_at = clock_timestamp() - interval '5 seconds'")
		b.Exec("select setval('parley._p_next_alarm', 0)")
	}
	sqltest.Equal(b.Session, due, "select since::text from parley.diagnose_runtime() where code = 'timers-late'")
	sqltest.Equal(b.Session, due, "select dialog_timer::text from parley.conversation_endpoints where conversation_handle = $1", initiator)
	sqltest.Equal(b.Session, true, `
		select (m ->> 'timers_late')::integer = 1 and (m ->> 'timer_oldest_due_seconds')::numeric between 120 and 600
		from parley.broker_metrics() as m`)
	holder.Rollback()
	// Set anew, it is as any other.
	b.Exec("select parley.begin_conversation_timer($1::uuid, 1000)", initiator)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.diagnose_runtime(patience => '0') where code = 'timers-late'")
	sqltest.Equal(b.Session, 0, "select (parley.broker_metrics() ->> 'timers_late')::integer")
}

func TestTimerFollowsItsServiceToAnotherQueue(t *testing.T) {
	t.Parallel()
	for name, isFired := range map[string]bool{"due": false, "fired": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec("select parley.create_queue('Other')")
			initiator, target := b.Conversation()
			b.Send(initiator, sqltest.Request, "x")
			b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
			if isFired {
				b.Exec("select parley.fire_timers()")
			}
			b.Exec("select parley.alter_service('//test/Answerer', queue => 'Other')")
			if got := b.Receive("Answering"); len(got) > 0 {
				t.Errorf("received %v from the old queue", got)
			}
			// RECEIVE may have checked less than a millisecond ago, and not check again.
			b.Exec("select parley.fire_timers()")
			if got := sqltest.TypesOf(b.Receive("Other")); !slices.Equal(got, []string{sqltest.DialogTimer, sqltest.Request}) {
				t.Errorf("received %q", got)
			}
		})
	}
}

func TestTimerFollowsItsConversationToAnotherGroup(t *testing.T) {
	t.Parallel()
	for name, isFired := range map[string]bool{"due": false, "fired": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			one, moved := b.Conversation()
			_, resident := b.Conversation()
			b.Send(one, sqltest.Request, "x")
			b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", moved)
			if isFired {
				b.Exec("select parley.fire_timers()")
			}
			b.Exec("select parley.move_conversation($1::uuid, $2::uuid)", moved, b.GroupOf(resident))
			b.Exec("select parley.fire_timers()")
			got := sqltest.Values[string](b.Session, "select message_type_name from parley.receive('Answering', conversation_group_id => $1::uuid)", b.GroupOf(resident))
			if !slices.Equal(got, []string{sqltest.DialogTimer, sqltest.Request}) {
				t.Errorf("received %q", got)
			}
		})
	}
}

func TestTimerOfAPoisonConversationSurvivesItsRetry(t *testing.T) {
	t.Parallel()
	for name, isFired := range map[string]bool{"due": false, "fired": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			initiator, target := b.Conversation()
			b.Send(initiator, sqltest.Request, "poison")
			b.Exec("select parley._p_set_aside_conversation(m.lane / 16, m.endpoint_id, m.position, 5) from parley._p_message as m")
			b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
			if isFired {
				b.Exec("select parley.fire_timers()")
			}
			if got := sqltest.TypesOf(b.Receive("Answering")); len(got) > 0 {
				t.Errorf("received %q from what is set aside", got)
			}
			b.Exec("select parley.retry_poison($1::uuid)", target)
			b.Exec("select parley.fire_timers()")
			if got := sqltest.TypesOf(b.Receive("Answering")); !slices.Equal(got, []string{sqltest.DialogTimer, sqltest.Request}) {
				t.Errorf("received %q", got)
			}
		})
	}
}

// A timer that was set goes off when the other side has ended too: this side is still to end (spec 4.8).
func TestTimerFiresWhenTheOtherSideHasEnded(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Exec("select parley.begin_conversation_timer($1::uuid, 1000)", target)
	b.End(initiator)
	b.RequireState(target, "DI")
	b.Bodies("Answering")
	b.Fire("timer")
	if got := sqltest.TypesOf(b.Receive("Answering")); !slices.Equal(got, []string{sqltest.DialogTimer}) {
		t.Errorf("received %q", got)
	}
}
