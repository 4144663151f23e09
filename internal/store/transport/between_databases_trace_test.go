package transport_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/operate"
)

// seen gives the trace of a side about its conversations, without groups.
func (s *side) seen() []string {
	s.Helper()
	events, err := operate.ReadTracedEvents(s.Context(), s.db, 0)
	s.noError(err)
	var reported []string
	for _, e := range events {
		if e.EventName == operate.EventConversationGroup {
			continue
		}
		line := e.EventSubclassName + ", " + *e.State
		if e.Error != nil {
			line += ", " + *e.Text
		}
		reported = append(reported, line)
	}
	return reported
}

// An end that arrives from another database, its acknowledgement and the two kinds of errors, are traced as such.
func TestATraceShowsWhatComesFromAnotherDatabase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do               func(asker, answerer *side, initiator string)
		asking, answered []string
	}{
		"an end": {
			do: func(asker, _ *side, initiator string) { asker.End(initiator) },
			asking: []string{
				"BEGIN DIALOG, SO", "SEND Message, SO", "Delayed, CO", "Local, CO", "END CONVERSATION, DO", "Received END CONVERSATION Ack, CD",
			},
			answered: []string{"Dialog Created, CO", "Received Sequenced Message, CO", "Received END CONVERSATION, DI"},
		},
		"an error of the program": {
			do: func(asker, _ *side, initiator string) { asker.EndWithError(initiator, 7, "no more") },
			asking: []string{
				"BEGIN DIALOG, SO", "SEND Message, SO", "Delayed, CO", "Local, CO", "END CONVERSATION WITH ERROR, DO", "Received END CONVERSATION Ack, CD",
			},
			answered: []string{"Dialog Created, CO", "Received Sequenced Message, CO", "Received END CONVERSATION WITH ERROR, ER, no more"},
		},
		"an error of the broker": {
			do: func(_, answerer *side, _ string) {
				answerer.Exec("select parley._p_break_conversations(array[e.endpoint_id], (9719, 'lost'), (9720, 'lost')) from parley._p_endpoint as e")
			},
			asking: []string{
				"BEGIN DIALOG, SO", "SEND Message, SO", "Delayed, CO", "Local, CO", "Received Broker Error Message, ER, lost",
			},
			// The Error of the target needs a way back.
			answered: []string{"Dialog Created, CO", "Received Sequenced Message, CO", "Broker Initiated Error, ER, lost", "Delayed, ER", "Local, ER"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asker, answerer := newSides(t)
			for _, s := range []*side{asker, answerer} {
				s.noError(operate.StartTrace(s.Context(), s.db, operate.TraceSettings{}))
			}
			initiator := asker.dialog()
			asker.Send(initiator, request, "first")
			asker.exchange(answerer)
			c.do(asker, answerer, initiator)
			asker.exchange(answerer)
			answerer.exchange(asker)
			for side, want := range map[*side][]string{asker: c.asking, answerer: c.answered} {
				if got := side.seen(); !slices.Equal(got, want) {
					t.Errorf("%s has seen\n\t%s\nwant\n\t%s", side.name, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
				}
				side.noError(operate.StopTrace(side.Context(), side.db))
			}
		})
	}
}
