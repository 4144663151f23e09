package server // Records of daemons are not exported.

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

func addresses(texts ...string) (all []netip.AddrPort) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddrPort(text))
	}
	return all
}

// Mail that is sent to an address at which a daemon of the same database receives comes back: on this machine, or on another.
func TestAddressIsOneAtWhichADaemonReceives(t *testing.T) {
	t.Parallel()
	machine := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("127.0.0.1")}
	known := knownNodes([]node{
		{Name: "this", Host: "here", Listeners: addresses("192.0.2.1:2525")}, // as it was before
		{Name: "beside", Host: "here", Listeners: addresses("192.0.2.1:26", "127.0.0.1:27")},
		{Name: "other", Host: "There.example", Listeners: addresses("192.0.2.9:25", "192.0.2.1:28", "127.0.0.1:29")},
		{Name: "nameless"},
		{Name: "local", Host: "LOCALHOST"},
	}, "this", "here", machine)
	for _, c := range []struct {
		address string
		own     []netip.AddrPort
		is      bool
	}{
		{"192.0.2.1:25", addresses("192.0.2.1:25"), true},
		{"192.0.2.1:25", addresses("192.0.2.1:26"), false},
		{"192.0.2.1:25", addresses("0.0.0.0:25"), true},
		{"192.0.2.1:25", addresses("0.0.0.0:26"), false},
		{"192.0.2.1:25", addresses("[::]:25"), false},
		{"[2001:db8::1]:25", addresses("[::]:25"), true},
		{"[2001:db8::1]:25", addresses("0.0.0.0:25"), false},
		{"127.0.0.5:25", addresses("0.0.0.0:25"), true},
		{"192.0.2.1:2525", nil, false},
		{"192.0.2.1:26", nil, true},
		{"127.0.0.1:27", nil, true},
		{"192.0.2.9:25", nil, true},
		{"192.0.2.9:26", nil, false},
		{"192.0.2.1:28", nil, false}, // There it is another machine's, such as that of a bridge of containers.
		{"127.0.0.1:29", nil, false},
		{"192.0.2.8:25", addresses("0.0.0.0:25"), false},
	} {
		if got := known.receivesAt(netip.MustParseAddrPort(c.address), c.own); got != c.is {
			t.Errorf("at %s with %v: %v", c.address, c.own, got)
		}
	}
	for name, is := range map[string]bool{"here": true, "there.example": true, "localhost": false, "": false, "x": false} {
		if known.hosts[name] != is {
			t.Errorf("the name %q is one of a daemon: %v", name, !is)
		}
	}
	got := expanded(addresses("0.0.0.0:25", "192.0.2.1:25", "[::]:26", "198.51.100.1:27"), machine)
	if want := addresses("127.0.0.1:25", "192.0.2.1:25", "198.51.100.1:27", "[2001:db8::1]:26"); !slices.Equal(got, want) {
		t.Errorf("it listens at %v, want %v", got, want)
	}
}

// A name server, host or listener without a port has the usual one.
func TestServersHaveThePortOfDNS(t *testing.T) {
	t.Parallel()
	got := withPorts([]string{"192.0.2.1", "192.0.2.1:5353", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:5353"}, "53")
	if want := "[192.0.2.1:53 192.0.2.1:5353 [2001:db8::1]:53 [2001:db8::1]:53 [2001:db8::1]:5353]"; fmt.Sprint(got) != want {
		t.Errorf("asked are %v, want %s", got, want)
	}
}
