package receive_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

// DialogTimer first, then Error, then the rest by sequence number (spec 3.4): an Error overtakes data that waits.
func TestTimerAndErrorOvertakeData(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Send(target, sqltest.Reply, "1")
	b.Send(target, sqltest.Reply, "2")
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	b.Exec("select parley.fire_timers()")
	b.EndWithError(target, 7, "no")
	got := b.Receive("Asking")
	if want := []string{sqltest.DialogTimer, sqltest.ErrorMessage, sqltest.Reply, sqltest.Reply}; !slices.Equal(sqltest.TypesOf(got), want) {
		t.Fatalf("received %q, want %q", sqltest.TypesOf(got), want)
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
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Exec("select parley.send_batch($1::uuid, '//test/Reply', array(select i::text from generate_series(1, 3000) as i))", target)
	b.EndWithError(target, 7, "no")
	for _, want := range []string{sqltest.ErrorMessage, sqltest.Reply} {
		if got := sqltest.TypesOf(b.Messages("select * from parley.receive('Asking', 1)")); !slices.Equal(got, []string{want}) {
			t.Errorf("received %q, want %q", got, want)
		}
	}
	if got := b.Receive("Asking"); len(got) != 2999 || string(got[0].MessageBody) != "2" || string(got[2998].MessageBody) != "3000" {
		t.Errorf("received %d more", len(got))
	}
	b.End(initiator)
}

func TestEndDialogKeepsItsPlace(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	_, target := b.Conversation()
	b.Send(target, sqltest.Reply, "1")
	b.Send(target, sqltest.Reply, "2")
	b.End(target)
	got := b.Receive("Asking")
	if want := []string{sqltest.Reply, sqltest.Reply, sqltest.EndDialog}; !slices.Equal(sqltest.TypesOf(got), want) {
		t.Errorf("received %q, want %q", sqltest.TypesOf(got), want)
	}
	if got[2].MessageSequenceNumber != 2 || got[2].MessageBody != nil || got[2].Validation != "E" {
		t.Errorf("EndDialog is %+v", got[2])
	}
}

// family gives three conversations of one group, with the priorities 3, 8 and 5, and their targets.
func family(s sqltest.Session) (targets []string) {
	s.Helper()
	group := sqltest.Value[string](s, "select gen_random_uuid()::text")
	for _, level := range []int{3, 8, 5} {
		s.Exec("select parley.create_broker_priority('p', local_service_name => '//test/Asker', priority_level => $1)", level)
		handle := sqltest.Value[string](s, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', related_conversation_group => $1)", group)
		s.Exec("select parley.drop_broker_priority('p')")
		s.Send(handle, sqltest.Request, "x")
		targets = append(targets, s.FarHandle(handle))
	}
	return targets
}

func TestConversationsOfAGroupComeByPriorityOneAfterTheOther(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	targets := family(b.Session)
	for range 2 {
		for i, body := range []string{"three", "eight", "five"} {
			b.Send(targets[i], sqltest.Reply, body)
		}
	}
	if got := b.Bodies("Asking"); !slices.Equal(got, []string{"eight", "eight", "five", "five", "three", "three"}) {
		t.Errorf("received %q", got)
	}
}

func TestTopCutsThroughConversationsOfAGroup(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	targets := family(b.Session)
	for i, body := range []string{"three", "eight", "five"} {
		b.Exec("select parley.send_batch($1::uuid, '//test/Reply', array[$2 || ' 1', $2 || ' 2', $2 || ' 3'])", targets[i], body)
	}
	for _, want := range [][]string{
		{"eight 1", "eight 2"}, {"eight 3", "five 1"}, {"five 2", "five 3"}, {"three 1", "three 2"}, {"three 3"}, {},
	} {
		if got := sqltest.BodiesOf(b.Messages("select * from parley.receive('Asking', 2)")); !slices.Equal(got, want) {
			t.Errorf("received %q, want %q", got, want)
		}
	}
}

func TestTimerOfAnyConversationComesBeforeItsDataOnly(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	targets := family(b.Session)
	for i, body := range []string{"three", "eight", "five"} {
		b.Send(targets[i], sqltest.Reply, body)
	}
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", b.FarHandle(targets[2]))
	b.Exec("select parley.fire_timers()")
	if got := sqltest.TypesOf(b.Receive("Asking")); !slices.Equal(got, []string{sqltest.Reply, sqltest.DialogTimer, sqltest.Reply, sqltest.Reply}) {
		t.Errorf("received %q", got)
	}
}

// The group with the message of the highest priority is first (spec 4.3), and the tie goes to the one that came first.
func TestGroupsComeByPriorityThenByArrival(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	want := map[int][]string{}
	for _, level := range []int{5, 1, 10, 7, 5, 10} {
		b.Exec("select parley.create_broker_priority('p', local_service_name => '//test/Answerer', priority_level => $1)", level)
		handle := b.Dialog()
		b.Send(handle, sqltest.Request, handle)
		b.Exec("select parley.drop_broker_priority('p')")
		want[level] = append(want[level], handle)
	}
	for _, level := range []int{10, 10, 7, 5, 5, 1} {
		got := b.Receive("Answering")
		if len(got) != 1 || int(got[0].Priority) != level || string(got[0].MessageBody) != want[level][0] {
			t.Errorf("received %v, want priority %d from %v", got, level, want[level])
		}
		want[level] = want[level][1:]
	}
}

// Only conversations with messages in the queue count (spec 4.3).
func TestPriorityOfAGroupIsThatOfItsWaitingMessages(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	targets := family(b.Session)
	_, plain := b.Conversation()
	b.Send(targets[0], sqltest.Reply, "three")
	b.Send(plain, sqltest.Reply, "plain")
	for _, want := range []string{"plain", "three"} {
		if got := b.Bodies("Asking"); !slices.Equal(got, []string{want}) {
			t.Errorf("received %q, want %q", got, want)
		}
	}
}

func TestLockedGroupsOfHigherPriorityAreSkipped(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	targets := family(b.Session)
	b.Send(targets[1], sqltest.Reply, "eight")
	_, plain := b.Conversation()
	b.Send(plain, sqltest.Reply, "plain")
	tx := b.Begin()
	if got := tx.Bodies("Asking"); !slices.Equal(got, []string{"eight"}) {
		t.Fatalf("received %q", got)
	}
	if got := b.Bodies("Asking"); !slices.Equal(got, []string{"plain"}) {
		t.Errorf("received %q", got)
	}
}

// An older snapshot does not see what came later: nothing is lost by it.
func TestReceiveAtRepeatableRead(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "before")
	tx := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	tx.Exec("select 1")
	b.Send(initiator, sqltest.Request, "after")
	late := b.Dialog()
	b.Send(late, sqltest.Request, "late")
	if got := tx.Bodies("Answering"); !slices.Equal(got, []string{"before"}) {
		t.Errorf("received %q", got)
	}
	// It cannot see a message come, so it does not wait for one.
	if got := tx.Messages("select * from parley.receive('Answering', timeout => -1)"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
	tx.Commit()
	for _, want := range []string{"after", "late"} {
		if got := b.Bodies("Answering"); !slices.Equal(got, []string{want}) {
			t.Errorf("received %q, want %q", got, want)
		}
	}
}

func TestMessageIsNotReceivedTwiceAtRepeatableRead(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Send(b.Dialog(), sqltest.Request, "x")
	tx := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	tx.Exec("select 1")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Fatalf("received %q", got)
	}
	// The snapshot still has the message; PostgreSQL refuses to delete it a second time.
	_, err := tx.DB.Exec(t.Context(), "select parley.receive('Answering')")
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
			b := sqltest.NewWorld(t)
			b.Send(b.Dialog(), sqltest.Request, "held")
			behind := b.Dialog()
			holder := b.Begin()
			holder.Exec("select from parley.receive('Answering', top => 1)")
			// Numbers that senders have drawn and given up.
			b.Exec(`
				select nextval(q.position_sequence)
				from parley._p_queue as q, generate_series(1, 20000)
				where q.lookup_name = 'Answering'`)
			b.Send(behind, sqltest.Request, "behind")
			if got := sqltest.Values[string](b.Session, "select parley.body_text(message_body) from "+call); !slices.Equal(got, []string{"behind"}) {
				t.Errorf("received %q, want the message behind the gap", got)
			}
			holder.Rollback()
		})
	}
}
