package send_test

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/nexthop"
	"github.com/parley-broker/parley/internal/mail/send"
)

// zone is a name server on loopback that answers from records, with the bit that says they are authentic or without.
func zone(t *testing.T, secure bool, records ...string) *nexthop.Resolver {
	t.Helper()
	parsed := make([]dns.RR, len(records))
	for i, record := range records {
		var err error
		if parsed[i], err = dns.NewRR(record); err != nil {
			t.Fatal(err)
		}
	}
	address := mailtest.NameServer(t, dns.HandlerFunc(func(w dns.ResponseWriter, asked *dns.Msg) {
		response := new(dns.Msg).SetReply(asked)
		response.AuthenticatedData = secure
		if name := asked.Question[0].Name; strings.HasPrefix(name, "broken.") ||
			strings.HasPrefix(name, "six-broken.") && asked.Question[0].Qtype == dns.TypeAAAA {
			response.Rcode = dns.RcodeServerFailure
		}
		for _, record := range parsed {
			if strings.EqualFold(record.Header().Name, asked.Question[0].Name) && record.Header().Rrtype == asked.Question[0].Qtype {
				response.Answer = append(response.Answer, record)
			}
		}
		_ = w.WriteMsg(response)
	}))
	resolver, err := nexthop.New(nexthop.Config{Servers: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	return resolver
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, written, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(written)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// The proofs that a host has to give: by signed records, which count more than the policy that the domain publishes; by that; or none.
func TestHostProvesWhatThePoliciesOfItsDomainAsk(t *testing.T) {
	t.Parallel()
	own, other := mailtest.Certificate(t, "mx.b.example"), mailtest.Certificate(t, "mx.b.example")
	tlsa := func(port int, usage string, shown *x509.Certificate) string {
		return fmt.Sprintf("_%d._tcp.mx.b.example. 300 IN TLSA %s 1 2 %x", port, cmp.Or(usage, "3"), sha512.Sum512(shown.RawSubjectPublicKeyInfo))
	}
	for _, c := range []struct {
		name      string
		dane      bool
		signed    bool
		record    *x509.Certificate
		usage     string
		policy    *send.DomainPolicy
		trusts    bool
		clear     bool
		want      string
		encrypted bool
	}{
		{name: "nothing is asked", encrypted: true},
		{name: "nothing is asked of a host without TLS", clear: true},
		{name: "a record that fits", dane: true, signed: true, record: own.Leaf, encrypted: true},
		{name: "a record that does not fit", dane: true, signed: true, record: other.Leaf, want: "4.7.5"},
		{name: "a record that does not fit counts only when it is authentic", dane: true, record: other.Leaf, encrypted: true},
		{name: "a record, and a host without TLS", dane: true, signed: true, record: own.Leaf, clear: true, want: "4.7.5"},
		{name: "a record that says nothing to SMTP asks for TLS, whoever the host is", dane: true, signed: true, usage: "1", record: other.Leaf, encrypted: true},
		{name: "a record that says nothing to SMTP, and a host without TLS", dane: true, signed: true, usage: "1", record: own.Leaf, clear: true, want: "4.7.5"},
		{name: "a record of an unsigned zone, and a host without TLS", dane: true, usage: "1", record: own.Leaf, clear: true},
		{name: "a record where the connector does not ask", signed: true, record: other.Leaf, clear: true},
		{name: "a policy that is kept", policy: &send.DomainPolicy{Hosts: []string{"*.b.example"}, Enforce: true}, trusts: true, encrypted: true},
		{name: "a certificate that nobody vouches for", policy: &send.DomainPolicy{Hosts: []string{"mx.b.example"}, Enforce: true}, want: "4.7.5"},
		{name: "a host that the policy does not name", policy: &send.DomainPolicy{Hosts: []string{"mx.c.example"}, Enforce: true}, trusts: true, want: "4.7.5"},
		{name: "a policy for tests", policy: &send.DomainPolicy{Hosts: []string{"mx.c.example"}}, encrypted: true},
		{name: "a policy, and a host without TLS", policy: &send.DomainPolicy{Hosts: []string{"mx.b.example"}, Enforce: true}, clear: true, want: "4.7.5"},
		{
			name: "records count more than the policy", dane: true, signed: true, record: own.Leaf, encrypted: true,
			policy: &send.DomainPolicy{Hosts: []string{"mx.c.example"}, Enforce: true},
		},
		{
			name: "records that say nothing to SMTP do not count more", dane: true, signed: true, usage: "1", record: own.Leaf, want: "4.7.5",
			policy: &send.DomainPolicy{Hosts: []string{"mx.b.example"}, Enforce: true},
		},
		{
			name: "records that say nothing to SMTP, and a policy that is kept", dane: true, signed: true, usage: "1", record: own.Leaf, encrypted: true,
			policy: &send.DomainPolicy{Hosts: []string{"mx.b.example"}, Enforce: true}, trusts: true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := &host{certificate: own, extensions: []string{"STARTTLS"}}
			if c.clear {
				h.extensions = nil
			}
			port := portOf(t, h.serve(t))
			records := []string{"b.example. 300 IN MX 10 mx.b.example.", "mx.b.example. 300 IN A 127.0.0.1"}
			if c.record != nil {
				records = append(records, tlsa(port, c.usage, c.record))
			}
			connector := send.Connector{Port: port, Hello: "client.example", DANE: c.dane, UsesMTASTS: true}
			if c.trusts {
				connector.RootCAs = x509.NewCertPool()
				connector.RootCAs.AddCert(own.Leaf)
			}
			carrier := &send.SMTPCarrier{
				Resolver: zone(t, c.signed, records...), Logger: slog.New(slog.DiscardHandler), Self: func(string) bool { return false },
				Connector: func(string) (send.Connector, bool) { return connector, true },
				Domain:    func(context.Context, string) *send.DomainPolicy { return c.policy },
			}
			way, err := carrier.Connect(t.Context(), send.Hop{Kind: "DNS", Name: "b.example"})
			if c.want != "" {
				failed, is := errors.AsType[*send.OpenError](err)
				if !is || failed.Result.Enhanced != c.want || failed.Result.Class != send.Deferred {
					t.Errorf("connected with %v, want %s", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer way.Close()
			if connection, is := way.(*send.Connection); !is || connection.Encrypted() != c.encrypted {
				t.Errorf("encrypted %v, want %v", !c.encrypted, c.encrypted)
			}
			if ends := way.Ends(); ends != (send.Ends{Host: "mx.b.example", Source: "127.0.0.1", Remote: "127.0.0.1"}) {
				t.Errorf("the ends are %+v", ends)
			}
		})
	}
}

func TestSmartHostsAreTriedInTheirOrder(t *testing.T) {
	t.Parallel()
	hosts := map[string]*host{"first": {}, "second": {}}
	for name, h := range hosts {
		h.answer = func(line string) string {
			if strings.HasPrefix(line, "EHLO") {
				return "250 " + name
			}
			return ""
		}
	}
	first, second := hosts["first"].serve(t), hosts["second"].serve(t)
	smart := []send.SmartHost{{Name: "[127.0.0.1]:" + strconv.Itoa(portOf(t, first)), Weight: 9}, {Name: "[127.0.0.1]:" + strconv.Itoa(portOf(t, second)), Weight: 1}}
	for _, c := range []struct {
		name        string
		order       send.HostOrder
		hosts       []send.SmartHost
		least, most int
	}{
		{name: "listed", order: send.ListedOrder, hosts: smart, least: 60, most: 60},
		{name: "weighted", order: send.WeightedOrder, hosts: smart, least: 40, most: 59},
		{name: "random", order: send.RandomOrder, hosts: smart, least: 10, most: 50},
		{name: "the next where one does not answer", order: send.ListedOrder, hosts: []send.SmartHost{{Name: "[127.0.0.1]:1"}, smart[0]}, least: 60, most: 60},
	} {
		hosts["first"].mu.Lock()
		hosts["first"].sessions = 0
		hosts["first"].mu.Unlock()
		carrier := &send.SMTPCarrier{
			Resolver: zone(t, false), Logger: slog.New(slog.DiscardHandler),
			Connector: func(string) (send.Connector, bool) {
				return send.Connector{SmartHosts: c.hosts, Order: c.order, TLS: send.TLSOff, Hello: "client.example"}, true
			},
		}
		for range 60 {
			way, err := carrier.Connect(t.Context(), send.Hop{Kind: "SMART_HOST", Name: "hosts"})
			if err != nil {
				t.Fatal(err)
			}
			way.Close()
		}
		hosts["first"].mu.Lock()
		if n := hosts["first"].sessions; n < c.least || n > c.most {
			t.Errorf("%s: %d of 60 connections to the first", c.name, n)
		}
		hosts["first"].mu.Unlock()
	}
}

// A password that is proved by SCRAM is never sent, and the host has to know it too.
func TestPasswordIsProvedAsTheConnectorSays(t *testing.T) {
	t.Parallel()
	const salt, iterations = "c2FsdA==", 4096
	sum := func(key []byte, text string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(text))
		return m.Sum(nil)
	}
	decode := func(line string) string {
		text, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		return string(text)
	}
	for _, c := range []struct {
		name, mechanism, password string
		yesAt                     int // the step at which the host lets us in without more
		want                      string
	}{
		{name: "SCRAM", mechanism: "SCRAM-SHA-256", password: "secret"},
		{name: "SCRAM with a host that does not know the password", mechanism: "SCRAM-SHA-256", password: "other", want: "does not prove"},
		{name: "SCRAM with a host that lets everybody in", mechanism: "SCRAM-SHA-256", yesAt: 1, want: "does not prove"},
		{name: "SCRAM with a host that lets us in without its proof", mechanism: "SCRAM-SHA-256", password: "secret", yesAt: 2, want: "does not prove"},
		{name: "LOGIN", mechanism: "LOGIN", password: "secret"},
		{name: "PLAIN", mechanism: "PLAIN", password: "secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			step, first := 0, ""
			h := &host{extensions: []string{"AUTH PLAIN LOGIN SCRAM-SHA-256"}, certificate: mailtest.Certificate(t, "mx.example")}
			h.answer = func(line string) string {
				if strings.HasPrefix(line, "AUTH ") {
					step = 1
				} else if step == 0 {
					return ""
				} else {
					step++
				}
				words := strings.Fields(line)
				if step == c.yesAt {
					step = 0
					return "235 2.7.0 welcome"
				}
				switch c.mechanism + strconv.Itoa(step) {
				case "PLAIN1":
					if decode(words[2]) != "\x00who\x00secret" {
						return "535 5.7.8 no"
					}
				case "LOGIN1":
					return "334 VXNlcm5hbWU6"
				case "LOGIN2":
					if decode(line) != "who" {
						return "535 5.7.8 no"
					}
					return "334 UGFzc3dvcmQ6"
				case "LOGIN3":
					if decode(line) != "secret" {
						return "535 5.7.8 no"
					}
				case "SCRAM-SHA-2561":
					first = strings.TrimPrefix(decode(words[2]), "n,,")
					_, nonce, _ := strings.Cut(first, ",r=")
					return "334 " + base64.StdEncoding.EncodeToString([]byte("r="+nonce+"more,s="+salt+",i="+strconv.Itoa(iterations)))
				case "SCRAM-SHA-2562":
					final, proof, _ := strings.Cut(decode(line), ",p=")
					_, nonce, _ := strings.Cut(first, ",r=")
					authenticated := first + ",r=" + nonce + "more,s=" + salt + ",i=" + strconv.Itoa(iterations) + "," + final
					salted, _ := pbkdf2.Key(sha256.New, c.password, []byte("salt"), iterations, sha256.Size)
					key := sum(salted, "Client Key")
					stored := sha256.Sum256(key)
					for i, b := range sum(stored[:], authenticated) {
						key[i] ^= b
					}
					if c.want == "" && proof != base64.StdEncoding.EncodeToString(key) {
						return "535 5.7.8 no"
					}
					return "334 " + base64.StdEncoding.EncodeToString([]byte("v="+base64.StdEncoding.EncodeToString(sum(sum(salted, "Server Key"), authenticated))))
				}
				step = 0
				if line == "*" {
					return "501 5.7.0 cancelled"
				}
				return "235 2.7.0 welcome"
			}
			address := h.serve(t)
			carrier := &send.SMTPCarrier{
				Resolver: zone(t, false), Logger: slog.New(slog.DiscardHandler),
				Connector: func(string) (send.Connector, bool) {
					return send.Connector{
						SmartHosts: []send.SmartHost{{Name: "[127.0.0.1]:" + strconv.Itoa(portOf(t, address))}}, TLS: send.TLSOff, Hello: "client.example",
						Mechanism: c.mechanism, User: "who", Password: "secret",
					}, true
				},
			}
			way, err := carrier.Connect(t.Context(), send.Hop{Kind: "SMART_HOST", Name: "host"})
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("connected with %v", err)
			}
			if err == nil {
				way.Close()
			}
			if _, lines := h.received(); c.mechanism == "SCRAM-SHA-256" && strings.Contains(strings.Join(lines, " "), base64.StdEncoding.EncodeToString([]byte("secret"))) {
				t.Error("the password was sent")
			}
		})
	}
}

func TestRecipientsOfOneTransactionAreBounded(t *testing.T) {
	t.Parallel()
	h := &host{}
	connection, err := open(t, h, func(target *send.Target) { target.Recipients = 2 })
	if err != nil {
		t.Fatal(err)
	}
	recipients := []string{"a@b.example", "b@b.example", "c@b.example", "d@b.example", "e@b.example"}
	results := connection.Send(context.Background(), letter("Subject: x\r\n\r\nbody\r\n", recipients...))
	if got := outcome(results); strings.Count(got, "delivered 2.0.0") != 5 {
		t.Errorf("results are %s", got)
	}
	if messages, _ := h.received(); len(messages) != 3 {
		t.Errorf("%d transactions for 5 recipients", len(messages))
	}
}

func TestOldHelloIsUsedWhereTheConnectorSaysSo(t *testing.T) {
	t.Parallel()
	h := &host{extensions: []string{"PIPELINING"}}
	if _, err := open(t, h, func(target *send.Target) { target.OldHello = true }); err != nil {
		t.Fatal(err)
	}
	if _, lines := h.received(); len(lines) == 0 || lines[0] != "HELO client.example" {
		t.Errorf("said %q", lines)
	}
}

func TestConnectionComesFromTheAddressOfTheConnector(t *testing.T) {
	t.Parallel()
	h := &host{}
	port := portOf(t, h.serve(t))
	carrier := &send.SMTPCarrier{
		Resolver: zone(t, false), Logger: slog.New(slog.DiscardHandler),
		Connector: func(string) (send.Connector, bool) {
			return send.Connector{
				SmartHosts: []send.SmartHost{{Name: "[127.0.0.1]:" + strconv.Itoa(port)}}, TLS: send.TLSOff, Hello: "client.example",
				Source4: []netip.Addr{netip.MustParseAddr("127.0.0.9")},
			}, true
		},
	}
	way, err := carrier.Connect(t.Context(), send.Hop{Kind: "SMART_HOST", Name: "host"})
	if err != nil {
		t.Fatal(err)
	}
	defer way.Close()
	if source := way.Ends().Source; source != "127.0.0.9" {
		t.Errorf("it comes from %s", source)
	}
}
