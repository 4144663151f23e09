package server_test

import (
	"fmt"
	nettextproto "net/textproto"
	"strings"
	"testing"

	gomilter "github.com/emersion/go-milter"

	"github.com/parley-broker/parley/internal/mail/mailtest"
)

// scanner is a milter that refuses a subject, and marks what it has seen.
type scanner struct{ gomilter.NoOpMilter }

func (scanner) Header(name, value string, _ *gomilter.Modifier) (gomilter.Response, error) {
	if name == "Subject" && value == "virus" {
		return gomilter.NewResponseStr('y', "554 5.7.9 a virus"), nil
	}
	return gomilter.RespContinue, nil
}

func (scanner) Body(m *gomilter.Modifier) (gomilter.Response, error) {
	return gomilter.RespAccept, m.AddHeader("X-Scanned", "yes")
}

func (scanner) Headers(nettextproto.MIMEHeader, *gomilter.Modifier) (gomilter.Response, error) {
	return gomilter.RespContinue, nil
}

// The checks that peers from outside meet: SPF, DKIM, DMARC, block lists, filters and the header firewall, each on a connector of its own
// behind a proxy.
func TestMailFromOutsideIsVerifiedAndFiltered(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.servers = []string{newZone(t,
		`sender.net. 60 IN TXT "v=spf1 ip4:192.0.2.1 -all"`, `_dmarc.sender.net. 60 IN TXT "v=DMARC1; p=reject"`,
		`_dmarc.held.net. 60 IN TXT "v=DMARC1; p=quarantine"`, `9.2.0.192.list.net. 60 IN A 127.0.0.2`,
	).address}
	listener := listen(t)
	milter := gomilter.Server{NewMilter: func() gomilter.Milter { return scanner{} }, Actions: gomilter.OptAddHeader}
	go func() { _ = milter.Serve(listener) }()
	t.Cleanup(func() { _ = milter.Close() })
	addresses := map[string]string{}
	connectors := make([]string, 0, 5)
	for name, settings := range map[string]string{
		"recording": `"spf": "RECORD"`,
		"spf":       `"spf": "REJECT"`,
		"dmarc":     `"dmarc": "ENFORCE"`,
		"lists":     `"block_lists": ["list.net"], "spf": "OFF", "dkim": "OFF", "dmarc": "OFF"`,
		"milters":   fmt.Sprintf(`"milters": [{"address": "inet:%s"}], "xclient_networks": ["192.0.2.77"]`, listener.Addr()),
		"away":      `"milters": [{"address": "inet:127.0.0.1:1", "default_action": "REJECT", "timeout": 1}]`,
		"own": `"permission_groups": ["Peer servers", "Externally secured"], "peer_server_networks": ["192.0.2.50-192.0.2.60"],
			"trusted_networks": ["192.0.2.70"]`,
	} {
		addresses[name] = mailtest.FreeAddress(t)
		connectors = append(connectors, fmt.Sprintf(`%q: {"usage": "INTERNET", "bindings": [%q], "tls": "OFF", "tarpit": 0,
			"remote_ranges": ["127.0.0.1", "192.0.2.0/24"], "proxy_networks": ["127.0.0.0/8"], %s}`, name, addresses[name], settings))
	}
	h.exec(`select parley_mail.apply($1::jsonb)`, `{"receive connector": {`+strings.Join(connectors, ", ")+`}}`)
	h.start()
	from := func(connector, peer string) *peer {
		return h.dial(addresses[connector], "PROXY TCP4 "+peer+" 192.0.2.100 4711 25")
	}
	letter := func(author, subject string) string {
		return "From: " + author + "\nSubject: " + subject + "\nX-Parley-Organization-Trusted: yes\n" +
			"Authentication-Results: hub.example.org; spf=pass\n\nhello"
	}
	// arrived waits for a message and gives it.
	arrived := func(subject string) (text string) {
		h.await(subject, func() bool {
			for _, message := range h.inbox() {
				if strings.Contains(message, "Subject: "+subject+"\r\n") {
					text = message
				}
			}
			return text != ""
		})
		return text
	}

	from("recording", "192.0.2.2").give("a@sender.net", letter("a@sender.net", "recorded"), "250")
	text := arrived("recorded")
	if strings.Count(text, "Authentication-Results: hub.example.org") != 1 || !strings.Contains(text, "spf=fail") || !strings.Contains(text, "dmarc=fail") ||
		!strings.Contains(text, "dkim=none") || strings.Contains(text, "X-Parley-Organization") {
		t.Errorf("arrived: %s", text)
	}
	from("spf", "192.0.2.2").say("MAIL FROM:<a@sender.net>", "550 5.7.23")
	from("spf", "192.0.2.1").give("a@sender.net", letter("a@sender.net", "from its host"), "250")
	from("dmarc", "192.0.2.2").give("a@sender.net", letter("a@sender.net", "forged"), "550 5.7.1")
	from("dmarc", "192.0.2.2").give("a@held.net", letter("a@held.net", "held"), "250")
	if got := h.text(`select count(*)::text from parley_store.work_items where lane = 'POISON/-/-'`); got != "1" {
		t.Errorf("%s messages are held", got)
	}
	from("lists", "192.0.2.9").say("MAIL FROM:<a@sender.net>", "550 5.7.1")
	from("lists", "192.0.2.8").say("MAIL FROM:<a@sender.net>", "250")
	from("milters", "192.0.2.2").give("a@sender.net", letter("a@sender.net", "virus"), "554 5.7.9")
	from("milters", "192.0.2.2").give("a@sender.net", letter("a@sender.net", "scanned"), "250")
	if text := arrived("scanned"); !strings.Contains(text, "X-Scanned: yes") {
		t.Errorf("arrived: %s", text)
	}
	if got := h.text(`select string_agg(distinct concat_ws(' ', source, custom_data #> '{agents,0,changes}', client_ip, original_client_ip, server_ip), ', ')
		from parley_mail.tracking where event_id in ('AGENTINFO', 'RECEIVE') and message_subject = 'scanned'`); got !=
		`AGENT ["header"] 192.0.2.2, SMTP 192.0.2.2 192.0.2.2 127.0.0.1` {
		t.Errorf("tracked: %s", got)
	}
	from("away", "192.0.2.2").say("MAIL FROM:<a@sender.net>", "550 5.7.1")
	if hello := from("milters", "192.0.2.2").say("XCLIENT ADDR=192.0.2.3", "550 5.7.0"); hello == "" {
		t.Error("no reply")
	}
	speaker := from("milters", "192.0.2.77")
	speaker.say("XCLIENT ADDR=192.0.2.3", "220")
	speaker.say("EHLO client.example.net", "250")
	speaker.give("a@sender.net", letter("a@sender.net", "spoken for"), "250")
	if text := arrived("spoken for"); !strings.Contains(text, "[192.0.2.3]") {
		t.Errorf("arrived: %s", text)
	}
	from("own", "192.0.2.2").say("MAIL FROM:<a@sender.net>", "550 5.7.1")
	node := from("own", "192.0.2.55")
	node.say("MAIL FROM:<a@sender.net>", "250")
	node.say("RCPT TO:<x@c.example.com>", "250")
	// A network that is secured otherwise is trusted with all but the fields in which our own nodes write to each other.
	from("own", "192.0.2.70").give("a@sender.net", letter("a@sender.net", "trusted"), "250")
	if text := arrived("trusted"); strings.Contains(text, "X-Parley-Organization") {
		t.Errorf("arrived: %s", text)
	}
}
