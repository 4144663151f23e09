package authenticity_test

import (
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/authenticity"
	"github.com/parley-broker/parley/internal/mail/message"
)

// A key that cannot be asked for might have let the message pass: where the policy asks for something it waits, and where not it fails.
func TestKeyThatIsAwayDefersAMessageThatWouldBeRefused(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{"reject": "temperror", "quarantine": "temperror", "none": "fail"} {
		z := zone{}
		z.put(txt("_dmarc.football.example.com", "v=DMARC1; p="+policy))
		z.fail("away._domainkey.example.com")
		v := &authenticity.Verifier{Resolver: z.resolver(t)}
		verdict, found := verifyEnforced(t, v, strings.Replace(signed6376, "s=brisbane", "s=away", 1))
		if found.DMARC != want || verdict.IsDeferred != (want == "temperror") || verdict.IsRefused || verdict.Quarantine != "" {
			t.Errorf("%s: %s, %+v", policy, found.DMARC, verdict)
		}
	}
}

// The null sender is the host as it has greeted us (RFC 7208 section 2.4).
func TestNullSenderIsTheHost(t *testing.T) {
	t.Parallel()
	z := zone{}
	z.put(txt("client.example.com", "v=spf1 ip4:192.0.2.1 -all"))
	z.put(txt("_dmarc.example.com", "v=DMARC1; p=reject"))
	v := &authenticity.Verifier{Resolver: z.resolver(t)}
	for peer, want := range map[string]string{"192.0.2.1": "pass", "192.0.2.2": "fail"} {
		if _, found := verify(t, v, peer, "", "From: a@example.com\n\n"); found.SPF != want || found.DMARC != want {
			t.Errorf("from %s: %+v, want %s", peer, found, want)
		}
	}
}

// The field has what was asked for, and nothing else; of what is not asked for nothing is looked up.
func TestFieldHasWhatWasVerified(t *testing.T) {
	t.Parallel()
	const off, record = authenticity.Off, authenticity.Record
	z := keys()
	z.put(txt("example.com", "v=spf1 ip4:192.0.2.1 -all"))
	z.put(txt("_dmarc.football.example.com", "v=DMARC1; p=none"))
	v := &authenticity.Verifier{Resolver: z.resolver(t)}
	for _, c := range []struct {
		checks authenticity.Checks
		want   []string
	}{
		{authenticity.Checks{SPF: record, DKIM: record, DMARC: record}, []string{"spf=pass", "dkim=pass", "dmarc=pass"}},
		{authenticity.Checks{SPF: off, DKIM: record, DMARC: record}, []string{"dkim=pass", "dmarc=pass"}},
		{authenticity.Checks{SPF: record, DKIM: off, DMARC: record}, []string{"spf=pass", "dmarc=pass"}},
		{authenticity.Checks{SPF: record, DKIM: record, DMARC: off}, []string{"spf=pass", "dkim=pass"}},
		{authenticity.Checks{SPF: off, DKIM: off, DMARC: off}, []string{"none"}},
	} {
		verdict, _ := verify(t, v, "192.0.2.1", "a@example.com", signed6376, c.checks)
		parts := strings.Split(verdict.Field.Value(), ";")
		if len(parts) != 1+len(c.want) || strings.TrimSpace(parts[0]) != "mx.example.org" {
			t.Errorf("%+v: %q", c.checks, verdict.Field.Value())
			continue
		}
		for i, want := range c.want {
			if !strings.HasPrefix(strings.TrimSpace(parts[i+1]), want) {
				t.Errorf("%+v: %q, want %s", c.checks, parts[i+1], want)
			}
		}
	}
}

// SPF's finding about a sender refuses or defers him where that is enforced alone, and counts for the message without being asked for once
// more.
func TestSenderIsVerifiedBeforeHisMessage(t *testing.T) {
	t.Parallel()
	z := zone{}
	z.put(txt("example.com", "v=spf1 ip4:192.0.2.1 -all"))
	z.fail("away.example")
	v := &authenticity.Verifier{Resolver: z.resolver(t)}
	for _, c := range []struct {
		sender, peer          string
		check                 authenticity.Check
		isRefused, isDeferred bool
		result                string
	}{
		{"a@example.com", "192.0.2.1", authenticity.Enforce, false, false, "spf=pass"},
		{"a@example.com", "192.0.2.2", authenticity.Enforce, true, false, "spf=fail"},
		{"a@example.com", "192.0.2.2", authenticity.Record, false, false, "spf=fail"},
		{"a@away.example", "192.0.2.2", authenticity.Enforce, false, true, "spf=temperror"},
		{"a@away.example", "192.0.2.2", authenticity.Record, false, false, "spf=temperror"},
	} {
		m := authenticity.Message{
			Peer: netip.MustParseAddr(c.peer), Helo: "client.example.com", Sender: c.sender, Identity: "mx.example.org",
			Checks: authenticity.Checks{SPF: c.check, DKIM: authenticity.Off, DMARC: authenticity.Off}, Header: message.Header{},
			Body: func() io.Reader { return strings.NewReader("") },
		}
		verdict := v.VerifySender(t.Context(), m)
		if verdict.IsRefused != c.isRefused || verdict.IsDeferred != c.isDeferred {
			t.Errorf("%s from %s: %+v", c.sender, c.peer, verdict)
		}
		m.SPF = &verdict
		silence := &authenticity.Verifier{Resolver: failingText{text: "nobody is to be asked"}}
		if value := silence.Verify(t.Context(), m).Field.Value(); !strings.Contains(value, c.result+" ") {
			t.Errorf("%s from %s: %q, want %s", c.sender, c.peer, value, c.result)
		}
	}
}

// Authors who are written in an odd way are clear where there is one, and where an entry cannot be read nobody knows who they are.
func TestAuthorsAreThoseOfAFieldThatIsClear(t *testing.T) {
	t.Parallel()
	z := zone{}
	z.put(txt("example.com", "v=spf1 ip4:192.0.2.1 -all"))
	z.put(txt("_dmarc.example.com", "v=DMARC1; p=reject"))
	v := &authenticity.Verifier{Resolver: z.resolver(t)}
	for from, want := range map[string]string{
		"From: a@example.com\n": "pass", "From: Miller, Eva <a@example.com>\n": "pass", "From: a@example.com, b@example.com\n": "pass",
		"From: Miller, Eva <a@example.com>, b@example.com\n": "permerror", "From: a@example.com, nonsense\n": "permerror", "From: nonsense, <a@b@c>\n": "permerror",
		"From: a@example.com\nFrom: a@example.com\n": "permerror", "X: 1\n": "permerror",
	} {
		if _, found := verify(t, v, "192.0.2.1", "a@example.com", from+"\n"); found.DMARC != want {
			t.Errorf("%q: %s, want %s", from, found.DMARC, want)
		}
	}
}
