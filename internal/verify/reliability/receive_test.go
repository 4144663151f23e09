package reliability_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

const (
	typeError       = "http://schemas.microsoft.com/SQL/ServiceBroker/Error"
	typeEndDialog   = "http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog"
	typeDialogTimer = "http://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer"
)

// message holds the fields of a received message that a test checks.
type message struct {
	Handle   string
	Group    string
	Sequence int64
	Order    int64
	Type     string
	Body     string
}

// from reports what to receive; the zero value is the next group of the target's queue, all of it.
type from struct {
	queue   string
	top     int
	handle  string
	group   string
	timeout int
}

func (s *session) tryReceive(ctx context.Context, what from) ([]message, error) {
	if what.queue == "" {
		what.queue = "target_queue"
	}
	rows, err := s.conn.Query(ctx, `
		select conversation_handle::text, conversation_group_id::text, message_sequence_number, queuing_order, message_type_name,
			coalesce(convert_from(message_body, 'UTF8'), '')
		from parley.receive(
			$1, nullif($2::int, 0), coalesce(nullif($3, ''), 'ffffffff-ffff-ffff-ffff-ffffffffffff')::uuid,
			coalesce(nullif($4, ''), 'ffffffff-ffff-ffff-ffff-ffffffffffff')::uuid, nullif($5::int, 0)
		)`,
		what.queue, what.top, what.handle, what.group, what.timeout)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[message])
}

func (s *session) receive(what from) []message {
	s.t.Helper()
	messages, err := s.tryReceive(context.Background(), what)
	if err != nil {
		s.t.Fatalf("receive %+v: %v", what, err)
	}
	return messages
}

func bodies(messages []message) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = m.Body
	}
	return out
}

func wantBodies(t testing.TB, got []message, want ...string) {
	t.Helper()
	if !slices.Equal(bodies(got), want) {
		t.Fatalf("received %q, want %q", bodies(got), want)
	}
}
