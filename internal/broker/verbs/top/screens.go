package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-broker/parley/operate"
)

// screen is which of the tables is shown.
type screen int

const (
	queueScreen screen = iota
	conversationScreen
	waitScreen
	hostScreen
	portScreen
	orchestrationScreen
	screenCount
)

var screenNames = [screenCount]string{"queues", "conversations", "waits", "hosts", "ports", "orchestrations"}

// firstSorting is how each screen is sorted before anybody chooses; -1 keeps the order of the reading.
var firstSorting = [screenCount]sorting{
	queueScreen: {column: 2}, conversationScreen: {column: -1}, waitScreen: {column: -1}, hostScreen: {column: -1}, portScreen: {column: 3},
	orchestrationScreen: {column: 3},
}

// tableOf makes the table of a screen.
func tableOf(s screen, snapshot Snapshot) table {
	switch s {
	case conversationScreen:
		return conversationTable(snapshot.Conversations)
	case waitScreen:
		return waitTable(snapshot.Sessions)
	case hostScreen:
		return hostTable(snapshot.Hosts)
	case portScreen:
		return portTable(snapshot.Ports)
	case orchestrationScreen:
		return orchestrationTable(snapshot.Orchestrations)
	default:
		return queueTable(snapshot.Queues)
	}
}

func queueTable(queues []Queue) table {
	t := table{columns: []column{
		{title: "QUEUE", most: 40},
		{title: "STATUS", rank: 3},
		{title: "WAITING", isNumber: true},
		{title: "OLDEST", isNumber: true, rank: 1},
		{title: "IN/S", isNumber: true, rank: 2},
		{title: "OUT/S", isNumber: true, rank: 2},
		{title: "READERS", rank: 4, most: 24},
		{title: "LOCK HOLDERS", rank: 5, most: 30},
	}}
	for _, q := range queues {
		t.lines = append(t.lines, line{
			key:   q.Queue,
			alarm: q.Status != operate.QueueOn || q.Failures > 0,
			cells: []cell{
				{text: q.Queue},
				{text: status(q.QueueActivity)},
				{text: waiting(q.QueueActivity), number: float64(q.WaitingMessages + q.HeldMessages)},
				{text: oldest(q.OldestSeconds), number: orZero(q.OldestSeconds)},
				{text: rate(q.InPerSecond), number: orZero(q.InPerSecond)},
				{text: rate(q.OutPerSecond), number: orZero(q.OutPerSecond)},
				{text: readers(q.QueueActivity)},
				{text: holders(q.QueueActivity)},
			},
		})
	}
	return t
}

func status(q operate.QueueActivity) string {
	if q.ReadersPausedAt != nil {
		return q.Status + ", PAUSED"
	}
	return q.Status
}

func waiting(q operate.QueueActivity) string {
	text := count(q.WaitingMessages, q.IsEstimated)
	if q.HeldMessages > 0 {
		text += " + " + count(q.HeldMessages, q.IsEstimated) + " held"
	}
	if q.DelayedMessages > 0 {
		text += " + " + count(q.DelayedMessages, false) + " delayed"
	}
	return text
}

func readers(q operate.QueueActivity) string {
	text := "-"
	if q.MaxReaders > 0 {
		text = fmt.Sprintf("%d/%d", q.RunningReaders, q.MaxReaders)
	}
	if q.Failures > 0 {
		text += fmt.Sprintf(" failed %d×", q.Failures)
	}
	return text
}

func holders(q operate.QueueActivity) string {
	switch {
	case q.LockedGroups == 0:
		return "-"
	case len(q.LockHolders) == 0:
		return fmt.Sprintf("%d groups locked", q.LockedGroups)
	}
	return pids(q.LockHolders)
}

func conversationTable(conversations []operate.ConversationActivity) table {
	t := table{columns: []column{
		{title: "CONVERSATION", most: 36},
		{title: "QUEUE", rank: 2, most: 24},
		{title: "SERVICE", rank: 4, most: 24},
		{title: "WITH", rank: 5, most: 24},
		{title: "STATE", rank: 3},
		{title: "WAITING", isNumber: true, rank: 1},
		{title: "OLDEST", isNumber: true, rank: 1},
		{title: "LOCKED BY", most: 30},
	}}
	for _, c := range conversations {
		count := count(c.WaitingMessages, false)
		if c.IsMore {
			count += "+"
		}
		t.lines = append(t.lines, line{
			key: c.ConversationHandle.String(),
			cells: []cell{
				{text: c.ConversationHandle.String()},
				{text: c.Queue},
				{text: c.ServiceName},
				{text: c.FarService},
				{text: c.State},
				{text: count, number: float64(c.WaitingMessages)},
				{text: Age(c.OldestSeconds), number: c.OldestSeconds},
				{text: lockHolder(c)},
			},
		})
	}
	return t
}

// lockHolder names the session that holds the group of a conversation, as far as it is known and the role may see it.
func lockHolder(c operate.ConversationActivity) string {
	switch {
	case !c.IsLocked:
		return "-"
	case c.ClaimedBy != nil && c.ClaimedSeconds != nil:
		return fmt.Sprintf("delivery for %s (%s)", Age(*c.ClaimedSeconds), *c.ClaimedBy)
	case c.LockedByPrepared != nil:
		return fmt.Sprintf("prepared transaction %q", *c.LockedByPrepared)
	case len(c.LockedByOneOf) > 0:
		return "one of " + pids(c.LockedByOneOf) + ": released savepoint"
	case c.LockedBy == nil:
		return "a session that has just ended"
	case c.Holder == nil:
		return fmt.Sprintf("%d, which has just ended", *c.LockedBy)
	}
	// A narrow screen cuts the end: the screen of sessions has all of it.
	text := fmt.Sprintf("%d %s", *c.LockedBy, c.Holder.Role)
	if c.Holder.IsHidden {
		text += ", state hidden: needs pg_read_all_stats"
	} else {
		text += " " + c.Holder.State + " " + Age(c.Holder.TransactionSeconds)
	}
	if c.Holder.ApplicationName != "" {
		text += " (" + c.Holder.ApplicationName + ")"
	}
	return text
}

func waitTable(sessions []operate.SessionActivity) table {
	t := table{columns: []column{
		{title: "PID", isNumber: true},
		{title: "ROLE", rank: 4, most: 20},
		{title: "STATE", rank: 3},
		{title: "SINCE", isNumber: true, rank: 1},
		{title: "WAITS FOR", most: 60},
		{title: "TRANSACTION", isNumber: true, rank: 2},
		{title: "APPLICATION", rank: 5, most: 20},
		{title: "STATEMENT", rank: 6, most: 60},
	}}
	for _, s := range sessions {
		t.lines = append(t.lines, line{
			key:   fmt.Sprint(s.PID),
			alarm: len(s.BlockedBy) > 0,
			cells: []cell{
				{text: fmt.Sprint(s.PID), number: float64(s.PID)},
				{text: s.Role},
				{text: orNone(s.State)},
				{text: Age(s.StateSeconds), number: s.StateSeconds},
				{text: waitsFor(s, sessions)},
				{text: Age(s.TransactionSeconds), number: s.TransactionSeconds},
				{text: orNone(s.ApplicationName)},
				{text: strings.Join(strings.Fields(s.Statement), " ")},
			},
		})
	}
	return t
}

// waitsFor names the thing that a session waits for.
func waitsFor(s operate.SessionActivity, all []operate.SessionActivity) string {
	switch {
	case len(s.BlockedBy) > 0:
		text := "lock of " + pids(s.BlockedBy)
		i := slices.IndexFunc(all, func(o operate.SessionActivity) bool { return o.PID == s.BlockedBy[0] })
		if i >= 0 && len(s.BlockedBy) == 1 {
			text += fmt.Sprintf(" (%s for %s)", all[i].State, Age(all[i].StateSeconds))
		}
		return text
	case s.WaitsInQueue != nil:
		return "messages in " + *s.WaitsInQueue
	case strings.HasPrefix(s.State, "idle in transaction"):
		return "its client"
	case s.WaitEvent != "":
		return s.WaitEventType + " " + s.WaitEvent
	}
	return "-"
}
