package demo

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// laboratory connects to a database with the objects of the demo in it.
func laboratory(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), parleytest.DSN(t, parleytest.Database(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeConn(context.Background(), conn) })
	if err := furnish(t.Context(), conn, ledgerTable, initiatorObjects, targetObjects); err != nil {
		t.Fatal(err)
	}
	return conn
}

// writeHistory writes what a good run of two conversations leaves: on each, two senders sent four messages, of which
// every second is larger than what the table keeps of it. The arrivals of the two senders alternate.
func writeHistory(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	bodies := newBodyWriter(0)
	for conversation := range 2 {
		for sequence := 1; sequence <= 4; sequence++ {
			for sender := range 2 {
				body := bodies.write(conversation, sender, sequence, 100+sequence%2*4000)
				_, err := conn.Exec(t.Context(), `
					with sent as (
						insert into sent_ledger (conversation, sender, sequence, body_bytes) values ($1, $2, $3, octet_length($4::bytea))
					)
					insert into message_drop (message_val, payload_md5)
					values (substring($4::bytea from 1 for 2000), md5(substring($4::bytea from 29))::uuid)`, conversation, sender, sequence, body)
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// A checker that has never found anything proves nothing.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	// The message that the cases do something to: conversation 1, sender 0, message 2, and its row of the table.
	const (
		isIt  = `conversation = 1 and sender = 0 and sequence = 2`
		rowOf = `substring(message_val from 1 for 12) = '\x000000010000000000000002'`
	)
	for _, c := range []struct {
		name, damage string
		want         Findings
		example      string
	}{
		{
			name: "nothing in a good history",
			want: Findings{MessagesSent: 16, MessagesReceived: 16},
		},
		{
			name:    "a lost message",
			damage:  `delete from message_drop where ` + rowOf,
			want:    Findings{MessagesSent: 16, MessagesReceived: 15, Lost: 1},
			example: "Conversation 1, sender 0, message 2 (100 bytes) was sent and did not arrive.",
		},
		{
			name:    "the loss of all that was sent last",
			damage:  `delete from message_drop where substring(message_val from 9 for 4) = '\x00000004'`,
			want:    Findings{MessagesSent: 16, MessagesReceived: 12, Lost: 4},
			example: "Conversation 0, sender 0, message 4 (100 bytes) was sent and did not arrive.",
		},
		{
			name:    "a duplicate that comes at once",
			damage:  `insert into message_drop (message_val, payload_md5) select message_val, payload_md5 from message_drop where substring(message_val from 9 for 4) = '\x00000004' limit 1`,
			want:    Findings{MessagesSent: 16, MessagesReceived: 17, Duplicated: 1},
			example: "arrived 2 times.",
		},
		{
			name: "two duplicates that come late, which are not out of order besides",
			damage: `insert into message_drop (message_val, payload_md5) select message_val, payload_md5 from message_drop, generate_series(1, 2)
				where ` + rowOf,
			want:    Findings{MessagesSent: 16, MessagesReceived: 18, Duplicated: 2},
			example: "Conversation 1, sender 0, message 2 arrived 3 times.",
		},
		{
			name: "a message that arrived after a later one",
			damage: `with late as (delete from message_drop where ` + rowOf + ` returning message_val, payload_md5)
				insert into message_drop (message_val, payload_md5) select message_val, payload_md5 from late`,
			want:    Findings{MessagesSent: 16, MessagesReceived: 16, OutOfOrder: 1},
			example: "Conversation 1, sender 0, message 2 arrived after message 4.",
		},
		{
			name:    "a history that is backwards",
			damage:  `create temp table old as select * from message_drop; truncate message_drop; insert into message_drop (message_val, payload_md5) select message_val, payload_md5 from old order by message_drop_id desc`,
			want:    Findings{MessagesSent: 16, MessagesReceived: 16, OutOfOrder: 12},
			example: "arrived after message 4.",
		},
		{
			name:    "a body whose end has changed, which the table does not keep",
			damage:  `update message_drop set payload_md5 = md5('else')::uuid where ` + rowOf,
			want:    Findings{MessagesSent: 16, MessagesReceived: 16, Corrupted: 1},
			example: "Conversation 1, sender 0, message 2 of 100 bytes arrived changed: 100 bytes of it are in the table.",
		},
		{
			name:    "a body without its end",
			damage:  `update message_drop set message_val = substring(message_val from 1 for 99) where ` + rowOf,
			want:    Findings{MessagesSent: 16, MessagesReceived: 16, Corrupted: 1},
			example: "99 bytes of it are in the table.",
		},
		{
			name:    "a body with the header of another message",
			damage:  `update message_drop set message_val = overlay(message_val placing '\x00000003' from 9 for 4) where ` + rowOf,
			want:    Findings{MessagesSent: 16, MessagesReceived: 16, Lost: 1, Duplicated: 1, Corrupted: 1},
			example: "Conversation 1, sender 0, message 2 (100 bytes) was sent and did not arrive.",
		},
		{
			name:   "a message whose sender rolled back",
			damage: `delete from sent_ledger where ` + isIt,
			want:   Findings{MessagesSent: 15, MessagesReceived: 16, NeverSent: 1},
		},
		{
			name:   "bodies that are no message at all",
			damage: `insert into message_drop (message_val, payload_md5) values (null, null), ('\x00', md5('')::uuid)`,
			want:   Findings{MessagesSent: 16, MessagesReceived: 18, NeverSent: 2},
		},
		{
			name:    "that nothing arrived",
			damage:  `truncate message_drop`,
			want:    Findings{MessagesSent: 16, Lost: 16},
			example: "Conversation 0, sender 0, message 1 (4100 bytes) was sent and did not arrive.",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := laboratory(t)
			writeHistory(t, conn)
			if _, err := conn.Exec(t.Context(), c.damage, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
			got, err := check(t.Context(), conn)
			if err != nil {
				t.Fatal(err)
			}
			examples := got.Examples
			if got.Examples = nil; !equalFindings(got, c.want) {
				t.Errorf("found %+v, want %+v", got, c.want)
			}
			if got.Clean() != (c.want.Lost+c.want.Duplicated+c.want.OutOfOrder+c.want.Corrupted+c.want.NeverSent == 0) {
				t.Errorf("clean: %v, of %+v", got.Clean(), got)
			}
			if c.example != "" && !slices.ContainsFunc(examples, func(e string) bool { return strings.Contains(e, c.example) }) {
				t.Errorf("the examples are %q, want one with %q", examples, c.example)
			}
		})
	}
}

func equalFindings(a, b Findings) bool {
	return a.MessagesSent == b.MessagesSent && a.MessagesReceived == b.MessagesReceived && a.Lost == b.Lost && a.Duplicated == b.Duplicated &&
		a.OutOfOrder == b.OutOfOrder && a.Corrupted == b.Corrupted && a.NeverSent == b.NeverSent
}

func TestLeftoversAreSeen(t *testing.T) {
	t.Parallel()
	conn := laboratory(t)
	handles, err := openDialogs(t.Context(), conn, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), "call send_lab_test($1, 0, 0, 1, '\\x00')", handles[0])
	if err != nil {
		t.Fatal(err)
	}
	left, err := findLeftovers(t.Context(), conn, targetQueue, initiatorQueue)
	if err != nil {
		t.Fatal(err)
	}
	// One initiator that has not sent, and both sides of the conversation that has.
	if want := (Leftovers{Conversations: 3, ConversationGroups: 3, Messages: 1}); left != want {
		t.Errorf("left behind: %+v, want %+v", left, want)
	}
	if left.None() {
		t.Error("that is taken for nothing")
	}
}
