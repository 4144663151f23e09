package demo

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed check.sql
var checkQuery string

// Findings are the results of the final check: every message that was sent held against every one that arrived.
type Findings struct {
	MessagesSent     int64 `json:"messages_sent"`
	MessagesReceived int64 `json:"messages_received"`
	// Lost were sent and did not arrive; Duplicated counts each arrival after the first.
	Lost       int64 `json:"lost"`
	Duplicated int64 `json:"duplicated"`
	// OutOfOrder arrived after a message that the same sender had sent later on the same conversation.
	OutOfOrder int64 `json:"out_of_order"`
	// Corrupted arrived with another body than was sent.
	Corrupted int64 `json:"corrupted"`
	// NeverSent arrived though no transaction that sent them has committed.
	NeverSent int64 `json:"never_sent"`
	// Examples describe the first few of each kind.
	Examples []string `json:"examples"`
}

// Clean reports whether every message arrived exactly once, in order and whole, and nothing else did.
func (f Findings) Clean() bool {
	return f.Lost+f.Duplicated+f.OutOfOrder+f.Corrupted+f.NeverSent == 0
}

// check reads the ledger and the table that the readers filled.
func check(ctx context.Context, conn *pgx.Conn) (Findings, error) {
	var f Findings
	err := conn.QueryRow(ctx, checkQuery).Scan(
		&f.MessagesSent, &f.MessagesReceived, &f.Lost, &f.Duplicated, &f.OutOfOrder, &f.Corrupted, &f.NeverSent, &f.Examples)
	if err != nil {
		return f, fmt.Errorf("check what arrived: %w", err)
	}
	return f, nil
}

// Leftovers are the rows that the run left in the broker after both sides ended their conversations.
type Leftovers struct {
	Conversations      int64 `json:"conversations"`
	ConversationGroups int64 `json:"conversation_groups"`
	Messages           int64 `json:"messages"`
	Undelivered        int64 `json:"undelivered"`
	// ClosedTargets are not left behind: the broker remembers them for a while to recognise a first message that
	// comes twice.
	ClosedTargets int64 `json:"closed_targets"`
}

// None reports whether nothing was left behind.
func (l Leftovers) None() bool { return l.total() == 0 }

func (l Leftovers) total() int64 {
	return l.Conversations + l.ConversationGroups + l.Messages + l.Undelivered
}

// The queues of the paper: what is sent arrives in the first, and the senders' own is the second.
const (
	targetQueue    = "MySSBLabTestQueue"
	initiatorQueue = "MySSBLabSenderQueue"
)

// add sums up what is left in several databases.
func (l Leftovers) add(o Leftovers) Leftovers {
	return Leftovers{
		Conversations: l.Conversations + o.Conversations, ConversationGroups: l.ConversationGroups + o.ConversationGroups,
		Messages: l.Messages + o.Messages, Undelivered: l.Undelivered + o.Undelivered, ClosedTargets: l.ClosedTargets + o.ClosedTargets,
	}
}

// findLeftovers checks one database, which has these queues.
func findLeftovers(ctx context.Context, conn *pgx.Conn, queues ...string) (Leftovers, error) {
	counts := []string{"0"}
	for _, queue := range queues {
		counts = append(counts, "(select count(*) from "+pgx.Identifier{"parley_queue", queue}.Sanitize()+")")
	}
	var l Leftovers
	err := conn.QueryRow(ctx, `
		select
			(select count(*) from parley.conversation_endpoints where state <> 'CD'),
			(select count(*) from parley.conversation_groups),
			`+strings.Join(counts, " + ")+`,
			(select count(*) from parley.transmission_queue),
			(select count(*) from parley.conversation_endpoints where state = 'CD')`,
	).Scan(&l.Conversations, &l.ConversationGroups, &l.Messages, &l.Undelivered, &l.ClosedTargets)
	if err != nil {
		return l, fmt.Errorf("find what is left in the broker: %w", err)
	}
	return l, nil
}
