package conversation_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// sidesOf shows the rows of both sides of a conversation, and the messages and alarms that wait for them.
const sidesOf = `
	select coalesce(string_agg(concat_ws(' ', e.is_initiator, e.state, e.is_plain, e.has_delayed, e.destination_lane is null,
			(select array_agg(m.message_type_id order by m.position) from parley._p_message as m where m.endpoint_id = e.endpoint_id),
			(select array_agg(a.kind order by a.kind) from parley._p_alarm as a where a.endpoint_id = e.endpoint_id),
			(select count(*) from parley._p_retained as r where r.endpoint_id = e.endpoint_id),
			(select count(*) from parley._p_delayed_send as d where d.endpoint_id = e.endpoint_id)
		), E'\n' order by e.is_initiator), '') || (select count(*) from parley._p_tombstone as t where t.conversation_id = $1::uuid)
	from parley._p_endpoint as e
	where e.conversation_id = $1::uuid`

// Each of these makes a conversation and gives the handle of the side that is to end.
var endings = map[string]func(s sqltest.Session) string{
	"the target":        func(s sqltest.Session) string { _, target := s.Conversation(); return target },
	"the initiator":     func(s sqltest.Session) string { initiator, _ := s.Conversation(); return initiator },
	"nothing was sent":  func(s sqltest.Session) string { return s.Dialog() },
	"unread on a side":  func(s sqltest.Session) string { i, t := s.Conversation(); s.Send(t, sqltest.Reply, "x"); return i },
	"unread on another": func(s sqltest.Session) string { i, t := s.Conversation(); s.Send(i, sqltest.Request, "x"); return t },
	"the second side":   func(s sqltest.Session) string { i, t := s.Conversation(); s.End(t); return i },
	"the second target": func(s sqltest.Session) string { i, t := s.Conversation(); s.End(i); return t },
	"after an error":    func(s sqltest.Session) string { i, t := s.Conversation(); s.EndWithError(t, 1, "x"); return i },
	"a timer": func(s sqltest.Session) string {
		i, t := s.Conversation()
		s.Exec("select parley.begin_conversation_timer($1::uuid, 500), parley.begin_conversation_timer($2::uuid, 500)", i, t)
		return t
	},
	"a second side with a timer": func(s sqltest.Session) string {
		i, t := s.Conversation()
		s.Exec("select parley.begin_conversation_timer($1::uuid, 500)", i)
		s.End(t)
		return i
	},
	"sent for later": func(s sqltest.Session) string {
		i, _ := s.Conversation()
		s.Exec("select parley.send($1::uuid, $2, 'later', deliver_at => now() + interval '1 hour')", i, sqltest.Request)
		return i
	},
	"a group of two": func(s sqltest.Session) string {
		i, _ := s.Conversation()
		s.Send(sqltest.Value[string](s, `
			select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', related_conversation => $1)::text`, i),
			sqltest.Request, "related")
		return i
	},
}

func TestEndConversationsLeavesWhatEndOfEachLeaves(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, retention := range []bool{false, true} {
		b.Exec("select parley.alter_queue('Asking', retention => $1), parley.alter_queue('Answering', retention => $1)", retention)
		var alone, together []string
		var names []string
		for name, begin := range endings {
			names = append(names, name)
			alone, together = append(alone, begin(b.Session)), append(together, begin(b.Session))
		}
		conversation := func(handles []string) []string {
			return sqltest.Values[string](b.Session, `
				select e.conversation_id::text
				from unnest($1::uuid[]) with ordinality as u (handle, number)
				join parley._p_endpoint as e on e.conversation_handle = u.handle
				order by u.number`, handles)
		}
		ofAlone, ofTogether := conversation(alone), conversation(together)
		for _, handle := range alone {
			b.End(handle)
		}
		sqltest.Equal(b.Session, len(together), "select parley.end_conversations($1::uuid[] || $1::uuid[])", together)
		for i, name := range names {
			want, got := sqltest.Value[string](b.Session, sidesOf, ofAlone[i]), sqltest.Value[string](b.Session, sidesOf, ofTogether[i])
			if got != want {
				t.Errorf("%s, retention %v: together\n%s\nand alone\n%s", name, retention, got, want)
			}
		}
	}
}

func TestEndConversationsEndsAllOrNone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	_, open := b.Conversation()
	_, ended := b.Conversation()
	b.End(ended)
	for number, bad := range map[int]string{8427: ended, 8426: "00000000-0000-0000-0000-000000000001"} {
		b.Refuses(number, "select parley.end_conversations(array[$1, $2]::uuid[])", open, bad)
	}
	b.Refuses(8418, "select parley.end_conversations(array[$1, null]::uuid[])", open)
	b.RequireState(open, "CO")
	sqltest.Equal(b.Session, "0 0", "select parley.end_conversations('{}') || ' ' || parley.end_conversations(null)")
	// Both sides of one conversation: the second finds that the first has ended.
	far := b.FarHandle(open)
	sqltest.Equal(b.Session, 2, "select parley.end_conversations(array[$1, $2]::uuid[])", open, far)
	sqltest.Equal(b.Session, 0,
		"select count(*) from parley.conversation_endpoints where conversation_handle in ($1, $2) and state <> 'CD'", open, far)
}

// Of several handles that lead nowhere the first that is given is named, whatever their values are.
func TestEndConversationsNamesTheFirstHandleThatLeadsNowhere(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.End(target)
	b.End(initiator)
	b.Refuses(8427, "select parley.end_conversations(array[$1, $2]::uuid[])", target, initiator)
	b.Refuses(8426, "select parley.end_conversations(array[$1, $2]::uuid[])", initiator, target)
}

func TestRightsOfEndConversationsAreThoseOfEachEnd(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	outsider, reader, owner := b.Role("outsider"), b.Role("reader"), b.Role("owner")
	b.Exec("select parley.grant('RECEIVE', 'queue', 'Answering', $1)", reader)
	b.Exec("select parley.alter_authorization('service', '//test/Answerer', $1)", owner)
	for _, role := range []string{reader, owner} {
		_, mine := b.Conversation()
		initiator, second := b.Conversation()
		b.End(initiator)
		b.As(outsider).Refuses(229, "select parley.end_conversations($1::uuid[])", []string{mine, second})
		// The other side is of another role.
		b.As(role).Refuses(229, "select parley.end_conversations($1::uuid[])", []string{mine, second, b.Dialog()})
		b.RequireState(mine, "CO")
		sqltest.Equal(b.As(role), 2, "select parley.end_conversations($1::uuid[])", []string{mine, second})
		b.RequireState(mine, "DO")
	}
}

func TestTwoSessionsMayEndManyConversationsFromBothSidesAtOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	var initiators, targets []string
	for range 5 {
		initiator, target := b.Conversation()
		initiators, targets = append(initiators, initiator), append([]string{target}, targets...)
	}
	tx := b.Begin()
	tx.Exec("select parley.end_conversations($1::uuid[])", initiators)
	other := b.Blocked("select parley.end_conversations($1::uuid[])", targets)
	tx.Commit()
	other.RequireSuccess()
	sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_endpoints where state <> 'CD'")
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 0, whatIsLeft)
}

// A reader of many groups ends what it has received in the statement that receives it.
func TestReaderOfManyGroupsEndsThemInOneStatement(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for i := range 7 {
		b.Send(b.Dialog(), sqltest.Request, fmt.Sprint(i))
	}
	for _, queue := range []string{"Answering", "Asking"} {
		for _, want := range []int{5, 2, 0} {
			sqltest.Equal(b.Session, want,
				"select parley.end_conversations(array_agg(r.conversation_handle)) from parley.receive($1, groups => 5) as r", queue)
		}
	}
	sqltest.Equal(b.Session, 0, whatIsLeft)
}
