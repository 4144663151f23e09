package authenticity_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/authenticity"
	"github.com/parley-broker/parley/internal/mail/message"
)

// No sender can leave a field that says under our name a finding that is not ours.
func FuzzWithoutResults(f *testing.F) {
	for _, value := range []string{"mx.example.com; spf=pass", "MX.example.com 1; none", "(x)mx.example.com(y) ; x", `"mx.example.com"; x`, "other; spf=pass", "(((", `m\x.example.com;`, "mx.example.com\x1a"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		header, _, _ := message.ParseHeader([]byte("Authentication-Results: " + value + "\r\n\r\n"))
		kept := header.WithoutResults("other.example.com", "mx.example.com")
		for _, field := range kept.All("Authentication-Results") {
			words := strings.FieldsFunc(strings.ToLower(field.Value()), func(r rune) bool { return r <= ' ' || r == ';' || r == '"' })
			if len(words) > 0 && words[0] == "mx.example.com" {
				t.Errorf("%q was kept", value)
			}
		}
	})
}

// answers are those of a DNS server that somebody else writes.
type answers string

func (a answers) LookupTXT(context.Context, string) ([]string, error) {
	return []string{string(a)}, nil
}

func (a answers) LookupMX(context.Context, string) ([]*net.MX, error) {
	return []*net.MX{{Host: string(a), Pref: 1}}, nil
}

func (a answers) LookupIPAddr(context.Context, string) ([]net.IPAddr, error) {
	return []net.IPAddr{{IP: net.IPv4(192, 0, 2, 1)}}, nil
}

func (a answers) LookupAddr(context.Context, string) ([]string, error) {
	return []string{string(a)}, nil
}

// There is a verdict for each message and each zone of its domains, in a field of one line that names us.
func FuzzVerify(f *testing.F) {
	f.Add("From: a@b.example\r\nDKIM-Signature: v=1; a=rsa-sha256; d=b.example; s=s; h=from; bh=x; b=y\r\n\r\n", "v=spf1 ip4:192.0.2.0/24 -all", "a@b.example")
	f.Add("From: a@b.example, c@d.example\r\nFrom: x\r\n\r\n", "v=DMARC1; p=reject; pct=50; sp=none", "")
	f.Add("From: =?utf-8?q?a?= <a@b.example>\r\n\r\n", "v=spf1 include:%{d} exists:%{i}.%{l}._x redirect=c.example", "\"a b\"@c.example")
	f.Add("From: a@b.example\r\nDKIM-Signature: v=1; a=ed25519-sha256; d=b.example; s=s; h=from; bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=; b=aa==\r\n\r\n", "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "a@b")
	f.Fuzz(func(t *testing.T, text, record, sender string) {
		header, length, isComplete := message.ParseHeader([]byte(text))
		if !isComplete {
			return
		}
		verifier := &authenticity.Verifier{Resolver: answers(record)}
		verdict := verifier.Verify(t.Context(), authenticity.Message{
			Checks: authenticity.Checks{SPF: authenticity.Enforce, DMARC: authenticity.Enforce},
			Peer:   netip.MustParseAddr("192.0.2.1"), Helo: "client.example", Identity: "mx.example.com", Sender: sender, Header: header,
			Body: func() io.Reader { return strings.NewReader(text[length:]) },
		})
		written := message.Header{verdict.Field}
		again, _, isComplete := message.ParseHeader(written.Bytes())
		if !isComplete || len(again) != 1 || written.HasBareLineEnd() || !strings.Contains(verdict.Field.Value(), "mx.example.com") {
			t.Errorf("the field is %q", verdict.Field.Raw)
		}
		if strings.ContainsAny(verdict.Reason+verdict.Quarantine, "\r\n\x00") {
			t.Errorf("the reasons are %q and %q", verdict.Reason, verdict.Quarantine)
		}
	})
}
