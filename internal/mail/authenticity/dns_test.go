package authenticity_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/parley-broker/parley/internal/mail/mailtest"
)

// zone has the records of a DNS server of this machine, by lower-case name with its last dot. A name with no record and a failure fails.
type zone map[string][]dns.RR

// failing is the name of records that stand for a failure.
const failing = "failing."

func (z zone) add(t *testing.T, record string) {
	t.Helper()
	rr, err := dns.NewRR(record)
	if err != nil || rr == nil {
		t.Fatalf("%q: %v", record, err)
	}
	z.put(rr)
}

func (z zone) put(rr dns.RR) {
	name := strings.ToLower(rr.Header().Name)
	z[name] = append(z[name], rr)
}

// fail has all questions about a name fail.
func (z zone) fail(name string) {
	name = strings.ToLower(dns.Fqdn(name))
	z[name] = append(z[name], &dns.NULL{Hdr: dns.RR_Header{Name: failing}})
}

func (z zone) ServeDNS(w dns.ResponseWriter, question *dns.Msg) {
	answer := new(dns.Msg)
	answer.SetReply(question)
	answer.RecursionAvailable = true
	asked := question.Question[0]
	records := z[strings.ToLower(asked.Name)]
	if len(records) == 0 {
		answer.Rcode = dns.RcodeNameError
	}
	for _, rr := range records {
		switch {
		case rr.Header().Rrtype == asked.Qtype:
			answer.Answer = append(answer.Answer, rr)
		case rr.Header().Rrtype == dns.TypeCNAME:
			alias, _ := rr.(*dns.CNAME)
			answer.Answer = append(answer.Answer, rr)
			for _, target := range z[strings.ToLower(alias.Target)] {
				if target.Header().Rrtype == asked.Qtype {
					answer.Answer = append(answer.Answer, target)
				}
			}
		case rr.Header().Name == failing && (asked.Qtype == dns.TypeTXT || len(records) == 1):
			answer.Rcode = dns.RcodeServerFailure
		}
	}
	_ = w.WriteMsg(answer)
}

// resolver gives a resolver that asks a server with these records.
func (z zone) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	address := mailtest.NameServer(t, z)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
}
