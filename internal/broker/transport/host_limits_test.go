package transport_test

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/broker/transport"
)

func TestHostsAreDistinguishedByTheirNetworks(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][]string{
		"192.0.2.7":         {"192.0.2.7", "::ffff:192.0.2.7"},
		"192.0.2.8":         {"192.0.2.8"},
		"2001:db8:1:2::/64": {"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"},
		"2001:db8:1:3::/64": {"2001:db8:1:3::1"},
		"fe80::/64":         {"fe80::1%eth0", "fe80::2%eth1"},
	} {
		for _, text := range texts {
			address := net.TCPAddrFromAddrPort(mustParse(t, text))
			if got := transport.HostOf(address); got != want {
				t.Errorf("%s is of %s, want %s", text, got, want)
			}
		}
	}
	if got := transport.HostOf(&net.UnixAddr{Name: "/tmp/socket"}); got != "/tmp/socket" {
		t.Errorf("a socket without a port is of %q", got)
	}
}

func TestLogHasALineAMinuteForEachKindAndHost(t *testing.T) {
	t.Parallel()
	var limit transport.LogLimit
	now := time.Unix(1_000_000, 0)
	allow := func(kind, host string, want bool, withheldWanted int) {
		t.Helper()
		if withheld, got := limit.Allow(kind, host, now); got != want || withheld != withheldWanted {
			t.Errorf("%s of %s: %v with %d withheld, want %v with %d", kind, host, got, withheld, want, withheldWanted)
		}
	}
	allow("a", "one", true, 0)
	allow("a", "one", false, 0)
	allow("a", "two", true, 0)
	allow("b", "one", true, 0)
	now = now.Add(59 * time.Second)
	allow("a", "one", false, 0)
	now = now.Add(time.Second)
	allow("a", "one", true, 2)
	allow("a", "one", false, 0)
	lines := 0
	now = now.Add(time.Hour)
	for i := range 5000 {
		if _, isAllowed := limit.Allow("a", fmt.Sprint(i), now); isAllowed {
			lines++
		}
	}
	if lines != 1000 {
		t.Errorf("%d lines in a minute", lines)
	}
}

func TestHostsAreCountedEachByItself(t *testing.T) {
	t.Parallel()
	var count transport.HostCount
	for i := range 3 {
		if got := count.Enter("one", 2); got != (i < 2) {
			t.Errorf("entered at %d: %v", i, got)
		}
	}
	if !count.Enter("two", 2) {
		t.Error("another host is kept out")
	}
	count.Leave("one")
	if !count.Enter("one", 2) {
		t.Error("there is no place after somebody has left")
	}
}

func mustParse(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	ip, err := netip.ParseAddr(text)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(ip, 4022)
}
