package dialogsecurity_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

var background = context.Background()

// bothModes runs a test in anonymous and in full security.
func bothModes(t *testing.T, test func(t *testing.T, asker, answerer *side)) {
	t.Helper()
	for _, anonymous := range []bool{true, false} {
		t.Run(map[bool]string{true: "anonymous", false: "full"}[anonymous], func(t *testing.T) {
			t.Parallel()
			asker, answerer := newSides(t)
			asker.bind(anonymous)
			if anonymous {
				answerer.exec("select parley.grant('SEND', 'service', $1, 'public')", answering)
			}
			test(t, asker, answerer)
		})
	}
}

func TestForwarderCarriesADialogItCannotRead(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, asker, answerer *side) {
		way := &forwarder{}
		handle := asker.begin(true)
		asker.send(handle, "secret question", "secret detail")
		asker.requireOutcomes(asker.carry(answerer, way), transportstore.Accepted, "")
		there := answerer.expect("secret question", "secret detail")
		for _, s := range []*side{asker, answerer} {
			if !one[bool](s, `
				select outbound_session_key_identifier::text !~ '^[0-]*$' and security_timestamp is not null
					and (far_principal_id = 0) = ($1 and is_initiator = 0)
				from parley.conversation_endpoints`, one[bool](asker, "select is_anonymous_on from parley.remote_service_bindings")) {
				t.Errorf("%s does not show that the dialog is secured", s.name)
			}
		}
		answerer.send(there, "secret answer")
		answerer.requireOutcomes(answerer.carry(asker, way), transportstore.Accepted, "")
		asker.expect("secret answer")
		asker.exec("select parley.send_batch($1::uuid, 'DEFAULT', array(select 'secret ' || n from generate_series(1, 500) as n))", handle)
		asker.requireOutcomes(asker.carry(answerer, way), transportstore.Accepted, "")
		if got := answerer.receive(); len(got.texts) != 500 || got.texts[499] != "secret 500" {
			t.Errorf("%d messages of a batch came, the last %q", len(got.texts), got.texts[len(got.texts)-1])
		}
		asker.exec("select parley.end_conversation($1::uuid)", handle)
		asker.carry(answerer, way)
		answerer.expect("EndDialog")
		answerer.exec("select parley.end_conversation($1::uuid)", there)
		answerer.carry(asker, way)
		for _, s := range []*side{asker, answerer} {
			if n := one[int](s, "select count(*)::int from parley.conversation_endpoints where state <> 'CD'"); n != 0 {
				t.Errorf("%s has %d conversations left", s.name, n)
			}
		}
		if len(way.seen) < 4 || strings.Contains(way.bytes.String(), "secret") {
			t.Errorf("of %d runs the forwarder could read some", len(way.seen))
		}
		if asker.guard.Counts().Sealed == 0 || answerer.guard.Counts().Opened == 0 || answerer.guard.Counts().Corrupted != 0 {
			t.Errorf("counted %+v and %+v", asker.guard.Counts(), answerer.guard.Counts())
		}
	})
}

// Only full security identifies the sender: the grants of that role count, and no role's in anonymous security.
func TestSignerOfADialogActsAsTheOwnerOfItsCertificate(t *testing.T) {
	t.Parallel()
	for _, anonymous := range []bool{true, false} {
		t.Run(fmt.Sprintf("anonymous %t", anonymous), func(t *testing.T) {
			t.Parallel()
			asker, answerer := newSides(t)
			asker.bind(anonymous)
			asker.send(asker.begin(true), "hello")
			results := asker.carry(answerer, &forwarder{})
			if anonymous {
				asker.requireOutcomes(results, transportstore.Refused, "may not SEND")
				return
			}
			asker.requireOutcomes(results, transportstore.Accepted, "")
		})
	}
}

// A message that a forwarder changes is discarded and not acknowledged; it comes when the forwarder leaves it alone.
func TestTamperedMessageIsDiscardedAndNotLost(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, asker, answerer *side) {
		handle := asker.begin(true)
		asker.send(handle, "first")
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		answerer.expect("first")
		asker.send(handle, "second")
		for name, change := range map[string]func(run *transportstore.Run){
			"body":    func(r *transportstore.Run) { r.Bodies[0][0] ^= 1 },
			"no body": func(r *transportstore.Run) { r.Bodies = [][]byte{nil} },
			"type": func(r *transportstore.Run) {
				r.MessageType = "http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog"
			},
			"number":    func(r *transportstore.Run) { r.FirstSequence++ },
			"service":   func(r *transportstore.Run) { r.ToService = "//test/Other" },
			"agreement": func(r *transportstore.Run) { r.Security[60] ^= 1 },
			"salt":      func(r *transportstore.Run) { r.Security[len(r.Security)-1] ^= 1 },
			"cut":       func(r *transportstore.Run) { r.Security = r.Security[:len(r.Security)-1] },
			"in clear": func(r *transportstore.Run) {
				r.Security, r.IsEncrypted, r.Bodies = nil, false, [][]byte{[]byte("forged")}
			},
			"stripped": func(r *transportstore.Run) { r.Security = nil },
		} {
			asker.requireOutcomes(asker.carry(answerer, &forwarder{change: change}), transportstore.Held, "The other side has discarded the message.")
			if got := answerer.receive(); len(got.texts) > 0 {
				t.Fatalf("%s changed: received %q", name, got.texts)
			}
		}
		if n := answerer.guard.Counts().Corrupted; n != 10 {
			t.Errorf("%d were counted as corrupted", n)
		}
		if status := one[string](asker, "select max(transmission_status) from parley.transmission_queue"); !strings.Contains(status, "discarded") {
			t.Errorf("the transmission queue says %q", status)
		}
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		answerer.expect("second")
	})
}

// The log names what dialog security refuses as SQL Server's profiler does.
func TestRefusedDialogSecurityIsAudited(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		spoil  func(asker, answerer *side)
		change func(run *transportstore.Run)
		want   string
	}{
		{
			name: "the seal was taken off", change: func(r *transportstore.Run) { r.Security = nil },
			want: `event="Audit Broker Conversation" event_id=158 event_subclass=1 event_subclass_name="No Security Header"`,
		},
		{
			name: "the certificate of the sender is not known", spoil: func(_, answerer *side) { answerer.exec("select parley.drop_certificate('far first')") },
			want: `event="Audit Broker Conversation" event_id=158 event_subclass=2 event_subclass_name="No Certificate"`,
		},
		{
			name: "a body was changed", change: func(r *transportstore.Run) { r.Bodies[0][0] ^= 1 },
			want: `event="Audit Broker Conversation" event_id=158 event_subclass=3 event_subclass_name="Invalid Signature"`,
		},
		{
			name: "the service has another owner than the certificate",
			spoil: func(_, answerer *side) {
				answerer.exec("select parley.alter_authorization('service', $1, $2)", answering, answerer.far)
			},
			want: `event="Audit Broker Conversation" event_id=158 event_subclass=4 event_subclass_name="Run As Target Failure"`,
		},
		{
			name: "the header is cut off", change: func(r *transportstore.Run) { r.Security = r.Security[:20] },
			want: `event="Broker:Corrupted Message" event_id=161`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asker, answerer := newSides(t)
			log := &bytes.Buffer{}
			answerer.guard = dialogsecurity.New(dialogsecurity.Config{
				Keys: answerer.keys, Logger: slog.New(slog.NewTextHandler(log, nil)),
			})
			asker.bind(false)
			if c.spoil != nil {
				c.spoil(asker, answerer)
			}
			asker.send(asker.begin(true), "hello")
			asker.requireOutcomes(asker.carry(answerer, &forwarder{change: c.change}), transportstore.Held, "discarded")
			if !strings.Contains(log.String(), c.want) {
				t.Errorf("the log has no %s: %s", c.want, log)
			}
		})
	}
}

// A forwarder could lose messages by saying that they arrived, and end conversations by saying that they were refused.
func TestForgedResultIsNotBelieved(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, asker, answerer *side) {
		handle := asker.begin(true)
		asker.send(handle, "hello")
		for _, forged := range []transportstore.Result{
			{Outcome: transportstore.Accepted, Next: 1},
			{Outcome: transportstore.Refused, ErrorNumber: 8494, Description: "no"},
			{Outcome: transportstore.Gone},
			{Outcome: transportstore.Expected, Next: 1},
			{Outcome: transportstore.Accepted, Next: 1, Security: make([]byte, 32)},
		} {
			asker.requireOutcomes(asker.carry(answerer, &forwarder{answer: &forged}), transportstore.Held, "not believed")
		}
		if n := asker.guard.Counts().Forged; n != 5 {
			t.Errorf("%d were counted as forged", n)
		}
		busy := transportstore.Result{Outcome: transportstore.Held, ErrorNumber: 11219, Description: "busy", Broker: parley.UUID{1}, Epoch: 9}
		results := asker.carry(answerer, &forwarder{answer: &busy})
		asker.requireOutcomes(results, transportstore.Held, "busy")
		if !results[0].Broker.IsZero() {
			t.Error("who has answered was believed without proof")
		}
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		answerer.expect("hello")
	})
}

func TestReplayedRunsChangeNothing(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, asker, answerer *side) {
		way := &forwarder{}
		handle := asker.begin(true)
		asker.send(handle, "first", "second")
		asker.carry(answerer, way)
		there := answerer.expect("first", "second")
		answerer.send(there, "answer")
		answerer.carry(asker, way)
		for range 2 {
			for _, run := range way.seen {
				receiver, speaker := answerer, asker.speaker()
				if !run.FromInitiator {
					receiver, speaker = asker, answerer.speaker()
				}
				receiver.requireOutcomes(receiver.accept(speaker, run), transportstore.Accepted, "")
			}
		}
		asker.expect("answer")
		if got := answerer.receive(); len(got.texts) > 0 {
			t.Errorf("received again: %q", got.texts)
		}
		// Nor does it pass for the same number of another conversation.
		other := asker.begin(true)
		asker.send(other, "other")
		moved := way.seen[0]
		asker.requireOutcomes(asker.carry(answerer, &forwarder{change: func(r *transportstore.Run) { r.Bodies, r.Security = moved.Bodies, moved.Security }}),
			transportstore.Held, "discarded")
	})
}

// The master key of another server opens nothing, and neither does another certificate.
func TestMessageForAnotherCertificateIsNotOpened(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, asker, answerer *side) {
		foreign, err := dialogsecurity.OpenMasterKeys(asker.keyPath)
		asker.noError(err)
		certificate, _, err := dialogsecurity.NewCertificate(foreign, "mallory", time.Now().Add(-time.Hour), time.Now().Add(9*time.Hour))
		asker.noError(err)
		asker.noError(truststore.CreateCertificate(t.Context(), asker.pool, truststore.NewCertificate{
			Name: "mallory", Owner: asker.far, Bytes: certificate.Bytes, IsActive: true,
		}))
		handle := asker.begin(true)
		asker.send(handle, "not for everybody")
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Held, "9733")
		asker.exec("select parley.drop_certificate('mallory')")
		asker.wait()
		asker.requireOutcomes(asker.carry(answerer, &forwarder{}), transportstore.Accepted, "")
		answerer.expect("not for everybody")
	})
}

// wait lasts until a daemon reads certificates and bindings again: it uses what it has read for a second.
func (s *side) wait() {
	s.Helper()
	s.guard.Forget()
}
