package receive_test

import (
	"net/netip"
	"testing"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// A server of the same organization says of each message whether somebody of ours wrote it, and only it may say that. One that says nothing
// may pass on anybody's mail; one that may not speak for the organization counts as its rights say.
func TestAServerOfOursSaysWhatItHasFromOutside(t *testing.T) {
	t.Parallel()
	loopback := netip.MustParseAddr("127.0.0.1")
	servers := receive.NewConnector("in", receive.Internal)
	servers.Bindings, servers.FQDN, servers.Limits.Tarpit = []netip.AddrPort{binding}, "mx.example.com", 0
	servers.PeerServers = []receive.Range{{First: loopback, Last: loopback}}
	vouching := receive.NewConnector("vouching", receive.Internal)
	vouching.Bindings, vouching.FQDN, vouching.Limits.Tarpit, vouching.PeerServers = servers.Bindings, servers.FQDN, 0, servers.PeerServers
	vouching.Rights = map[receive.Group]receive.Rights{receive.PeerServers: receive.AllRights &^ receive.AcceptOrganizationHeaders}
	for _, c := range []struct {
		name, field, want string
		connector         *receive.Connector
	}{
		{"one of ours, nothing said", "", "INCOMING", servers},
		{"one of ours, something else said", "X-Parley-Organization-Origin: yes\r\n", "INCOMING", servers},
		{"one that vouches for all that it passes on", "", "ORIGINATING", vouching},
		{"the same, with a field that it may not set", "X-Parley-Organization-Origin: incoming\r\n", "ORIGINATING", vouching},
		{"one of ours, of somebody inside", "X-Parley-Organization-Origin: Originating\r\n", "ORIGINATING", servers},
		{"one of ours, of somebody outside", "X-Parley-Organization-Origin: incoming\r\n", "INCOMING", servers},
		{"an outsider", "X-Parley-Organization-Origin: Originating\r\n", "INCOMING", internet()},
	} {
		f := start(t, nil, c.connector)
		client := f.greeted()
		client.begin()
		client.send(c.field + "From: ann@example.net\r\nSubject: hello\r\n\r\nx\r\n.\r\n")
		client.expect("250")
		if got := f.store.only(t).envelope.Directionality; got != c.want {
			t.Errorf("%s: the message is %s, not %s", c.name, got, c.want)
		}
		f.stop()
	}
}
