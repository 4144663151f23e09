package sql_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DialogTimer first, then Error, then the rest by sequence number (spec 3.4): an Error overtakes data that waits.
func TestTimerAndErrorOvertakeData(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.send(target, reply, "1")
	b.send(target, reply, "2")
	b.exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	b.exec("select parley.fire_timers()")
	b.endWithError(target, 7, "no")
	got := b.receive("Asking")
	if want := []string{dialogTimer, errorMessage, reply, reply}; !slices.Equal(typesOf(got), want) {
		t.Fatalf("received %q, want %q", typesOf(got), want)
	}
	sequence := []int64{}
	for _, m := range got {
		sequence = append(sequence, m.MessageSequenceNumber)
	}
	if !slices.Equal(sequence[2:], []int64{0, 1}) {
		t.Errorf("sequence numbers are %v", sequence)
	}
}

func TestErrorOvertakesDataWhateverTheTop(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.exec("select parley.send_batch($1::uuid, '//test/Reply', array(select i::text from generate_series(1, 3000) as i))", target)
	b.endWithError(target, 7, "no")
	for _, want := range []string{errorMessage, reply} {
		if got := typesOf(b.messages("select * from parley.receive('Asking', 1)")); !slices.Equal(got, []string{want}) {
			t.Errorf("received %q, want %q", got, want)
		}
	}
	if got := b.receive("Asking"); len(got) != 2999 || string(got[0].MessageBody) != "2" || string(got[2998].MessageBody) != "3000" {
		t.Errorf("received %d more", len(got))
	}
	b.end(initiator)
}

func TestEndDialogKeepsItsPlace(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	_, target := b.conversation()
	b.send(target, reply, "1")
	b.send(target, reply, "2")
	b.end(target)
	got := b.receive("Asking")
	if want := []string{reply, reply, endDialog}; !slices.Equal(typesOf(got), want) {
		t.Errorf("received %q, want %q", typesOf(got), want)
	}
	if got[2].MessageSequenceNumber != 2 || got[2].MessageBody != nil || got[2].Validation != "E" {
		t.Errorf("EndDialog is %+v", got[2])
	}
}

// family gives three conversations of one group, with the priorities 3, 8 and 5, and their targets.
func (s session) family() (targets []string) {
	s.Helper()
	group := value[string](s, "select gen_random_uuid()::text")
	for _, level := range []int{3, 8, 5} {
		s.exec("select parley.create_broker_priority('p', local_service_name => '//test/Asker', priority_level => $1)", level)
		handle := value[string](s, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', related_conversation_group => $1)", group)
		s.exec("select parley.drop_broker_priority('p')")
		s.send(handle, request, "x")
		targets = append(targets, s.farHandle(handle))
	}
	return targets
}

func TestConversationsOfAGroupComeByPriorityOneAfterTheOther(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	targets := b.family()
	for range 2 {
		for i, body := range []string{"three", "eight", "five"} {
			b.send(targets[i], reply, body)
		}
	}
	if got := b.bodies("Asking"); !slices.Equal(got, []string{"eight", "eight", "five", "five", "three", "three"}) {
		t.Errorf("received %q", got)
	}
}

func TestTopCutsThroughConversationsOfAGroup(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	targets := b.family()
	for i, body := range []string{"three", "eight", "five"} {
		b.exec("select parley.send_batch($1::uuid, '//test/Reply', array[$2 || ' 1', $2 || ' 2', $2 || ' 3'])", targets[i], body)
	}
	for _, want := range [][]string{
		{"eight 1", "eight 2"}, {"eight 3", "five 1"}, {"five 2", "five 3"}, {"three 1", "three 2"}, {"three 3"}, {},
	} {
		if got := bodiesOf(b.messages("select * from parley.receive('Asking', 2)")); !slices.Equal(got, want) {
			t.Errorf("received %q, want %q", got, want)
		}
	}
}

func TestTimerOfAnyConversationComesBeforeItsDataOnly(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	targets := b.family()
	for i, body := range []string{"three", "eight", "five"} {
		b.send(targets[i], reply, body)
	}
	b.exec("select parley.begin_conversation_timer($1::uuid, 0)", b.farHandle(targets[2]))
	b.exec("select parley.fire_timers()")
	if got := typesOf(b.receive("Asking")); !slices.Equal(got, []string{reply, dialogTimer, reply, reply}) {
		t.Errorf("received %q", got)
	}
}

// The group with the message of the highest priority is first (spec 4.3), and the tie goes to the one that came first.
func TestGroupsComeByPriorityThenByArrival(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	want := map[int][]string{}
	for _, level := range []int{5, 1, 10, 7, 5, 10} {
		b.exec("select parley.create_broker_priority('p', local_service_name => '//test/Answerer', priority_level => $1)", level)
		handle := b.dialog()
		b.send(handle, request, handle)
		b.exec("select parley.drop_broker_priority('p')")
		want[level] = append(want[level], handle)
	}
	for _, level := range []int{10, 10, 7, 5, 5, 1} {
		got := b.receive("Answering")
		if len(got) != 1 || int(got[0].Priority) != level || string(got[0].MessageBody) != want[level][0] {
			t.Errorf("received %v, want priority %d from %v", got, level, want[level])
		}
		want[level] = want[level][1:]
	}
}

// Only conversations with messages in the queue count (spec 4.3).
func TestPriorityOfAGroupIsThatOfItsWaitingMessages(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	targets := b.family()
	_, plain := b.conversation()
	b.send(targets[0], reply, "three")
	b.send(plain, reply, "plain")
	for _, want := range []string{"plain", "three"} {
		if got := b.bodies("Asking"); !slices.Equal(got, []string{want}) {
			t.Errorf("received %q, want %q", got, want)
		}
	}
}

func TestLockedGroupsOfHigherPriorityAreSkipped(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	targets := b.family()
	b.send(targets[1], reply, "eight")
	_, plain := b.conversation()
	b.send(plain, reply, "plain")
	tx := b.begin()
	if got := tx.bodies("Asking"); !slices.Equal(got, []string{"eight"}) {
		t.Fatalf("received %q", got)
	}
	if got := b.bodies("Asking"); !slices.Equal(got, []string{"plain"}) {
		t.Errorf("received %q", got)
	}
}

// An older snapshot does not see what came later: nothing is lost by it.
func TestReceiveAtRepeatableRead(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator := b.dialog()
	b.send(initiator, request, "before")
	tx := b.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	tx.exec("select 1")
	b.send(initiator, request, "after")
	late := b.dialog()
	b.send(late, request, "late")
	if got := tx.bodies("Answering"); !slices.Equal(got, []string{"before"}) {
		t.Errorf("received %q", got)
	}
	// It cannot see a message come, so it does not wait for one.
	if got := tx.messages("select * from parley.receive('Answering', timeout => -1)"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
	tx.commit()
	for _, want := range []string{"after", "late"} {
		if got := b.bodies("Answering"); !slices.Equal(got, []string{want}) {
			t.Errorf("received %q, want %q", got, want)
		}
	}
}

func TestMessageIsNotReceivedTwiceAtRepeatableRead(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.send(b.dialog(), request, "x")
	tx := b.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	tx.exec("select 1")
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Fatalf("received %q", got)
	}
	// The snapshot still has the message; PostgreSQL refuses to delete it a second time.
	_, err := tx.db.Exec(t.Context(), "select parley.receive('Answering')")
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal.Code != "40001" {
		t.Errorf("got %v, want a serialization failure", err)
	}
}

// A row whose group is locked, and behind it, further than a first scan reaches, one that is free.
func TestReceiveFindsAMessageBehindALockedOneAndAGap(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"parley.receive('Answering')", "parley.receive('Answering', groups => 10)"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			b.send(b.dialog(), request, "held")
			behind := b.dialog()
			holder := b.begin()
			holder.exec("select from parley.receive('Answering', top => 1)")
			// Numbers that senders have drawn and given up.
			b.exec(`
				select nextval(q.position_sequence)
				from parley._p_queue as q, generate_series(1, 20000)
				where q.lookup_name = 'Answering'`)
			b.send(behind, request, "behind")
			if got := values[string](b.session, "select parley.body_text(message_body) from "+call); !slices.Equal(got, []string{"behind"}) {
				t.Errorf("received %q, want the message behind the gap", got)
			}
			holder.rollback()
		})
	}
}
