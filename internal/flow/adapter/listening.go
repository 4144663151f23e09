package adapter

import (
	"net"
	"strings"
)

// Listening is where a location listens. Locations of one protocol share an address, where each has a path of its own.
type Listening struct {
	Address  string // host:port
	Protocol string // such as https
	Path     string // empty where a location has the address for itself
}

// Conflict says what two locations cannot have at the same time; empty: nothing.
func (l Listening) Conflict(other Listening) string {
	switch {
	case !l.overlaps(other):
		return ""
	case !strings.EqualFold(l.Address, other.Address) || l.Protocol != other.Protocol || l.Path == "":
		return "the address " + l.Address
	case l.Path == other.Path:
		return "the path " + l.Path + " of " + l.Address
	}
	return ""
}

// overlaps reports whether both are open for one port of one address of a machine. A port 0 is any that is free.
func (l Listening) overlaps(other Listening) bool {
	host, port, err := net.SplitHostPort(l.Address)
	otherHost, otherPort, otherErr := net.SplitHostPort(other.Address)
	if err != nil || otherErr != nil || port != otherPort || port == "0" {
		return false
	}
	return strings.EqualFold(host, otherHost) || isAnyHost(host) || isAnyHost(otherHost)
}

// isAnyHost reports whether a host stands for all addresses of a machine.
func isAnyHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}
