package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// newClient makes a client that follows no redirect: an address that was allowed must not lead to one that was not.
func newClient(isPublicOnly bool) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if isPublicOnly {
		dialer.Control = refusePrivate
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			IdleConnTimeout:        30 * time.Second,
			MaxIdleConnsPerHost:    16,
			MaxResponseHeaderBytes: 64 << 10,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// refusePrivate checks the address that a connection is really made to: a name may lead anywhere, and elsewhere the next
// time it is asked for.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("read the address %s: %w", address, err)
	}
	if !isPublic(at.Addr()) {
		return fmt.Errorf("%w: %s is no public address; name its host with --allow-webhook", errPrivate, at.Addr())
	}
	return nil
}

var errPrivate = errors.New("the web address leads into a private network")

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

func isPublic(address netip.Addr) bool {
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
