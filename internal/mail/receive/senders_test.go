package receive_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// His list decides whom a user may name, or where he has none the domains that are ours: in the envelope, and in each field that names who
// wrote or sent the message. Others are not asked: what they say of an author SPF, DKIM and DMARC judge.
func TestUserNamesNobodyElseAsSender(t *testing.T) {
	t.Parallel()
	const ours, domain, elsewhere = "boss@example.com", "x@default.example", "ceo@bank.example"
	users := map[string]receive.User{
		"listed": {Senders: []string{"ann@example.com", "partner.example"}}, "any": {Senders: []string{"*"}}, "unlisted": {},
	}
	for _, c := range []struct {
		user   string
		rights receive.Rights
		takes  []string // those of the addresses below that he may use
	}{
		{"listed", 0, []string{"ann@example.com", "b@partner.example"}},
		{"listed", receive.AnySender, []string{"ann@example.com", "b@partner.example"}},
		{"any", 0, []string{"ann@example.com", "b@partner.example", ours, domain, elsewhere}},
		{"unlisted", 0, []string{"ann@example.com", ours, domain}},
		{"unlisted", receive.AnySender, []string{"ann@example.com", "b@partner.example", ours, domain, elsewhere}},
	} {
		connector := submission()
		connector.Grants = map[string]receive.Rights{c.user: c.rights}
		connector.Limits.ProtocolErrors = 0
		connector.Limits.MessagesPerMinute = 0
		f := start(t, func(s *receive.Server) { s.Credentials = credentials{c.user: "secret"} }, connector)
		if err := f.server.Configure(&receive.Configuration{
			Connectors: []*receive.Connector{connector}, AcceptedDomains: []string{"example.com"}, DefaultDomain: "default.example", Users: users,
		}); err != nil {
			t.Fatal(err)
		}
		client := f.greeted()
		client.say("AUTH PLAIN "+encoded("\x00"+c.user+"\x00secret"), "235")
		give := func(header string) string {
			client.say("MAIL FROM:<"+c.takes[0]+">", "250")
			client.say("RCPT TO:<x@example.com>", "250")
			client.say("DATA", "354")
			client.send(header + "\r\n\r\nx\r\n.\r\n")
			return client.reply()
		}
		own := "From: " + c.takes[0]
		for _, address := range []string{"ann@example.com", "b@partner.example", ours, domain, elsewhere} {
			want := "550 5.7.1"
			for _, taken := range c.takes {
				if taken == address {
					want = "250"
				}
			}
			client.say("MAIL FROM:<"+address+">", want)
			client.say("RSET", "250")
			for _, header := range []string{
				"From: " + address, "From: X <" + address + ">", own + "\r\nFrom: " + address, "From: " + c.takes[0] + ",\r\n <" + address + ">",
				own + "\r\nSender: " + address, own + "\r\nResent-From: " + address, own + "\r\nRESENT-SENDER: " + address,
			} {
				if got := give(header); !strings.HasPrefix(got, want) {
					t.Errorf("user %s with rights %d says %q: %q, want %s", c.user, c.rights, header, got, want)
				}
			}
		}
		for _, header := range []string{"Subject: no author", "From: nobody", "From: Group:;", "From: \"" + ours + "\":;", own + "\r\nSender: <"} {
			want := "550 5.7.1"
			if c.user == "unlisted" && c.rights != 0 {
				want = "250"
			}
			if got := give(header); !strings.HasPrefix(got, want) {
				t.Errorf("user %s with rights %d says %q: %q", c.user, c.rights, header, got)
			}
		}
		f.stop()
	}
}

// A peer who has not authenticated relays for others: their names are not his.
func TestPeerRelaysMailOfOthers(t *testing.T) {
	t.Parallel()
	loopback := netip.MustParseAddr("127.0.0.1")
	servers := receive.NewConnector("in", receive.Internal)
	servers.Bindings, servers.FQDN, servers.Limits.Tarpit = []netip.AddrPort{binding}, "mx.example.com", 0
	servers.PeerServers = []receive.Range{{First: loopback, Last: loopback}}
	for _, connector := range []*receive.Connector{servers, internet()} {
		f := start(t, nil, connector)
		client := f.greeted()
		client.begin()
		client.send("From: boss@example.com\r\nSender: list@elsewhere.example\r\n\r\nx\r\n.\r\n")
		client.expect("250")
		f.stop()
	}
}
