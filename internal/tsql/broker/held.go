package broker

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// heldGroups are the conversation groups that a transaction of the script has locked.
type heldGroups struct {
	transaction int
	groups      map[string]bool // by their digits
}

// hold notes that the open transaction has a group locked; outside of one a lock ends with its statement.
func (t *Translator) hold(group []byte) {
	if group == nil || !t.connection.IsOpen() {
		return
	}
	if t.held.transaction != t.connection.Begun() {
		t.held = heldGroups{transaction: t.connection.Begun(), groups: map[string]bool{}}
	}
	t.held.groups[digits(group)] = true
}

// holds reports whether the open transaction has locked a group.
func (t *Translator) holds(group []byte) bool {
	return t.connection.IsOpen() && t.held.transaction == t.connection.Begun() && t.held.groups[digits(group)]
}

func digits(group []byte) string { return strings.ReplaceAll(string(group), "-", "") }

// fromGroup receives from a group that the batch names. One that the transaction has locked, and whose last conversation it has ended
// since, is empty: loops over a group go on until a RECEIVE gives nothing.
func (c *compiler) fromGroup(
	ctx context.Context, r *receiver, frame *expression.Frame, sink session.Sink, wait *wait,
) (int64, bool, *fault.Error) {
	rows, counts, err := c.received(ctx, r, frame, sink, wait)
	if r.group == nil {
		return rows, counts, err
	}
	group, wrong := r.group(frame)
	switch {
	case err == nil && wrong == nil:
		c.translator.hold(group)
	case err != nil && err.Number == 8436 && wait == nil && c.translator.holds(group):
		if lost := c.translator.connection.Undo(ctx); lost != nil {
			return 0, false, faultOf(lost, r.call.verb)
		}
		out := &output{compiler: c, receiver: r, frame: frame, sink: sink}
		return 0, r.slots == nil, out.finish(ctx, nil)
	}
	return rows, counts, err
}
