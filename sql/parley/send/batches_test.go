package send_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestBatchArrivesInTheOrderOfItsArray(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "before")
	for _, statement := range []string{
		"select parley.send_batch_binary($1::uuid, '//test/Request', array['1', '2']::bytea[])",
		"select parley.send_batch($1::uuid, '//test/Request', array['3', '4']::text[])",
		"select parley.send_batch($1::uuid, '//test/Request', array['5', '6']::jsonb[]::text[])",
		"select parley.send_batch($1::uuid, '//test/Request', array['7'])",
		"select parley.send_batch($1::uuid, '//test/Request', '{}'::text[])",
		"select parley.send_batch($1::uuid, '//test/Request', null::text[])",
		// An array may count from any number.
		"select parley.send_batch($1::uuid, '//test/Request', '[5:6]={8,9}'::text[])",
		"select parley.send_batch_binary($1::uuid, '//test/Request', '[-1:0]={10,11}'::bytea[])",
	} {
		b.Exec(statement, handle)
	}
	want := []string{"before"}
	for i := 1; i <= 11; i++ {
		want = append(want, strconv.Itoa(i))
	}
	if got := b.Bodies("Answering"); !slices.Equal(got, want) {
		t.Errorf("received %q", got)
	}
}

func TestBatchMayBeginAConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	b.Exec("select parley.send_batch($1::uuid, '//test/Request', array['1', null, '', '4'])", handle)
	b.RequireState(handle, "CO")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"1", "", "", "4"}) {
		t.Errorf("received %q", got)
	}
}

// The target would receive EndDialog as its first message, which the protocol forbids (spec 3.2).
func TestBatchOfNoMessagesBeginsNothing(t *testing.T) {
	t.Parallel()
	for _, bodies := range []string{"'{}'::text[]", "null::text[]"} {
		t.Run(bodies, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			handle := b.Dialog()
			b.Exec("select parley.send_batch($1::uuid, '//test/Request', "+bodies+")", handle)
			b.RequireState(handle, "SO")
			sqltest.Equal(b.Session, 1, "select count(*) from parley.conversation_endpoints")
			b.Refuses(8428, "select parley.send_batch($1::uuid, '//test/Nothing', "+bodies+")", handle)
			b.End(handle)
			b.RequireState(handle, "")
			sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Answering')")
		})
	}
}

func TestMillionSmallMessagesInOneBatch(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t).Unhurried()
	handle := b.Dialog()
	b.Exec("select parley.send_batch($1::uuid, '//test/Request', array(select i::text from generate_series(0, 999999) as i))", handle)
	sqltest.Equal(b, 1000000, "select waiting from parley.stuck_conversations where conversation_handle = $1", b.FarHandle(handle))
	sqltest.Equal(b, "1000000 1000000 t", `
		select format('%s %s %s', count(*), count(distinct message_sequence_number), bool_and(convert_from(message_body, 'UTF8')::bigint = message_sequence_number))
		from parley.receive('Answering')`)
}

// sending is one statement of a history: how many messages, and how large each is.
type sending struct{ count, size int }

// Messages sent in any pieces, and received in any pieces, are 0 to n-1, once each and in order.
func TestAnyPiecesComeTogetherInOrder(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('Keeping', retention => true)")
	b.Exec("select parley.create_service('//test/Keeper', 'Keeping', array['//test/Work'])")
	rapid.Check(t, func(rt *rapid.T) {
		target := rapid.SampledFrom([]string{"//test/Answerer", "//test/Keeper"}).Draw(rt, "target")
		history := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) sending {
			return sending{
				count: rapid.OneOf(rapid.IntRange(1, 3), rapid.IntRange(1, 200), rapid.IntRange(1, 3000)).Draw(rt, "count"),
				size:  rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 500), rapid.IntRange(0, 9000)).Draw(rt, "size"),
			}
		}), 1, 3).Draw(rt, "history")
		tops := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(1, 300), rapid.IntRange(1, 6000)), 1, 6).Draw(rt, "tops")
		inSteps := rapid.Bool().Draw(rt, "receiving between sending")

		h := &pieces{Session: b.Session, handle: b.DialogTo(target), queue: map[string]string{"//test/Answerer": "Answering", "//test/Keeper": "Keeping"}[target]}
		for _, s := range history {
			// Large bodies are costly, not interesting in number.
			if s.count*s.size > 500_000 {
				s.count = 500_000/s.size + 1
			}
			h.sendSome(s)
			if inSteps {
				h.receiveSome(rt, tops[0])
			}
		}
		for range 5 {
			for _, top := range tops {
				h.receiveSome(rt, top)
			}
		}
		// Small steps have shown what they can.
		h.receiveSome(rt, h.sent)
		h.receiveSome(rt, 1)
		h.Exec("select parley.end_conversation(conversation_handle, cleanup => true) from parley.conversation_endpoints")
	})
}

// pieces is a conversation whose messages are their numbers, with blanks behind.
type pieces struct {
	sqltest.Session
	handle, queue  string
	sent, received int
}

func (h *pieces) sendSome(s sending) {
	h.Helper()
	if s.count == 1 {
		h.Send(h.handle, sqltest.Request, pad(h.sent, s.size))
	} else {
		h.Exec("select parley.send_batch($1::uuid, '//test/Request', array(select rpad(i::text, greatest(length(i::text), $3)) from generate_series($2::int, $2 + $4 - 1) as i))",
			h.handle, h.sent, s.size, s.count)
	}
	h.sent += s.count
}

func (h *pieces) receiveSome(rt *rapid.T, top int) {
	h.Helper()
	got := h.Messages("select * from parley.receive($1, $2)", h.queue, top)
	if want := min(top, h.sent-h.received); len(got) != want {
		rt.Fatalf("received %d, want %d: %d were sent and %d received before", len(got), want, h.sent, h.received)
	}
	for _, m := range got {
		if strings.TrimRight(string(m.MessageBody), " ") != strconv.Itoa(h.received) || m.MessageSequenceNumber != int64(h.received) {
			rt.Fatalf("message %d has number %d and body %.20q", h.received, m.MessageSequenceNumber, m.MessageBody)
		}
		h.received++
	}
}

func pad(number, size int) string { return fmt.Sprintf("%-*d", size, number) }
