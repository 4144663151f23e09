package authenticity_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/authenticity"
)

// keyShort has 768 bits, fewer than RFC 8301 lets anybody take.
const keyShort = "v=DKIM1; p=MHwwDQYJKoZIhvcNAQEBBQADawAwaAJhALIaEVjek4CBvy2i7hMC9zP9f2xIIBYMdqquVF9lBUxo8+d0NVjQgcAbinqfOLyVOKK3A5ESD6IpmyuRVibM" +
	"nNDtLngvkcIRVJH1vLfgBUKi6VAYWdVaovv6yYdhyEsp/QIDAQAB"

// Each way in which a signature or its key can be wrong, by the section of RFC 6376 that says so, or of RFC 8301 and 8463. The message is
// that of appendix A, which passes as it is.
func TestEachErrorOfDKIMHasItsResult(t *testing.T) {
	t.Parallel()
	z := keys()
	publicKey := strings.TrimPrefix(keyRSA, "v=DKIM1; ")
	for selector, record := range map[string]string{
		"version": "v=DKIM2; " + publicKey, "revoked": "v=DKIM1; p=", "empty": "v=DKIM1; n=none", "garbled": "v=DKIM1; p=%%%",
		"ed25519": keyEd25519, "unknown": "v=DKIM1; k=dsa; " + publicKey, "sha1": "v=DKIM1; h=sha1; " + publicKey,
		"sha256": "v=DKIM1; h=sha1 : sha256; " + publicKey, "service": "v=DKIM1; s=tlsrpt; " + publicKey,
		"email": "v=DKIM1; s=tlsrpt : email; " + publicKey, "bare": publicKey, "short": keyShort, "more": "v=DKIM1; n=x; x-new=1; " + publicKey,
	} {
		z.put(txt(selector+"._domainkey.example.com", record))
	}
	z.put(txt("two._domainkey.example.com", keyRSA))
	z.put(txt("two._domainkey.example.com", keyTest))
	z.fail("away._domainkey.example.com")
	v := &authenticity.Verifier{Resolver: z.resolver(t)}
	for _, test := range []struct{ section, old, changed, result string }{
		{"3.5 v", "v=1;", "v=2;", "permerror"},
		{"3.5 v", "v=1; ", "", "permerror"},
		{"3.5 a", "a=rsa-sha256", "a=rsa-sha512", "permerror"},
		{"3.5 a", "a=rsa-sha256", "a=rsa", "permerror"},
		{"RFC 8301 3.1", "a=rsa-sha256", "a=rsa-sha1", "permerror"},
		{"3.5 c", "c=simple/simple", "c=simple/none", "permerror"},
		{"3.5 c", "c=simple/simple", "c=none/simple", "permerror"},
		{"3.5 d", "d=example.com;", "", "permerror"},
		{"3.5 s", "s=brisbane; ", "", "permerror"},
		{"3.5 h", "h=Received : From", "h=Received ", "permerror"},
		{"3.5 bh", "bh=", "xh=", "permerror"},
		{"3.5 bh", "bh=2jUS", "bh=!jUS", "permerror"},
		{"3.5 b", "      b=AuUo", "      b=!uUo", "permerror"},
		{"3.5 i", "i=joe@football.example.com", "i=joe@football.example.net", "permerror"},
		{"3.5 i", "i=joe@football.example.com", "i=joe@footballexample.com", "permerror"},
		{"3.5 q", "q=dns/txt", "q=http/json", "permerror"},
		{"3.5 x", "q=dns/txt;", "q=dns/txt; x=1;", "permerror"},
		{"3.5 x", "q=dns/txt;", "q=dns/txt; x=soon;", "permerror"},
		{"3.5 t", "q=dns/txt;", "q=dns/txt; t=then;", "permerror"},
		{"3.2", "q=dns/txt;", "q dns txt;", "permerror"},
		{"8.2 l", "q=dns/txt;", "q=dns/txt; l=10;", "fail"},
		{"3.5 t, signed", "q=dns/txt;", "q=dns/txt; t=1;", "fail"},
		{"3.6.1 v", "s=brisbane", "s=version", "permerror"},
		{"3.6.1 p", "s=brisbane", "s=revoked", "permerror"},
		{"3.6.1 p", "s=brisbane", "s=empty", "permerror"},
		{"3.6.1 p", "s=brisbane", "s=garbled", "permerror"},
		{"3.6.1 k", "s=brisbane", "s=unknown", "permerror"},
		{"3.6.1 k", "s=brisbane", "s=ed25519", "permerror"},
		{"3.6.1 h", "s=brisbane", "s=sha1", "permerror"},
		{"3.6.1 s", "s=brisbane", "s=service", "permerror"},
		{"3.6.2.2", "s=brisbane", "s=two", "permerror"},
		{"6.1.2 (2)", "s=brisbane", "s=away", "temperror"},
		{"6.1.2 (3)", "s=brisbane", "s=nowhere", "permerror"},
		{"RFC 8301 3.2", "s=brisbane", "s=short", "permerror"},
		// The selector is signed, so another one with the right key fails by its signature alone.
		{"3.6.1 v, left out", "s=brisbane", "s=bare", "fail"},
		{"3.6.1 h, among others", "s=brisbane", "s=sha256", "fail"},
		{"3.6.1 s, among others", "s=brisbane", "s=email", "fail"},
		{"3.6.1, unknown tags", "s=brisbane", "s=more", "fail"},
		{"6.1.3 (4)", "b=AuUo", "b=BuUo", "fail"},
		{"A.2", "", "", "pass"},
	} {
		text := signed6376
		if test.old != "" {
			if !strings.Contains(text, test.old) {
				t.Fatalf("the message has no %q", test.old)
			}
			text = strings.Replace(text, test.old, test.changed, 1)
		}
		verdict, found := verify(t, v, "192.0.2.1", "", text)
		if len(found.DKIM) != 1 || found.DKIM[0].Result != test.result {
			t.Errorf("%s: %q: got %v, want %s (%s)", test.section, test.changed, found.DKIM, test.result, verdict.Field.Value())
		}
	}
}

// More signatures than five are passed over, so a message cannot have us ask DNS for as long as it likes.
func TestSignaturesBeyondTheFifthAreNotVerified(t *testing.T) {
	t.Parallel()
	v := &authenticity.Verifier{Resolver: keys().resolver(t)}
	signature, message, _ := strings.Cut(signed6376, "Received: ")
	foreign := strings.Replace(signature, "s=brisbane", "s=nowhere", 1)
	_, found := verify(t, v, "192.0.2.1", "", strings.Repeat(foreign, 5)+signature+"Received: "+message)
	if got := fmt.Sprint(found.DKIM); got != "["+strings.TrimSpace(strings.Repeat("{permerror example.com} ", 5))+"]" {
		t.Errorf("got %s", got)
	}
}

// Where the policy of a domain is found, and what is read in it: RFC 7489, sections 6.3, 6.6.3 and 3.1.
func TestPolicyIsFoundAndRead(t *testing.T) {
	t.Parallel()
	z := zone{}
	for domain, records := range map[string][]string{
		"plain.example":            {"v=DMARC1; p=reject"},
		"tight.example":            {"v=DMARC1;p=reject;"},
		"spaces.example":           {"v = DMARC1 ; p = reject "},
		"upper.example":            {"v=DMARC1; P=Reject"},
		"pieces.example":           {"v=DMARC1; p=reject; rua=mailto:" + strings.Repeat("a", 300) + "@example.org"},
		"version.example":          {"v=DMARC2; p=reject"},
		"case.example":             {"v=dmarc1; p=reject"},
		"late.example":             {"p=reject; v=DMARC1"},
		"else.example":             {"v=spf1 -all", "google-site-verification=x", "v=DMARC1; p=reject", "other; text"},
		"two.example":              {"v=DMARC1; p=reject", "v=DMARC1; p=none"},
		"unknown.example":          {"v=DMARC1; p=reject; np=reject; psd=n; x"},
		"reports.example":          {"v=DMARC1; p=reject; rf=iodef; ri=0; fo=x; rua=none"},
		"alignment.example":        {"v=DMARC1; p=reject; adkim=strict; aspf=?"},
		"share.example":            {"v=DMARC1; p=reject; pct=100%"},
		"over.example":             {"v=DMARC1; p=reject; pct=200"},
		"subdomains.example":       {"v=DMARC1; p=reject; sp=rejct"},
		"missing.example":          {"v=DMARC1; sp=reject"},
		"wrong.example":            {"v=DMARC1; p=block"},
		"organization.example":     {"v=DMARC1; p=none; sp=reject"},
		"own.organization.example": {"v=DMARC1; p=quarantine"},
		"nested.example":           {"v=DMARC1; p=reject"},
		"between.nested.example":   {"v=DMARC1; p=none"},
		"co.uk":                    {"v=DMARC1; p=reject"},
		"shop.co.uk":               {"v=DMARC1; p=quarantine"},
	} {
		for _, record := range records {
			z.put(txt("_dmarc."+domain, record))
		}
	}
	z.fail("_dmarc.away.example")
	v := &authenticity.Verifier{Resolver: z.resolver(t)}
	for _, test := range []struct{ section, domain, dmarc, policy string }{
		{"6.3", "plain.example", "fail", "reject"},
		{"6.4", "tight.example", "fail", "reject"},
		{"6.4", "spaces.example", "fail", "reject"},
		{"6.4", "upper.example", "fail", "reject"},
		{"6.1", "pieces.example", "fail", "reject"},
		{"6.6.3 (2)", "version.example", "none", ""},
		{"6.3 v", "case.example", "none", ""},
		{"6.3 v", "late.example", "none", ""},
		{"6.6.3 (2)", "else.example", "fail", "reject"},
		{"6.6.3 (5)", "two.example", "none", ""},
		{"6.3", "unknown.example", "fail", "reject"},
		{"6.3", "reports.example", "fail", "reject"},
		{"6.3", "alignment.example", "fail", "reject"},
		{"6.3", "share.example", "fail", "reject"},
		{"6.3", "over.example", "fail", "reject"},
		{"6.3", "subdomains.example", "fail", "reject"},
		{"6.6.3 (6)", "missing.example", "permerror", ""},
		{"6.6.3 (6)", "wrong.example", "permerror", ""},
		{"6.3 sp", "organization.example", "fail", ""},
		{"6.3 sp", "any.organization.example", "fail", "reject"},
		{"6.6.3 (1)", "own.organization.example", "fail", "quarantine"},
		// Of the domains between, none is asked: only that of the organization (section 3.2).
		{"6.6.3 (3)", "deep.between.nested.example", "fail", "reject"},
		{"3.2", "shop.co.uk", "fail", "quarantine"},
		{"3.2", "www.shop.co.uk", "fail", "quarantine"},
		{"3.2", "other.co.uk", "none", ""},
		{"6.6.3", "away.example", "temperror", "deferred"},
		{"6.6.3", "sub.away.example", "temperror", "deferred"},
		{"6.6.3", "silent.example", "none", ""},
	} {
		verdict, found := verifyEnforced(t, v, "From: a@"+test.domain+"\n\n")
		policy := ""
		switch {
		case verdict.IsRefused:
			policy = "reject"
		case verdict.Quarantine != "":
			policy = "quarantine"
		case verdict.IsDeferred:
			policy = "deferred"
		}
		if found.DMARC != test.dmarc || policy != test.policy {
			t.Errorf("%s: %s: got %s, %q; want %s, %q (%s)", test.section, test.domain, found.DMARC, policy, test.dmarc, test.policy, verdict.Field.Value())
		}
	}
}
