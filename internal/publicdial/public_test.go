package publicdial_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/parley-broker/parley/internal/publicdial"
)

func TestWhichAddressesArePublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true, "::ffff:93.184.216.34": true,
		"127.0.0.1": false, "::1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "0.0.0.0": false, "::": false, "255.255.255.255": false, "224.0.0.1": false, "fd00::1": false, "fe80::1%eth0": false,
		"::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "198.18.0.1": false,
	} {
		if got := publicdial.IsPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("IsPublic(%s) is %v", address, got)
		}
	}
}

func TestANameThatLeadsIntoThisMachineIsRefused(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dialer := net.Dialer{Control: publicdial.RefusePrivate("name it")}
	conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort("localhost", port))
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, publicdial.ErrPrivate) {
		t.Errorf("connecting gave %v", err)
	}
}
