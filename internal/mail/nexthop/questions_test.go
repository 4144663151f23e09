package nexthop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/nexthop"
)

// answering is a name server on loopback, by UDP and TCP, that does what a test says.
func answering(t *testing.T, answer func(asked, response *dns.Msg, isTCP bool)) *nexthop.Resolver {
	t.Helper()
	address := mailtest.NameServer(t, dns.HandlerFunc(func(w dns.ResponseWriter, asked *dns.Msg) {
		response := new(dns.Msg).SetReply(asked)
		answer(asked, response, w.LocalAddr().Network() == "tcp")
		_ = w.WriteMsg(response)
	}))
	resolver, err := nexthop.New(nexthop.Config{Servers: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	return resolver
}

func record(t *testing.T, text string) dns.RR {
	t.Helper()
	parsed, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// Each question says that we want to know whether an answer is signed (RFC 4035 section 3.2.1, RFC 6840 section 5.7), and how large one may
// be.
func TestQuestionAsksForSignatures(t *testing.T) {
	t.Parallel()
	var wrong atomic.Pointer[string]
	resolver := answering(t, func(asked, response *dns.Msg, _ bool) {
		if edns := asked.IsEdns0(); edns == nil || !edns.Do() || edns.UDPSize() < 1232 || !asked.AuthenticatedData {
			text := asked.String()
			wrong.Store(&text)
		}
		response.Answer = append(response.Answer, record(t, "a.example. 300 IN TXT x"))
	})
	if _, err := resolver.Text(t.Context(), "a.example"); err != nil {
		t.Fatal(err)
	}
	if text := wrong.Load(); text != nil {
		t.Errorf("the question is %s", *text)
	}
}

func TestAnswerThatFitsNoDatagramComesByTCP(t *testing.T) {
	t.Parallel()
	resolver := answering(t, func(_, response *dns.Msg, isTCP bool) {
		response.Truncated = !isTCP
		if isTCP {
			response.Answer = append(response.Answer, record(t, "a.example. 300 IN TXT x"))
		}
	})
	if texts, err := resolver.Text(t.Context(), "a.example"); err != nil || len(texts) != 1 {
		t.Errorf("the answer is %q, %v", texts, err)
	}
}

// A server that fails is asked twice.
func TestServerIsAskedTwice(t *testing.T) {
	t.Parallel()
	var questions atomic.Int64
	resolver := answering(t, func(_, response *dns.Msg, _ bool) {
		questions.Add(1)
		response.Rcode = dns.RcodeServerFailure
	})
	if _, err := resolver.Text(t.Context(), "a.example"); err == nil || questions.Load() != 2 {
		t.Errorf("after %d questions: %v", questions.Load(), err)
	}
}

// An answer is kept for its shortest time to live, its alias included; that there is none, for the least of what the zone says, and where it
// says nothing not at all.
func TestAnswerIsKeptForTheShortestTime(t *testing.T) {
	t.Parallel()
	var questions atomic.Int64
	resolver := answering(t, func(asked, response *dns.Msg, _ bool) {
		questions.Add(1)
		switch name := asked.Question[0].Name; {
		case strings.HasPrefix(name, "mixed."):
			response.Answer = append(response.Answer, record(t, name+" 300 IN TXT x"), record(t, name+" 1 IN TXT y"))
		case strings.HasPrefix(name, "alias."):
			response.Answer = append(response.Answer, record(t, name+" 1 IN CNAME to.example."), record(t, "to.example. 300 IN TXT x"))
		case strings.HasPrefix(name, "long."):
			response.Answer = append(response.Answer, record(t, name+" 300 IN TXT x"))
		case strings.HasPrefix(name, "none."):
			response.Ns = append(response.Ns, record(t, "example. 300 IN SOA a. b. 1 1 1 1 1"))
		case strings.HasPrefix(name, "none-long."):
			response.Ns = append(response.Ns, record(t, "example. 300 IN SOA a. b. 1 1 1 1 300"))
		}
	})
	ask := func(name string) int64 {
		before := questions.Load()
		if _, err := resolver.Text(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return questions.Load() - before
	}
	names := map[string]int64{"mixed.example": 1, "alias.example": 1, "long.example": 0, "none.example": 1, "none-long.example": 0, "unsaid.example": 1}
	for name := range names {
		ask(name)
	}
	if ask("unsaid.example") != 1 {
		t.Error("it was kept that there is no answer, and the zone does not say for how long")
	}
	select {
	case <-time.After(1100 * time.Millisecond): // The time to live of an answer is what is tested.
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	for name, want := range names {
		if asked := ask(name); asked != want {
			t.Errorf("%s: asked %d times after a second, want %d", name, asked, want)
		}
	}
}

// Addresses count as signed where those of both versions are.
func TestAddressesAreSignedWhereBothAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ six, four, want bool }{{true, true, true}, {true, false, false}, {false, true, false}} {
		resolver := answering(t, func(asked, response *dns.Msg, _ bool) {
			if asked.Question[0].Qtype == dns.TypeAAAA {
				response.AuthenticatedData = c.six
				response.Answer = append(response.Answer, record(t, "mx.example. 300 IN AAAA 2001:db8::1"))
				return
			}
			response.AuthenticatedData = c.four
			response.Answer = append(response.Answer, record(t, "mx.example. 300 IN A 192.0.2.1"))
		})
		if _, secure, err := resolver.Addresses(t.Context(), "mx.example"); err != nil || secure != c.want {
			t.Errorf("%+v: secure %v, %v", c, secure, err)
		}
	}
	if _, secure, err := answering(t, func(_, _ *dns.Msg, _ bool) {}).Addresses(t.Context(), "192.0.2.1"); err != nil || secure {
		t.Errorf("an address itself is secure: %v, %v", secure, err)
	}
}

// A chain of eight aliases is followed, and no longer one.
func TestAliasesAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		aliases  int
		enhanced string
	}{{7, ""}, {8, "5.4.4"}} {
		resolver := answering(t, func(_, response *dns.Msg, _ bool) {
			for i := range c.aliases {
				response.Answer = append(response.Answer, record(t, fmt.Sprintf("n%d.example. 300 IN CNAME n%d.example.", i, i+1)))
			}
			response.Answer = append(response.Answer, record(t, fmt.Sprintf("n%d.example. 300 IN MX 10 mx.example.", c.aliases)))
		})
		_, err := resolver.Exchangers(context.Background(), "n0.example", func(string) bool { return false })
		var failure *nexthop.Error
		if errors.As(err, &failure) != (c.enhanced != "") || failure != nil && (failure.Enhanced != c.enhanced || !failure.Permanent) {
			t.Errorf("%d aliases: %v", c.aliases, err)
		}
	}
}

// A null MX beside others is passed over; two of them take no mail.
func TestNullExchangerBesideOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ records, want string }{{". mx.example.", "mx.example"}, {". .", "5.1.10"}} {
		resolver := answering(t, func(_, response *dns.Msg, _ bool) {
			for i, name := range strings.Fields(c.records) {
				response.Answer = append(response.Answer, record(t, fmt.Sprintf("b.example. 300 IN MX %d %s", i, name)))
			}
		})
		hosts, err := resolver.Exchangers(t.Context(), "b.example", func(string) bool { return false })
		var failure *nexthop.Error
		got := ""
		if errors.As(err, &failure) && failure.Permanent {
			got = failure.Enhanced
		}
		for _, host := range hosts {
			got += host.Name
		}
		if got != c.want {
			t.Errorf("%q: %v, %v", c.records, hosts, err)
		}
	}
}
