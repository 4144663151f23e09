package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/miekg/dns"

	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/server"
)

// zone is a name server on loopback.
type zone struct {
	address string
	mu      sync.Mutex
	records []dns.RR
	asked   map[string]int // by type and name
}

func newZone(t *testing.T, records ...string) *zone {
	t.Helper()
	z := &zone{}
	z.set(t, records...)
	z.address = mailtest.NameServer(t, dns.HandlerFunc(z.answer))
	return z
}

func (z *zone) set(t *testing.T, records ...string) {
	t.Helper()
	z.mu.Lock()
	defer z.mu.Unlock()
	z.records = nil
	for _, record := range records {
		parsed, err := dns.NewRR(record)
		if err != nil {
			t.Fatal(err)
		}
		z.records = append(z.records, parsed)
	}
}

func (z *zone) answer(w dns.ResponseWriter, asked *dns.Msg) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.asked == nil {
		z.asked = make(map[string]int)
	}
	z.asked[dns.TypeToString[asked.Question[0].Qtype]+" "+asked.Question[0].Name]++
	response := new(dns.Msg).SetReply(asked)
	for _, record := range z.records {
		name := record.Header().Name
		if (name == asked.Question[0].Name || strings.HasPrefix(name, "*") && strings.HasSuffix(asked.Question[0].Name, name[1:])) &&
			record.Header().Rrtype == asked.Question[0].Qtype {
			response.Answer = append(response.Answer, dns.Copy(record))
			response.Answer[len(response.Answer)-1].Header().Name = asked.Question[0].Name
		}
	}
	_ = w.WriteMsg(response)
}

// times is how often a question was asked, such as "A mx.relay.example.".
func (z *zone) times(question string) int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.asked[question]
}

// byDNS has the hub find the relay by DNS, with more settings of its connector.
func (h *hub) byDNS(settings string) *zone {
	h.Helper()
	_, port, _ := strings.Cut(h.text(`select settings -> 'smart_hosts' -> 0 ->> 'host' || ':' || (settings -> 'smart_hosts' -> 0 ->> 'port')
		from parley_mail.objects where kind = 'send connector'`), "]:")
	h.exec(`select parley_mail.alter_object('send connector', 'outbound', '{"routing": "DNS", "smart_hosts": []}'::jsonb
		|| jsonb_build_object('port', $1::integer) || $2::jsonb)`, port, settings)
	return newZone(h.T, "*.example. 300 IN MX 10 mx.relay.example.", "mx.relay.example. 300 IN A 127.0.0.1")
}

func (h *hub) submit(recipients ...string) {
	h.Helper()
	for _, recipient := range recipients {
		h.exec(`select parley_mail.send('ann@example.org', array[$1], subject => 'hello', text => 'hello')`, recipient)
	}
}

// Fields in which our nodes write to each other stay inside, unless the connector says that they leave; what passes by is left as it is.
func TestHeadersOfOurOwnNodesStayInside(t *testing.T) {
	t.Parallel()
	for keep, want := range map[string]string{
		`["ROUTING"]`:                           "Received: from x by y\r\nSubject: hello\r\n",
		`["ROUTING", "ORGANIZATION", "FOREST"]`: "Received: from x by y\r\nX-Parley-Organization-Id: 1\r\nX-Parley-Forest-Id:\r\n 2\r\nSubject: hello\r\n",
		`[]`:                                    "Subject: hello\r\n",
	} {
		t.Run(keep, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			h.exec(`select parley_mail.alter_object('send connector', 'outbound', jsonb_build_object('keep_headers', $1::jsonb))`, keep)
			// As a message that one of our nodes has brought in: what is submitted comes without such fields.
			h.submit("x@c.example")
			h.exec(`update parley_mail._p_message set body = convert_to($1, 'UTF8'), size = octet_length($1)`,
				"Received: from x by y\r\nX-Parley-Organization-Id: 1\r\nX-Parley-Forest-Id:\r\n 2\r\nSubject: hello\r\nFrom: ann@example.org\r\n\r\nX-Parley-Forest-Id: of the body\r\n")
			h.run(server.Config{NameServers: []string{"127.0.0.1:1"}})
			h.await("the mail", func() bool { return len(h.relayed()) == 1 })
			got := h.relayed()[0]
			if !strings.Contains(got, want) || !strings.HasSuffix(got, "\r\n\r\nX-Parley-Forest-Id: of the body\r\n") {
				t.Errorf("it left as %q", got)
			}
			for _, name := range []string{"Received:", "X-Parley-Organization-Id:", "X-Parley-Forest-Id:\r\n"} {
				if strings.Contains(got, name) != strings.Contains(want, name) {
					t.Errorf("it left as %q", got)
				}
			}
			h.await("the end", h.empty)
		})
	}
}

func TestRatesHoldForAllDaemonsTogether(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	z := h.byDNS(`{"rates": [{"key": "HOST", "match": "*.relay.example", "messages": 3, "per": 3600}]}`)
	for range 2 {
		h.run(server.Config{NameServers: []string{z.address}})
		// Only one can have the address of the receive connector.
		h.exec(`select parley_mail.alter_object('receive connector', 'inbound', '{"enabled": false}')`)
	}
	h.submit("a@one.example", "b@one.example", "c@two.example", "d@two.example", "e@three.example")
	h.await("the tokens to be used, and the rest put off", func() bool {
		return h.text(`select count(*)::text || ' ' || coalesce(max(attempts), 0) from parley_store.work_items as w
			join parley_store.lanes as l using (lane) where w.state <> 'IN_FLIGHT' and l.status = 'POSTPONED'`) == "2 0"
	})
	if n := len(h.relayed()); n != 3 {
		t.Errorf("%d messages left, of 3 that may", n)
	}
	h.exec(`update parley_mail._p_rate_bucket set filled_at = now() - interval '1 hour', reserved_to = now()`)
	h.exec(`select parley_mail.retry_queue(queue) from parley_mail.queues where queue like 'DNS/%'`)
	h.await("the rest", h.empty)
}

// counting is a relay that counts how many sessions it has at once.
type counting struct {
	*relay
	now, most atomic.Int64
	// held is the channel that a session waits for before it begins.
	held chan struct{}
}

type countedSession struct {
	*session
	of *counting
}

func (c *counting) NewSession(*smtp.Conn) (smtp.Session, error) {
	now := c.now.Add(1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	<-c.held
	return &countedSession{session: &session{relay: c.relay}, of: c}, nil
}

func (s *countedSession) Logout() error {
	s.of.now.Add(-1)
	return nil
}

func TestConnectionsOfAConnectorAreBoundedInEachDaemon(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	c := &counting{relay: h.relay, held: make(chan struct{})}
	listener := listen(t)
	host := smtp.NewServer(c)
	host.Domain, host.ErrorLog = "relay.example", discardLog{}
	var serving sync.WaitGroup
	serving.Go(func() { _ = host.Serve(listener) })
	t.Cleanup(func() { _ = host.Close(); serving.Wait() })
	z := h.byDNS(`{"max_connections": 2, "max_messages_per_connection": 3}`)
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	h.exec(`select parley_mail.alter_object('send connector', 'outbound', jsonb_build_object('port', $1::integer))`, port)
	for n := range 24 {
		h.submit(fmt.Sprintf("x@d%d.example", n%8))
	}
	h.exec(`select parley_mail._p_categorize(100)`)
	// All eight queues are claimed at once.
	h.run(server.Config{NameServers: []string{z.address}})
	h.await("as many connections as there may be", func() bool { return c.now.Load() >= 2 })
	h.await("the claims", func() bool { return h.text(`select count(*)::text from parley_store._p_lease`) == "8" })
	close(c.held)
	h.await("the mail", h.empty)
	// A connection that is closed is counted until the host has seen it.
	if most := c.most.Load(); len(h.relayed()) != 24 || most < 1 || most > 3 {
		t.Errorf("%d messages over up to %d connections at once, of 2", len(h.relayed()), most)
	}
}

func TestConnectorIsUsedByItsNodesAlone(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`select parley_mail.alter_object('send connector', 'outbound', '{"source_nodes": ["mine"]}')`)
	h.run(server.Config{Name: "other", NameServers: []string{"127.0.0.1:1"}})
	h.submit("x@c.example")
	h.await("a daemon that passes by", func() bool {
		return h.text(`select coalesce(max(token_number), 0)::text from parley_store._p_lane_state where not is_permanent`) > "3"
	})
	if n := len(h.relayed()); n != 0 {
		t.Errorf("%d messages left by another node", n)
	}
	h.exec(`select parley_mail.alter_object('receive connector', 'inbound', '{"enabled": false}')`)
	h.run(server.Config{Name: "mine", NameServers: []string{"127.0.0.1:1"}})
	h.await("the mail", h.empty)
}

// A policy that was read once is held by a daemon that cannot read it.
func TestPolicyOfADomainOutlastsTheDaemon(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	z := h.byDNS(`{"tls": "OPPORTUNISTIC"}`)
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "version: STSv1\r\nmode: enforce\r\nmx: mx.elsewhere.example\r\nmax_age: 86400\r\n")
	}))
	t.Cleanup(web.Close)
	client := web.Client()
	transport := client.Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, web.Listener.Addr().String())
	}
	transport.TLSClientConfig.InsecureSkipVerify = true
	client.Transport = transport
	records := []string{"*.example. 300 IN MX 10 mx.relay.example.", "mx.relay.example. 300 IN A 127.0.0.1"}
	z.set(t, append(records, `_mta-sts.strict.example. 0 IN TXT "v=STSv1; id=1"`)...)
	refused := func() bool {
		return strings.Contains(h.text(`select coalesce(max(last_error), '') from parley_store.lanes where lane like '%strict.example'`), "MTA-STS")
	}
	stop := h.run(server.Config{NameServers: []string{z.address}, PolicyClient: client})
	h.submit("x@strict.example")
	h.await("a host that the policy does not name", refused)
	stop()
	web.Close()
	z.set(t, records...)
	h.exec(`update parley_store._p_lane_state set last_error = null`)
	h.exec(`select parley_mail.retry_queue('DNS/outbound/strict.example')`)
	h.run(server.Config{NameServers: []string{z.address}, PolicyClient: client})
	h.await("the same of another daemon", refused)
	if n := len(h.relayed()); n != 0 {
		t.Errorf("%d messages went to a host that the policy does not name", n)
	}
}

func TestReportIsCopiedToThePostmasterWhereThatIsAsked(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`select parley_mail.apply('{"organization": {"organization": {"postmaster": "ann@example.org", "dsn_copies": ["5.1.1"], "dsn_window": 2,
		"dsn_return_limit_external": 0}}}')`)
	h.run(server.Config{NameServers: []string{"127.0.0.1:1"}})
	h.exec(`select parley_mail.send('shop@other.example', array['nobody@c.example'], subject => 'hello', text => 'the text of one')`)
	h.exec(`select parley_mail.send('ann@example.org', array['nothing@c.example'], subject => 'hello', text => 'the text of another')`)
	h.await("the copy, and a report", func() bool { return len(h.inbox()) == 2 })
	h.await("the report", func() bool { return len(h.relayed()) == 1 })
	// The sender of our own domain gets the message back whole: its limit is another.
	all := strings.Join(h.inbox(), "\n")
	for part, want := range map[string]bool{
		"Final-Recipient: rfc822; nobody@c.example": true, "text/rfc822-headers": true, "the text of one": false,
		"Final-Recipient: rfc822; nothing@c.example": true, "message/rfc822": true, "the text of another": true,
	} {
		if strings.Contains(all, part) != want {
			t.Errorf("%q is there: %v; %s", part, !want, all)
		}
	}
	h.await("the end", h.empty)
}

// The events that a sender asked for: that it was delivered, relayed to a host that makes no reports, expanded; and that it is late.
func TestSenderLearnsOfSuccessWhereHeAsks(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`select parley_mail.apply('{"distribution group": {"all@example.org": {"members": ["ann@example.org"]}}}')`)
	h.exec(`select parley_mail.send('ann@example.org', array['x@c.example', 'ann@example.org', 'all@example.org'], subject => 'asked', text => 'body',
		notify => 'SUCCESS,FAILURE', ret => 'HDRS', envid => 'order-7')`)
	h.exec(`select parley_mail.send('ann@example.org', array['y@late.example'], subject => 'late', text => 'body')`)
	h.exec(`select parley_mail.alter_object('send connector', 'outbound', '{"address_spaces": [{"pattern": "c.example"}]}')`)
	h.exec(`update parley_mail._p_message set received_at = now() - interval '5 hours' where subject = 'late'`)
	h.run(server.Config{NameServers: []string{"127.0.0.1:1"}})
	h.await("the reports", func() bool {
		all := strings.Join(h.inbox(), "\n")
		return strings.Count(all, "Auto-Submitted: auto-replied") == 4
	})
	for _, wanted := range []string{
		"Action: relayed\r\n", "Final-Recipient: rfc822; x@c.example", "Action: delivered\r\n", "Action: expanded\r\n",
		"Final-Recipient: rfc822; all@example.org", "Action: delayed\r\n", "Will-Retry-Until: ", "Original-Envelope-Id: order-7", "text/rfc822-headers",
		// A host of the DNS has answered in SMTP, a store of Maildirs not.
		"Remote-MTA: dns; ", "Diagnostic-Code: smtp; 250 2", "Diagnostic-Code: x-parley; delivered to the mailbox",
	} {
		if all := strings.Join(h.inbox(), "\n"); !strings.Contains(all, wanted) {
			t.Errorf("the reports do not have %q: %s", wanted, all)
		}
	}
	if all := strings.Join(h.inbox(), "\n"); strings.Contains(all, "Remote-MTA: dns; local") {
		t.Errorf("a mailbox store is named as a host: %s", all)
	}
}
