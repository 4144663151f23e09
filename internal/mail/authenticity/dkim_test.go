package authenticity_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/parley-broker/parley/internal/mail/authenticity"
	"github.com/parley-broker/parley/internal/mail/message"
)

// The keys of RFC 6376, appendix C, and RFC 8463, appendix A.
const (
	keyRSA = "v=DKIM1; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDwIRP/UC3SBsEmGqZ9ZJW3/DkMoGeLnQg1fWn7/zYtIxN2SnFCjxOCKG9v3b4jYfcTNh5ijSsq631uBItLa7od+v/" +
		"RtdC2UzJ1lWT947qR+Rcac2gbto/NMqJ0fzfVjH4OuKhitdY9tf6mcwGjaNBcWToIMmPSPDdQPNUYckcQ2QIDAQAB"
	keyTest = "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQiY/J16JYi0Qvx/byYzCNb3W91y3FutAC" +
		"DfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB"
	keyEd25519 = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
)

const signed6376 = `DKIM-Signature: v=1; a=rsa-sha256; s=brisbane; d=example.com;
      c=simple/simple; q=dns/txt; i=joe@football.example.com;
      h=Received : From : To : Subject : Date : Message-ID;
      bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
      b=AuUoFEfDxTDkHlLXSZEpZj79LICEps6eda7W3deTVFOk4yAUoqOB
      4nujc7YopdG5dWLSdNg6xNAZpOPr+kHxt1IrE+NahM6L/LbvaHut
      KVdkLLkpVaVVQPzeRDI009SO2Il5Lu7rDNH6mZckBdrIx0orEtZV
      4bmp/YzhwvcubU4=;
Received: from client1.football.example.com  [192.0.2.1]
      by submitserver.example.com with SUBMISSION;
      Fri, 11 Jul 2003 21:01:54 -0700 (PDT)
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game. Are you hungry yet?

Joe.
`

const signed8463 = `DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :
 subject : date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus
 Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=test; t=1528637909; h=from : to : subject :
 date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3
 DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2Jz
 dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game.  Are you hungry yet?

Joe.
`

func txt(name, text string) *dns.TXT {
	return &dns.TXT{Hdr: dns.RR_Header{Name: dns.Fqdn(name), Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: 60}, Txt: pieces(text)}
}

// results are the fields of a verdict that the store keeps.
type results struct {
	SPF   string
	DKIM  []struct{ Result, Domain string }
	DMARC string
}

// verify verifies a message that is written with newlines.
func verify(
	t *testing.T, v *authenticity.Verifier, peer, sender, text string, checks ...authenticity.Checks,
) (authenticity.Verdict, results) {
	t.Helper()
	text = strings.ReplaceAll(text, "\n", "\r\n")
	header, length, isComplete := message.ParseHeader([]byte(text))
	if !isComplete {
		t.Fatal("the header is not complete")
	}
	m := authenticity.Message{
		Peer: netip.MustParseAddr(peer), Helo: "client.example.com", Sender: sender, Identity: "mx.example.org", Header: header,
		Body: func() io.Reader { return strings.NewReader(text[length:]) },
	}
	for _, c := range checks {
		m.Checks = c
	}
	verdict := v.Verify(t.Context(), m)
	var found results
	if err := json.Unmarshal(verdict.Results, &found); err != nil {
		t.Fatal(err)
	}
	return verdict, found
}

func keys() zone {
	z := zone{}
	z.put(txt("brisbane._domainkey.example.com", keyRSA))
	z.put(txt("test._domainkey.football.example.com", keyTest))
	z.put(txt("brisbane._domainkey.football.example.com", keyEd25519))
	return z
}

func TestPublishedSignaturesAreVerified(t *testing.T) {
	t.Parallel()
	v := &authenticity.Verifier{Resolver: keys().resolver(t)}
	for name, want := range map[string]struct{ text, results string }{
		"RFC 6376":            {signed6376, "[{pass example.com}]"},
		"RFC 6376, body":      {strings.Replace(signed6376, "hungry", "Hungry", 1), "[{fail example.com}]"},
		"RFC 6376, header":    {strings.Replace(signed6376, "Is dinner", "is dinner", 1), "[{fail example.com}]"},
		"RFC 6376, space":     {strings.Replace(signed6376, "game. Are", "game.  Are", 1), "[{fail example.com}]"},
		"RFC 8463":            {signed8463, "[{pass football.example.com} {pass football.example.com}]"},
		"RFC 8463, space":     {strings.Replace(signed8463, "game.  Are", "game.   Are", 1), "[{pass football.example.com} {pass football.example.com}]"},
		"RFC 8463, body":      {signed8463 + "PS\n", "[{fail football.example.com} {fail football.example.com}]"},
		"no key":              {strings.Replace(signed6376, "s=brisbane", "s=melbourne", 1), "[{permerror example.com}]"},
		"another From before": {"From: x@y\n" + signed8463, "[{fail football.example.com} {fail football.example.com}]"},
		"none":                {"From: x@y\n\nhello\n", "[]"},
	} {
		if _, found := verify(t, v, "192.0.2.1", "", want.text); fmt.Sprint(found.DKIM) != want.results {
			t.Errorf("%s: got %v, want %s", name, found.DKIM, want.results)
		}
	}
}

// The cases of alignment of RFC 7489, appendix B.1, and what follows of a policy.
func TestPolicyOfTheAuthorsDomainIsFollowed(t *testing.T) {
	t.Parallel()
	z := keys()
	for _, domain := range []string{"example.com", "sub.example.com", "other.example.net", "football.example.com"} {
		z.put(txt(domain, "v=spf1 ip4:192.0.2.1 -all"))
	}
	z.put(txt("_dmarc.example.com", "v=DMARC1; p=reject; sp=quarantine"))
	z.put(txt("_dmarc.strict.example.org", "v=DMARC1; p=reject; adkim=s; aspf=s"))
	z.put(txt("sub.strict.example.org", "v=spf1 ip4:192.0.2.1 -all"))
	z.put(txt("strict.example.org", "v=spf1 ip4:192.0.2.1 -all"))
	z.put(txt("_dmarc.share.example.org", "v=DMARC1; p=reject; pct=0"))
	z.put(txt("_dmarc.none.example.org", "v=DMARC1; p=none"))
	z.put(txt("_dmarc.bad.example.org", "v=DMARC1; p=maybe"))
	z.fail("_dmarc.away.example.org")
	resolver := z.resolver(t)
	for _, test := range []struct {
		name, peer, sender, text, dmarc, outcome string
	}{
		{"SPF in alignment", "192.0.2.1", "a@example.com", "From: a@example.com\n\n", "pass", "taken"},
		{"SPF in alignment, parent", "192.0.2.1", "a@sub.example.com", "From: a@example.com\n\n", "pass", "taken"},
		{"SPF in alignment, child", "192.0.2.1", "a@example.com", "From: a@sub.example.com\n\n", "pass", "taken"},
		{"SPF not in alignment", "192.0.2.1", "a@other.example.net", "From: a@example.com\n\n", "fail", "refused"},
		{"SPF fails", "198.51.100.1", "a@example.com", "From: a@example.com\n\n", "fail", "refused"},
		{"policy of subdomains", "198.51.100.1", "a@example.com", "From: a@sub.example.com\n\n", "fail", "held"},
		{"strict, same", "192.0.2.1", "a@strict.example.org", "From: a@strict.example.org\n\n", "pass", "taken"},
		{"strict, child", "192.0.2.1", "a@sub.strict.example.org", "From: a@strict.example.org\n\n", "fail", "refused"},
		{"DKIM in alignment", "198.51.100.1", "a@other.example.net", signed8463, "pass", "taken"},
		{"DKIM in alignment, parent", "198.51.100.1", "a@other.example.net", signed6376, "pass", "taken"},
		{"DKIM fails", "198.51.100.1", "a@other.example.net", strings.Replace(signed8463, "lost", "won", 1), "fail", "held"},
		{"no record", "198.51.100.1", "a@x.example", "From: a@nowhere.example\n\n", "none", "taken"},
		{"a share of none", "198.51.100.1", "a@x.example", "From: a@share.example.org\n\n", "fail", "held"},
		{"policy none", "198.51.100.1", "a@x.example", "From: a@none.example.org\n\n", "fail", "taken"},
		{"record that is wrong", "198.51.100.1", "a@x.example", "From: a@bad.example.org\n\n", "permerror", "taken"},
		{"DNS is away", "198.51.100.1", "a@x.example", "From: a@away.example.org\n\n", "temperror", "deferred"},
		{"two authors", "192.0.2.1", "a@example.com", "From: a@example.com, b@strict.example.org\n\n", "fail", "refused"},
		{"two From", "192.0.2.1", "a@example.com", "From: a@example.com\nFrom: b@example.com\n\n", "permerror", "refused"},
		{"no From", "192.0.2.1", "a@example.com", "Subject: x\n\n", "permerror", "refused"},
		{"From that is none", "192.0.2.1", "a@example.com", "From: a@example.com b@c\n\n", "permerror", "refused"},
		{"report", "198.51.100.1", "", "From: a@example.com\n\n", "fail", "refused"},
	} {
		for _, isEnforced := range []bool{true, false} {
			checks := authenticity.Checks{}
			if isEnforced {
				checks.DMARC = authenticity.Enforce
			}
			verdict, found := verify(t, &authenticity.Verifier{Resolver: resolver}, test.peer, test.sender, test.text, checks)
			outcome := "taken"
			switch {
			case verdict.IsRefused:
				outcome = "refused"
			case verdict.IsDeferred:
				outcome = "deferred"
			case verdict.Quarantine != "":
				outcome = "held"
			}
			want := test.outcome
			if !isEnforced {
				want = "taken"
			}
			if found.DMARC != test.dmarc || outcome != want {
				t.Errorf("%s: got %s, %s; want %s, %s (%s)", test.name, found.DMARC, outcome, test.dmarc, want, verdict.Field.Value())
			}
		}
	}
}

func TestResultsCannotBeginAnotherField(t *testing.T) {
	t.Parallel()
	v := &authenticity.Verifier{Resolver: zone{}.resolver(t)}
	verdict, _ := verify(t, v, "192.0.2.1", "\"a\r\nX: y\"@b", "From: \"x\" <a@b>\n\n")
	header, _, isComplete := message.ParseHeader(append(verdict.Field.Raw, '\r', '\n'))
	if !isComplete || len(header) != 1 || header.HasBareLineEnd() {
		t.Errorf("the field is %q", verdict.Field.Raw)
	}
	if value := verdict.Field.Value(); !strings.Contains(value, "; dkim=none; dmarc=") || strings.HasSuffix(value, " ") {
		t.Errorf("a result without properties has a blank behind it: %q", value)
	}
}
