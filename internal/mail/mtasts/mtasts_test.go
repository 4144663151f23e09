package mtasts_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/mtasts"
)

const policy = "version: STSv1\r\nmode: enforce\r\nmx: mx.example.com\r\nmx: *.example.com\r\nmax_age: 86400\r\n"

func TestPolicyAsItIsWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, mode, hosts string
		refused                 bool
	}{
		{name: "enforced", text: policy, mode: "enforce", hosts: "mx.example.com *.example.com"},
		{name: "unknown fields are passed over", text: policy + "extra: 1\nnonsense\n", mode: "enforce", hosts: "mx.example.com *.example.com"},
		{name: "the first of a field counts", text: policy + "mode: none\n", mode: "enforce", hosts: "mx.example.com *.example.com"},
		{name: "none needs no host", text: "version: STSv1\nmode: none\nmax_age: 1\n", mode: "none"},
		{name: "another version", text: strings.Replace(policy, "STSv1", "STSv2", 1), refused: true},
		{name: "another mode", text: strings.Replace(policy, "enforce", "maybe", 1), refused: true},
		{name: "no host", text: "version: STSv1\nmode: enforce\nmax_age: 1\n", refused: true},
		{name: "no age", text: "version: STSv1\nmode: enforce\nmx: a\n", refused: true},
		{name: "a negative age", text: strings.Replace(policy, "86400", "-1", 1), refused: true},
		{name: "nothing", refused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := mtasts.Parse(strings.NewReader(c.text))
			if c.refused {
				if err == nil {
					t.Fatal("the policy was believed")
				}
				return
			}
			if err != nil || got.Mode != c.mode || strings.Join(got.Hosts, " ") != c.hosts {
				t.Errorf("policy is %+v, %v", got, err)
			}
		})
	}
}

func TestNumberIsThatOfTheOneRecordThatIsWellFormed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ texts, id string }{
		{"v=STSv1; id=20260101T000000;", "20260101T000000"},
		{"v=spf1 -all|v=STSv1;id=a;", "a"},
		{"v=STSv1; \tid=a \t; other=b", "a"},
		{"v=STSv1; id=" + strings.Repeat("9", 32), strings.Repeat("9", 32)},
		{"v=STSv1; id=" + strings.Repeat("9", 33), ""},
		{"v=STSv1; id=a b", ""},
		{"v=STSv1; id=a\x00", ""},
		{"v=STSv1; id=ä", ""},
		{"v=STSv1; id=", ""},
		{"v=STSv1", ""},
		{"v=STSv1; id=a;|v=STSv1; id=a;", ""},
		{"v=STSv10; id=a;", ""},
		{" v=STSv1; id=a;", ""},
	} {
		if id := mtasts.Number(strings.Split(c.texts, "|")); id != c.id {
			t.Errorf("the number of %q is %q, want %q", c.texts, id, c.id)
		}
	}
}

func FuzzNumber(f *testing.F) {
	f.Add("v=STSv1; id=20260101T000000;", "v=spf1 -all")
	f.Add("v=STSv1; id=a;", "v=STSv1; id=b;")
	well := regexp.MustCompile(`^[0-9A-Za-z]{0,32}$`)
	f.Fuzz(func(t *testing.T, one, other string) {
		id := mtasts.Number([]string{one, other})
		if !well.MatchString(id) || !strings.Contains(one+other, id) || id != mtasts.Number([]string{other, one}) {
			t.Errorf("the number of %q and %q is %q", one, other, id)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(policy)
	f.Add("version: STSv1\nmode: none\nmax_age: 99999999999999999999\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := mtasts.Parse(strings.NewReader(text))
		if err == nil && (time.Until(got.Until) > 366*24*time.Hour || (got.Mode != mtasts.ModeNone && len(got.Hosts) == 0)) {
			t.Errorf("policy is %+v", got)
		}
	})
}

// domain is a domain with a zone and a web server on loopback.
type domain struct {
	id      atomic.Value
	text    atomic.Value
	failing atomic.Bool
	reads   atomic.Int64
	kept    map[string]mtasts.Policy
	client  *http.Client
}

func newDomain(t *testing.T) *domain {
	t.Helper()
	d := &domain{kept: make(map[string]mtasts.Policy)}
	d.id.Store("v=STSv1; id=1;")
	d.text.Store(policy)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.reads.Add(1)
		if d.failing.Load() || r.URL.Path != "/.well-known/mta-sts.txt" {
			http.Error(w, "gone", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, d.text.Load().(string))
	}))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	address := server.Listener.Addr().String()
	d.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}
	return d
}

func (d *domain) policies() *mtasts.Policies {
	return &mtasts.Policies{
		Text: func(context.Context, string) ([]string, error) {
			if d.failing.Load() {
				return nil, errors.New("no answer")
			}
			return []string{"v=spf1 -all", d.id.Load().(string)}, nil
		},
		Client: d.client, Keeper: d, Logger: slog.New(slog.DiscardHandler),
	}
}

func (d *domain) Kept(_ context.Context, name string) (*mtasts.Policy, error) {
	if kept, found := d.kept[name]; found {
		return &kept, nil
	}
	return nil, nil
}

func (d *domain) Keep(_ context.Context, name string, p mtasts.Policy) error {
	d.kept[name] = p
	return nil
}

func TestPolicyIsReadOnceForEachNumber(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	for range 3 {
		if got := d.policies().Of(t.Context(), "Example.com"); got == nil || got.Mode != mtasts.ModeEnforce {
			t.Fatalf("policy is %+v", got)
		}
	}
	if d.reads.Load() != 1 {
		t.Errorf("read %d times", d.reads.Load())
	}
	d.id.Store("v=STSv1; id=2;")
	d.text.Store(strings.Replace(policy, "enforce", "testing", 1))
	if got := d.policies().Of(t.Context(), "example.com"); got.Mode != mtasts.ModeTesting || d.reads.Load() != 2 {
		t.Errorf("policy is %+v after %d reads", got, d.reads.Load())
	}
	d.id.Store("v=STSv1; id=3;")
	d.text.Store(strings.Replace(policy, "enforce", "none", 1))
	if got := d.policies().Of(t.Context(), "example.com"); got != nil {
		t.Errorf("a policy that asks for nothing holds: %+v", got)
	}
}

func TestPolicyHoldsWhenNothingMoreCanBeRead(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	d.policies().Of(t.Context(), "example.com")
	d.failing.Store(true)
	if got := d.policies().Of(t.Context(), "example.com"); got == nil || got.Mode != mtasts.ModeEnforce {
		t.Errorf("policy is %+v", got)
	}
	d.failing.Store(false)
	d.id.Store("v=STSv1; id=3;")
	d.text.Store("nonsense")
	if got := d.policies().Of(t.Context(), "example.com"); got == nil || got.ID != "1" {
		t.Errorf("policy is %+v", got)
	}
	over := d.kept["example.com"]
	over.Until = time.Now().Add(-time.Second)
	d.kept["example.com"] = over
	if got := d.policies().Of(t.Context(), "example.com"); got != nil {
		t.Errorf("a policy that is over holds: %+v", got)
	}
}

// Of a policy that is longer than is read nothing holds: a part of it would name a part of the hosts.
func TestPolicyThatIsTooLongIsNone(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]bool{64 << 10: true, 64<<10 + 1: false} {
		d := newDomain(t)
		d.text.Store(policy + strings.Repeat("x", length-len(policy)))
		if got := d.policies().Of(t.Context(), "example.com"); (got != nil) != want {
			t.Errorf("of a policy of %d bytes there holds %+v", length, got)
		}
	}
}

func TestDomainWithoutAPolicy(t *testing.T) {
	t.Parallel()
	for _, record := range []string{"", "v=spf1 -all", "v=STSv1; x=1"} {
		d := newDomain(t)
		d.id.Store(record)
		if got := d.policies().Of(t.Context(), "example.com"); got != nil || d.reads.Load() != 0 {
			t.Errorf("%q: policy is %+v", record, got)
		}
	}
}

func TestCertificateThatDoesNotProveTheDomain(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	d.client.Transport.(*http.Transport).TLSClientConfig.RootCAs = x509.NewCertPool()
	if got := d.policies().Of(t.Context(), "example.com"); got != nil {
		t.Errorf("policy is %+v", got)
	}
}
