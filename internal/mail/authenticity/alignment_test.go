package authenticity_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/mail/authenticity"
)

// adkim says how close the domain of a signature has to be to that of the author, and aspf how close that of the sender. Neither stands for
// the other, and each is relaxed where it is not given (RFC 7489 section 6.3).
func TestAlignmentOfSignatureAndSenderAreApart(t *testing.T) {
	t.Parallel()
	// The author is one of football.example.com, the signature one of example.com, the sender one of mail.football.example.com.
	const signed, unsigned = signed6376, "From: joe@football.example.com\n\n"
	for policy, want := range map[string]struct{ bySignature, bySender string }{
		"":                   {"pass", "pass"},
		"; adkim=s":          {"fail", "pass"},
		"; aspf=s":           {"pass", "fail"},
		"; adkim=s; aspf=s":  {"fail", "fail"},
		"; adkim=r; aspf=s":  {"pass", "fail"},
		"; aspf=r; adkim=s":  {"fail", "pass"},
		"; adkim=r; aspf=r;": {"pass", "pass"},
	} {
		z := keys()
		z.put(txt("mail.football.example.com", "v=spf1 ip4:192.0.2.1 -all"))
		z.put(txt("_dmarc.football.example.com", "v=DMARC1; p=reject"+policy))
		v := &authenticity.Verifier{Resolver: z.resolver(t)}
		if _, found := verify(t, v, "198.51.100.1", "a@elsewhere.example", signed); found.DMARC != want.bySignature {
			t.Errorf("%q, by a signature of the parent domain: %s, want %s", policy, found.DMARC, want.bySignature)
		}
		if _, found := verify(t, v, "192.0.2.1", "a@mail.football.example.com", unsigned); found.DMARC != want.bySender {
			t.Errorf("%q, by a sender of a subdomain: %s, want %s", policy, found.DMARC, want.bySender)
		}
	}
}

// A policy counts for a share of the messages: the others get the next milder one, and quarantine becomes nothing.
func TestShareOfAPolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{
		"p=reject": "refused", "p=reject; pct=100": "refused", "p=reject; pct=0": "held", "p=quarantine": "held", "p=quarantine; pct=0": "taken", "p=none": "taken",
		"p=none; sp=reject": "taken", "p=reject; sp=none": "refused",
	} {
		z := zone{}
		z.put(txt("_dmarc.example.com", "v=DMARC1; "+policy))
		v := &authenticity.Verifier{Resolver: z.resolver(t)}
		verdict, _ := verify(t, v, "198.51.100.1", "a@x.example", "From: a@example.com\n\n", authenticity.Checks{DMARC: authenticity.Enforce})
		got := "taken"
		switch {
		case verdict.IsRefused:
			got = "refused"
		case verdict.Quarantine != "":
			got = "held"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
	}
}
