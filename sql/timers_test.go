package sql_test

import (
	"slices"
	"testing"
)

// fire makes what is set due now, and handles it.
func (s session) fire(kind string) {
	s.Helper()
	s.exec("update parley._p_alarm set due_at = now() where kind = $1", kind)
	s.exec("select setval('parley._p_next_alarm', 0)")
	s.exec("select parley.fire_timers()")
}

func TestTimerOfZeroSecondsFiresAtOnce(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	b.exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	got := b.receive("Asking")
	if len(got) != 1 || got[0].MessageTypeName != dialogTimer || got[0].MessageBody != nil || got[0].Validation != "E" {
		t.Fatalf("received %+v", got)
	}
	if got[0].ConversationHandle != initiator {
		t.Errorf("it is of %s", got[0].ConversationHandle)
	}
	b.requireState(initiator, "CO")
}

func TestTimerFiresOnceOnItsOwnSideOnly(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.exec("select parley.begin_conversation_timer($1::uuid, 1000)", target)
	equal(b.session, 0, "select count(*) from parley.queue_contents('Answering')")
	equal(b.session, true, "select dialog_timer > now() + interval '900 s' from parley.conversation_endpoints where conversation_handle = $1", target)
	equal(b.session, true, "select dialog_timer is null from parley.conversation_endpoints where conversation_handle = $1", initiator)
	b.fire("timer")
	if got := typesOf(b.receive("Answering")); !slices.Equal(got, []string{dialogTimer}) {
		t.Errorf("received %q", got)
	}
	b.fire("timer")
	for _, queue := range []string{"Asking", "Answering"} {
		if got := b.receive(queue); len(got) > 0 {
			t.Errorf("received %v", got)
		}
	}
	equal(b.session, true, "select dialog_timer is null from parley.conversation_endpoints where conversation_handle = $1", target)
}

func TestTimerSetAgainReplacesTheEarlierSetting(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	for _, seconds := range []int{1000, 5000, 2000} {
		b.exec("select parley.begin_conversation_timer($1::uuid, $2)", initiator, seconds)
		equal(b.session, true, `
			select dialog_timer between now() + make_interval(secs => $2 - 100) and now() + make_interval(secs => $2)
			from parley.conversation_endpoints where conversation_handle = $1`, initiator, seconds)
	}
	b.fire("timer")
	if got := typesOf(b.receive("Asking")); !slices.Equal(got, []string{dialogTimer}) {
		t.Errorf("received %q", got)
	}
}

// A timer fires in SO too: it wakes a program that begins dialogs and waits for something else.
func TestTimerBeforeTheFirstSend(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	b.exec("select parley.begin_conversation_timer($1::uuid, 0)", handle)
	if got := typesOf(b.receive("Asking")); !slices.Equal(got, []string{dialogTimer}) {
		t.Errorf("received %q", got)
	}
	b.requireState(handle, "SO")
}

func TestTimerDiesWithItsSide(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.exec("select parley.begin_conversation_timer($1::uuid, 1000)", initiator)
	b.end(initiator)
	b.fire("timer")
	if got := b.receive("Asking"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
	b.end(target)
	equal(b.session, 0, "select count(*) from parley._p_alarm")
}

func TestRolledBackTimerDoesNotFire(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	tx := b.begin()
	tx.exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	tx.rollback()
	b.exec("select parley.fire_timers()")
	if got := b.receive("Asking"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
}

func TestReceiveFiresTheTimersOfItsOwnQueue(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	b.exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
	if got := typesOf(b.receive("Asking")); !slices.Equal(got, []string{dialogTimer}) {
		t.Errorf("received %q", got)
	}
	equal(b.session, 1, "select count(*) from parley._p_alarm where kind = 'timer'")
	if got := typesOf(b.receive("Answering")); !slices.Equal(got, []string{dialogTimer}) {
		t.Errorf("received %q", got)
	}
}

func TestWaitingReceiveIsWokenByATimer(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	b.exec("select parley.begin_conversation_timer($1::uuid, 1)", initiator)
	if got := typesOf(b.messages("select * from parley.receive('Asking', timeout => -1)")); !slices.Equal(got, []string{dialogTimer}) {
		t.Errorf("received %q", got)
	}
}

func TestGetConversationGroupFiresTimersToo(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	b.exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	equal(b.session, b.groupOf(initiator), "select parley.get_conversation_group('Asking')::text")
}

func TestFireTimersReturnsHowManyFiredUpToItsLimit(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for range 5 {
		b.exec("select parley.begin_conversation_timer($1::uuid, 0)", b.dialog())
	}
	for _, want := range []int{2, 2, 1, 0} {
		equal(b.session, want, "select parley.fire_timers(2)")
	}
}

func TestLifetimeFailsBothSides(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', lifetime => 1000)")
	b.send(initiator, request, "data")
	target := b.farHandle(initiator)
	b.fire("lifetime")
	b.requireState(initiator, "ER")
	b.requireState(target, "ER")
	b.requireError("Asking", -8489)
	b.requireError("Answering", -8489)
	b.refuses(8429, "select parley.send($1::uuid, '//test/Note', 'x')", target)
	// What was delivered before may still be received.
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"data"}) {
		t.Errorf("received %q", got)
	}
	b.end(initiator)
	b.end(target)
	b.requireState(initiator, "")
	b.requireState(target, "CD")
}

func TestLifetimeEndsBeforeTheFirstSend(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', lifetime => 1000)")
	b.fire("lifetime")
	b.requireState(handle, "ER")
	b.requireError("Asking", -8489)
}

// Messages that wait in the transmission queue when the lifetime ends are never delivered (spec 3.5).
func TestLifetimeEndsWhatIsNotDelivered(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Late', '//test/Work', lifetime => 1000, allow_unknown_target => true)")
	b.send(handle, request, "x")
	b.fire("lifetime")
	b.requireError("Asking", -8489)
	b.exec("select parley.create_service('//test/Late', 'Answering', array['//test/Work'])")
	b.exec("select parley.fire_timers()")
	if got := b.receive("Answering"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
	b.end(handle)
	b.requireState(handle, "")
	equal(b.session, 0, "select count(*) from parley.transmission_queue")
}

// Each side has its own clock (spec 3.2).
func TestLifetimeFailsASideWhoseOtherSideIsGone(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	begin := "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', lifetime => 1000)"
	cleaned := value[string](b.session, begin)
	b.send(cleaned, request, "x")
	left := b.farHandle(cleaned)
	b.exec("select parley.end_conversation($1::uuid, cleanup => true)", cleaned)
	ended := value[string](b.session, begin)
	b.send(ended, request, "x")
	disconnected := b.farHandle(ended)
	b.end(ended)
	b.fire("lifetime")
	b.requireState(left, "ER")
	b.requireState(disconnected, "ER")
	b.requireState(ended, "")
}

func TestReceiveEndsLifetimesOfItsQueue(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"Asking", "Answering"} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', lifetime => 1000)")
			b.send(handle, request, "x")
			b.receive("Answering")
			b.exec("update parley._p_alarm set due_at = now()")
			b.exec("select setval('parley._p_next_alarm', 0)")
			b.requireError(queue, -8489)
		})
	}
}

func TestLifetimeOfAnEndedConversationMeansNothing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', lifetime => 1000)")
	b.send(handle, request, "x")
	target := b.farHandle(handle)
	b.end(target)
	b.end(handle)
	equal(b.session, 0, "select count(*) from parley._p_alarm")
	b.requireState(target, "CD")
}

func TestTimerThatIsPutOffIsLateSinceItWasDueFirst(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	b.exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	b.exec("update parley._p_alarm set due_at = clock_timestamp() - interval '2 minutes'")
	due := value[string](b.session, "select due_at::text from parley._p_alarm")
	holder := b.begin()
	holder.exec("select from parley._p_endpoint where conversation_handle = $1 for update", initiator)
	for range 2 {
		b.exec("select parley.fire_timers()")
		equal(b.session, true, "select due_at > clock_timestamp() from parley._p_alarm")
		b.exec("update parley._p_alarm set due_at = clock_timestamp() - interval '5 seconds'")
		b.exec("select setval('parley._p_next_alarm', 0)")
	}
	equal(b.session, due, "select since::text from parley.diagnose_runtime() where code = 'timers-late'")
	equal(b.session, due, "select dialog_timer::text from parley.conversation_endpoints where conversation_handle = $1", initiator)
	equal(b.session, true, `
		select (m ->> 'timers_late')::integer = 1 and (m ->> 'timer_oldest_due_seconds')::numeric between 120 and 600
		from parley.broker_metrics() as m`)
	holder.rollback()
	// Set anew, it is as any other.
	b.exec("select parley.begin_conversation_timer($1::uuid, 1000)", initiator)
	equal(b.session, 0, "select count(*) from parley.diagnose_runtime(patience => '0') where code = 'timers-late'")
	equal(b.session, 0, "select (parley.broker_metrics() ->> 'timers_late')::integer")
}

func TestTimerFollowsItsServiceToAnotherQueue(t *testing.T) {
	t.Parallel()
	for name, isFired := range map[string]bool{"due": false, "fired": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			b.exec("select parley.create_queue('Other')")
			initiator, target := b.conversation()
			b.send(initiator, request, "x")
			b.exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
			if isFired {
				b.exec("select parley.fire_timers()")
			}
			b.exec("select parley.alter_service('//test/Answerer', queue => 'Other')")
			if got := b.receive("Answering"); len(got) > 0 {
				t.Errorf("received %v from the old queue", got)
			}
			// RECEIVE may have checked less than a millisecond ago, and not check again.
			b.exec("select parley.fire_timers()")
			if got := typesOf(b.receive("Other")); !slices.Equal(got, []string{dialogTimer, request}) {
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
			b := newWorld(t)
			one, moved := b.conversation()
			_, resident := b.conversation()
			b.send(one, request, "x")
			b.exec("select parley.begin_conversation_timer($1::uuid, 0)", moved)
			if isFired {
				b.exec("select parley.fire_timers()")
			}
			b.exec("select parley.move_conversation($1::uuid, $2::uuid)", moved, b.groupOf(resident))
			b.exec("select parley.fire_timers()")
			got := values[string](b.session, "select message_type_name from parley.receive('Answering', conversation_group_id => $1::uuid)", b.groupOf(resident))
			if !slices.Equal(got, []string{dialogTimer, request}) {
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
			b := newWorld(t)
			initiator, target := b.conversation()
			b.send(initiator, request, "poison")
			b.exec("select parley._p_set_aside_conversation(m.lane / 16, m.endpoint_id, m.position, 5) from parley._p_message as m")
			b.exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
			if isFired {
				b.exec("select parley.fire_timers()")
			}
			if got := typesOf(b.receive("Answering")); len(got) > 0 {
				t.Errorf("received %q from what is set aside", got)
			}
			b.exec("select parley.retry_poison($1::uuid)", target)
			b.exec("select parley.fire_timers()")
			if got := typesOf(b.receive("Answering")); !slices.Equal(got, []string{dialogTimer, request}) {
				t.Errorf("received %q", got)
			}
		})
	}
}

// A timer that was set goes off when the other side has ended too: this side is still to end (spec 4.8).
func TestTimerFiresWhenTheOtherSideHasEnded(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.exec("select parley.begin_conversation_timer($1::uuid, 1000)", target)
	b.end(initiator)
	b.requireState(target, "DI")
	b.bodies("Answering")
	b.fire("timer")
	if got := typesOf(b.receive("Answering")); !slices.Equal(got, []string{dialogTimer}) {
		t.Errorf("received %q", got)
	}
}
