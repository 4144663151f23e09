package server

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/send"
)

// failing is a carrier and a way of it on which every message fails in an unforeseen way.
type failing struct{}

func (failing) Connect(context.Context, send.Hop) (send.Way, error)  { return failing{}, nil }
func (failing) Limits(send.Hop) send.Limits                          { return send.Limits{} }
func (failing) Send(_ context.Context, m send.Message) []send.Result { panic("no " + m.Sender) }
func (failing) Usable() bool                                         { return true }
func (failing) Messages() int                                        { return 0 }
func (failing) Offers(string) bool                                   { return true }
func (failing) Ends() send.Ends                                      { return send.Ends{} }
func (failing) Close()                                               {}

func TestMessageThatFailsUnforeseenTakesNobodyDown(t *testing.T) {
	t.Parallel()
	carriers := guarded(map[string]send.Carrier{"DNS": failing{}}, slog.New(slog.DiscardHandler))
	way, err := carriers["DNS"].Connect(t.Context(), send.Hop{})
	if err != nil {
		t.Fatal(err)
	}
	results := way.Send(t.Context(), send.Message{Sender: "sense", Recipients: make([]send.Recipient, 2)})
	if len(results) != 2 || results[1].Class != send.Deferred || !strings.Contains(results[1].Text, "no sense") || way.Usable() {
		t.Errorf("it gave %v, and the way is usable: %t", results, way.Usable())
	}
}
