// Package publicdial keeps connections that a definition in a database asks for out of private networks.
//
// The address that a connection is really made to is checked, and no name: a name may lead anywhere, and elsewhere the next time it is
// asked for.
package publicdial

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrPrivate is the error of a connection that would lead into a private network.
var ErrPrivate = errors.New("the address leads into a private network")

// RefusePrivate gives the Control of a [net.Dialer] that connects to public addresses only; remedy says in the error what to do.
func RefusePrivate(remedy string) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("read the address %s: %w", address, err)
		}
		if !IsPublic(at.Addr()) {
			return fmt.Errorf("%w: %s is no public address; %s", ErrPrivate, at.Addr(), remedy)
		}
		return nil
	}
}

// notPublic are ranges that the standard library does not distinguish, and those that lead to IPv4 addresses.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/32"),
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

// IsPublic says whether an address belongs to no machine, link or private network.
func IsPublic(address netip.Addr) bool {
	address = address.Unmap()
	if !address.IsGlobalUnicast() || address.IsPrivate() {
		return false
	}
	for _, prefix := range notPublic {
		if prefix.Contains(address.WithZone("")) {
			return false
		}
	}
	return true
}
