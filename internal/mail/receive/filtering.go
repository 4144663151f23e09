package receive

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/parley-broker/parley/internal/backoff"
)

// filter asks the filters of a connection about an event, and gives the reply of the first that refuses.
func (s *Server) filter(ctx context.Context, c *connection, event Event) *Reply {
	reply, _ := s.filterWith(ctx, c, event, nil)
	return reply
}

// announce has filters know of an event that nobody replies to.
func (s *Server) announce(ctx context.Context, c *connection, event Event) {
	_ = s.filter(ctx, c, event)
}

// filterWith asks about an event of a message.
func (s *Server) filterWith(ctx context.Context, c *connection, event Event, tx *transaction) (*Reply, Verdict) {
	if len(s.Filters)+len(c.connector.Filters) == 0 || c.rights().Has(BypassFilters) && tx != nil {
		return nil, Verdict{}
	}
	if c.filters == nil && event == Connected {
		c.openFilters(ctx)
	}
	e := c.exchange
	if e == nil {
		return nil, Verdict{}
	}
	c.describe(e, tx)
	for _, session := range c.filters {
		verdict := session.Handle(ctx, event, e)
		if tx != nil && event == DataEnded {
			tx.header = e.Header
		}
		_ = backoff.Wait(c.ctx, verdict.Delay)
		switch verdict.Action {
		case Refuse, Disconnect:
			reply := verdict.Reply
			if reply == nil {
				reply = NewReply(451, 7, 1, "Try again later")
			}
			return reply, verdict
		case Quarantine:
			if tx != nil {
				tx.envelope.Quarantine = verdict.Reason
			}
		case Discard:
			if tx != nil {
				tx.isDiscarded = true
			}
		case Continue:
		}
		if tx != nil {
			tx.record(verdict)
		}
	}
	return nil, Verdict{}
}

// filtered is the work of a filter on a message, as tracking has it.
type filtered struct {
	Filter  string   `json:"filter,omitempty"`
	Action  string   `json:"action"` // CHANGE, QUARANTINE or DISCARD
	Reason  string   `json:"reason,omitempty"`
	Changes []string `json:"changes,omitempty"`
}

// record keeps what a filter did to the message.
func (t *transaction) record(verdict Verdict) {
	did := filtered{Filter: verdict.Filter, Reason: verdict.Reason, Changes: verdict.Changes}
	switch {
	case verdict.Action == Quarantine:
		did.Action = "QUARANTINE"
	case verdict.Action == Discard:
		did.Action = "DISCARD"
	case len(verdict.Changes) > 0:
		did.Action = "CHANGE"
	default:
		return
	}
	t.filtered = append(t.filtered, did)
}

// addFiltered adds what filters did to the verdicts of the message.
func (t *transaction) addFiltered() {
	if len(t.filtered) == 0 {
		return
	}
	verdicts := make(map[string]any)
	if len(t.envelope.Verdicts) > 0 {
		if err := json.Unmarshal(t.envelope.Verdicts, &verdicts); err != nil {
			return // they are ours, and an object
		}
	}
	verdicts["filters"] = t.filtered
	if written, err := json.Marshal(verdicts); err == nil {
		t.envelope.Verdicts = written
	}
}

func (c *connection) openFilters(ctx context.Context) {
	c.exchange = &Exchange{}
	for _, f := range slices.Concat(c.connector.Filters, c.server.Filters) {
		session, err := f.Session(ctx)
		if err != nil {
			c.server.Log.Error("a mail filter cannot be reached", "error", err)
			session = unreachable{}
		}
		if session != nil {
			c.filters = append(c.filters, session)
		}
	}
}

// unreachable stands for a filter that could not be reached: no message passes without it.
type unreachable struct{}

func (unreachable) Handle(_ context.Context, event Event, _ *Exchange) Verdict {
	if event != SenderGiven { // a session without a message may go on
		return Verdict{}
	}
	return Verdict{Action: Refuse, Reply: NewReply(451, 7, 1, "A filter is out of reach, try again later")}
}

func (unreachable) Close() {}

func (c *connection) closeFilters() {
	if len(c.filters) > 0 {
		c.server.announce(c.ctx, c, Disconnected)
	}
	for _, session := range c.filters {
		session.Close()
	}
}
