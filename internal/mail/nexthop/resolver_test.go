package nexthop_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/nexthop"
)

// zone is a name server on loopback that answers from the records it is given, and counts the questions.
type zone struct {
	address   string
	questions atomic.Int64
	// secure is whether answers carry the AD bit; failing, whether the server fails.
	secure, failing atomic.Bool
}

func newZone(t *testing.T, records ...string) *zone {
	t.Helper()
	z := &zone{}
	parsed := make([]dns.RR, len(records))
	for i, text := range records {
		parsed[i] = record(t, text)
	}
	z.address = mailtest.NameServer(t, dns.HandlerFunc(func(w dns.ResponseWriter, asked *dns.Msg) {
		z.questions.Add(1)
		response := new(dns.Msg).SetReply(asked)
		response.AuthenticatedData = z.secure.Load()
		if z.failing.Load() {
			response.Rcode = dns.RcodeServerFailure
			_ = w.WriteMsg(response)
			return
		}
		name, exists := asked.Question[0].Name, false
		for range 10 {
			alias := ""
			for _, record := range parsed {
				if !strings.EqualFold(record.Header().Name, name) {
					continue
				}
				exists = true
				if kind := record.Header().Rrtype; kind == asked.Question[0].Qtype {
					response.Answer = append(response.Answer, record)
				} else if kind == dns.TypeCNAME {
					response.Answer = append(response.Answer, record)
					alias = record.(*dns.CNAME).Target
				}
			}
			if alias == "" {
				break
			}
			name = alias
		}
		if !exists {
			response.Rcode = dns.RcodeNameError
		}
		_ = w.WriteMsg(response)
	}))
	return z
}

func (z *zone) resolver(t *testing.T) *nexthop.Resolver {
	t.Helper()
	r, err := nexthop.New(nexthop.Config{Servers: []string{z.address}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestExchangersOfADomain(t *testing.T) {
	t.Parallel()
	z := newZone(t,
		"plain.example. 300 IN MX 20 second.plain.example.",
		"plain.example. 300 IN MX 10 first.plain.example.",
		"plain.example. 300 IN MX 30 self.example.",
		"plain.example. 300 IN MX 40 worse.example.",
		"only-self.example. 300 IN MX 10 self.example.",
		"implicit.example. 300 IN A 192.0.2.1",
		"null.example. 300 IN MX 0 .",
		"alias.example. 300 IN CNAME plain.example.",
		"loop1.example. 300 IN CNAME loop2.example.",
		"loop2.example. 300 IN CNAME loop1.example.",
		"xn--mnchen-3ya.example. 300 IN MX 10 mx.example.",
	)
	resolver := z.resolver(t)
	self := func(name string) bool { return name == "self.example" }
	for _, c := range []struct {
		name, domain string
		hosts        []string
		enhanced     string
		permanent    bool
	}{
		{
			name: "lower preferences first, and none that is worse than this host", domain: "plain.example",
			hosts: []string{"first.plain.example", "second.plain.example"},
		},
		{name: "a domain without MX records is its own exchanger", domain: "implicit.example", hosts: []string{"implicit.example"}},
		{name: "a null MX refuses mail", domain: "null.example", enhanced: "5.1.10", permanent: true},
		{name: "a domain that does not exist", domain: "absent.example", enhanced: "5.1.2", permanent: true},
		{name: "this host is the best exchanger", domain: "only-self.example", enhanced: "5.4.6", permanent: true},
		{name: "an alias is followed", domain: "alias.example", hosts: []string{"first.plain.example", "second.plain.example"}},
		{name: "aliases that run in a circle", domain: "loop1.example", enhanced: "5.4.4", permanent: true},
		{name: "a name in other letters", domain: "München.example", hosts: []string{"mx.example"}},
		{name: "an address is its own exchanger", domain: "[192.0.2.7]", hosts: []string{"192.0.2.7"}},
		{name: "an address of version 6 too", domain: "[ipv6:2001:db8::7]", hosts: []string{"2001:db8::7"}},
		{name: "no address in the brackets", domain: "[2001:db8::7]", enhanced: "5.1.2", permanent: true},
		{name: "no name", domain: "", enhanced: "5.1.2", permanent: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hosts, err := resolver.Exchangers(context.Background(), c.domain, self)
			if c.enhanced != "" {
				var failure *nexthop.Error
				if !errors.As(err, &failure) || failure.Enhanced != c.enhanced || failure.Permanent != c.permanent {
					t.Fatalf("failed with %v (%+v), want %s", err, failure, c.enhanced)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, host := range hosts {
				names = append(names, host.Name)
			}
			if strings.Join(names, " ") != strings.Join(c.hosts, " ") {
				t.Errorf("hosts are %v, want %v", names, c.hosts)
			}
		})
	}
}

func TestAnswersAreKeptAsLongAsTheySay(t *testing.T) {
	t.Parallel()
	z := newZone(t, "kept.example. 300 IN MX 10 mx.example.", "brief.example. 0 IN MX 10 mx.example.")
	resolver := z.resolver(t)
	nobody := func(string) bool { return false }
	for _, c := range []struct {
		domain    string
		questions int64
	}{{"kept.example", 1}, {"brief.example", 3}} {
		before := z.questions.Load()
		for range 3 {
			if _, err := resolver.Exchangers(context.Background(), c.domain, nobody); err != nil {
				t.Fatal(err)
			}
		}
		if asked := z.questions.Load() - before; asked != c.questions {
			t.Errorf("%s was asked for %d times, want %d", c.domain, asked, c.questions)
		}
	}
	before := z.questions.Load()
	resolver.Flush()
	if _, err := resolver.Exchangers(context.Background(), "kept.example", nobody); err != nil || z.questions.Load() == before {
		t.Errorf("after a flush nothing was asked (%v)", err)
	}
}

func TestServerThatFailsIsTriedLater(t *testing.T) {
	t.Parallel()
	z := newZone(t, "plain.example. 300 IN MX 10 mx.example.")
	z.failing.Store(true)
	resolver := z.resolver(t)
	_, err := resolver.Exchangers(context.Background(), "plain.example", func(string) bool { return false })
	var failure *nexthop.Error
	if !errors.As(err, &failure) || failure.Permanent || failure.Enhanced != "4.4.3" {
		t.Fatalf("failed with %v, want 4.4.3 that may pass", err)
	}
	z.failing.Store(false)
	if _, err := resolver.Exchangers(context.Background(), "plain.example", func(string) bool { return false }); err != nil {
		t.Errorf("the failure was kept: %v", err)
	}
}

func TestAddressesOfBothVersions(t *testing.T) {
	t.Parallel()
	z := newZone(t,
		"mx.example. 300 IN A 192.0.2.1", "mx.example. 300 IN A 192.0.2.2", "mx.example. 300 IN AAAA 2001:db8::1",
		"bare.example. 300 IN TXT \"nothing\"",
	)
	resolver := z.resolver(t)
	addresses, secure, err := resolver.Addresses(context.Background(), "mx.example")
	if err != nil || len(addresses) != 3 || !addresses[0].Is6() || !addresses[1].Is4() || secure {
		t.Errorf("addresses are %v, secure %v, %v", addresses, secure, err)
	}
	for name, want := range map[string]nexthop.Error{
		"bare.example":   {Permanent: true, Enhanced: "5.4.4"},
		"absent.example": {Permanent: true, Enhanced: "5.4.4"},
	} {
		var failure *nexthop.Error
		if _, _, err := resolver.Addresses(context.Background(), name); !errors.As(err, &failure) ||
			failure.Permanent != want.Permanent || failure.Enhanced != want.Enhanced {
			t.Errorf("%s: %v", name, err)
		}
	}
	literal, _, err := resolver.Addresses(context.Background(), "[2001:db8::2]")
	if err != nil || len(literal) != 1 || literal[0].String() != "2001:db8::2" {
		t.Errorf("a literal is %v, %v", literal, err)
	}
}

func TestTextIsThatOfTheZone(t *testing.T) {
	t.Parallel()
	z := newZone(t, `plain.example. 300 IN TXT "v=STSv1; " "id=1;"`, `odd.example. 300 IN TXT "a\"b\\c\195\164 \0091"`)
	for name, want := range map[string]string{"plain.example": "v=STSv1; id=1;", "odd.example": "a\"b\\cä \t1"} {
		if texts, err := z.resolver(t).Text(t.Context(), name); err != nil || len(texts) != 1 || texts[0] != want {
			t.Errorf("%s: %q, %v", name, texts, err)
		}
	}
}

func TestTLSACountsOnlyFromASignedZone(t *testing.T) {
	t.Parallel()
	z := newZone(t, "_25._tcp.mx.example. 300 IN TLSA 3 1 1 "+strings.Repeat("ab", 32))
	for _, secure := range []bool{false, true} {
		z.secure.Store(secure)
		records, err := z.resolver(t).TLSA(context.Background(), "mx.example", 25)
		if err != nil || (len(records) == 1) != secure {
			t.Errorf("secure %v: records %v, %v", secure, records, err)
		}
	}
}
