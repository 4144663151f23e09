package authenticity_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-broker/parley/internal/mail/authenticity"
)

// silent never answers, and remembers when it is given up.
type silent struct {
	authenticity.Resolver
	mu    sync.Mutex
	asked int
}

func (s *silent) LookupTXT(ctx context.Context, _ string) ([]string, error) {
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	<-ctx.Done()
	return nil, &net.DNSError{Err: "nobody answers", IsTimeout: true}
}

// DNS that does not answer holds a message up for 20 seconds in all, or for as long as it is given, however much there is to ask.
func TestVerifyingIsBoundedInTime(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]time.Duration{0: 20 * time.Second, 3 * time.Second: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began, resolver := time.Now(), new(silent)
			v := &authenticity.Verifier{Resolver: resolver, Timeout: given}
			verdict, found := verify(t, v, "192.0.2.1", "a@example.com", signed8463, authenticity.Checks{DMARC: authenticity.Enforce})
			if took := time.Since(began); took != want || found.SPF != "temperror" || found.DMARC != "temperror" || !verdict.IsDeferred {
				t.Errorf("it took %v, want %v, and found %+v", took, want, found)
			}
			if resolver.asked < 4 {
				t.Errorf("%d questions were asked", resolver.asked)
			}
			began = time.Now()
			sender := v.VerifySender(t.Context(), authenticity.Message{
				Peer: netip.MustParseAddr("192.0.2.1"), Helo: "client.example.com", Sender: "a@example.com", Checks: authenticity.Checks{SPF: authenticity.Enforce},
			})
			if took := time.Since(began); took != want || !sender.IsDeferred || sender.IsRefused {
				t.Errorf("for the sender it took %v, want %v, and gave %+v", took, want, sender)
			}
		})
	}
}

// failing is a zone whose server says a lot about why it fails.
type failingText struct {
	authenticity.Resolver
	text string
}

func (f failingText) LookupTXT(context.Context, string) ([]string, error) {
	return nil, errors.New(f.text)
}

// Of what others say about a failure 120 bytes stand in the field, in one line.
func TestReasonInTheFieldIsBounded(t *testing.T) {
	t.Parallel()
	v := &authenticity.Verifier{Resolver: failingText{text: "x\r\n\x00y " + strings.Repeat("z", 1000)}}
	verdict, _ := verify(t, v, "192.0.2.1", "a@example.com", signed6376)
	value := verdict.Field.Value()
	longest := 0
	for _, reason := range strings.Split(value, "reason=")[1:] {
		reason, _, _ = strings.Cut(strings.Trim(reason, `"`), `"`)
		longest = max(longest, len(reason))
	}
	if longest != 120 || strings.ContainsAny(value, "\r\n\x00") {
		t.Errorf("a reason has %d bytes: %q", longest, value)
	}
}
