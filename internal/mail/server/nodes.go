package server

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// node is a daemon that works on this database, or did in the last day, as it reported itself.
type node struct {
	Name, Host string
	// Listeners are where it receives now.
	Listeners []netip.AddrPort
}

// nodes are the other daemons of this database: what goes to one of them comes back into the queues that all share.
type nodes struct {
	hosts map[string]bool
	// machine are the addresses of this machine. Mail that is sent to one of these stays here, where here are receivers; the same address
	// may be one of another machine as well, such as that of a bridge of containers.
	machine         []netip.Addr
	here, elsewhere map[netip.AddrPort]bool
}

// knownNodes sorts the daemons, of which this one is called name.
func knownNodes(all []node, name, host string, machine []netip.Addr) *nodes {
	n := &nodes{hosts: make(map[string]bool), machine: machine, here: make(map[netip.AddrPort]bool), elsewhere: make(map[netip.AddrPort]bool)}
	for _, other := range all {
		// Mail of others says by localhost too.
		if other.Host != "" && !strings.EqualFold(other.Host, "localhost") {
			n.hosts[strings.ToLower(other.Host)] = true
		}
		for _, address := range other.Listeners {
			switch {
			case other.Name == name: // It may have changed since.
			case other.Host == host:
				n.here[address] = true
			default:
				n.elsewhere[address] = true
			}
		}
	}
	return n
}

// receivesAt is whether one of the daemons receives at an address, of which this one has own.
func (n *nodes) receivesAt(address netip.AddrPort, own []netip.AddrPort) bool {
	if address.Addr().IsLoopback() || slices.Contains(n.machine, address.Addr()) {
		return n.here[address] || slices.ContainsFunc(own, func(listener netip.AddrPort) bool {
			return listener == address || listener.Addr().IsUnspecified() && listener.Port() == address.Port() &&
				listener.Addr().Is4() == address.Addr().Is4()
		})
	}
	return n.elsewhere[address]
}

// expanded gives, for listeners on all addresses of a family, the addresses of the machine.
func expanded(listeners []netip.AddrPort, machine []netip.Addr) (addresses []netip.AddrPort) {
	for _, listener := range listeners {
		if !listener.Addr().IsUnspecified() {
			addresses = append(addresses, listener)
			continue
		}
		for _, address := range machine {
			if address.Is4() == listener.Addr().Is4() {
				addresses = append(addresses, netip.AddrPortFrom(address, listener.Port()))
			}
		}
	}
	slices.SortFunc(addresses, netip.AddrPort.Compare)
	return slices.Compact(addresses)
}

// machineAddresses are the addresses of this machine; none where they cannot be read.
func machineAddresses() (addresses []netip.Addr) {
	found, _ := net.InterfaceAddrs()
	for _, one := range found {
		if prefix, err := netip.ParsePrefix(one.String()); err == nil {
			addresses = append(addresses, prefix.Addr().Unmap().WithZone(""))
		}
	}
	return addresses
}

// isOwnName is whether a name is one of this organization's hosts: as a receive connector has it, as the organization, or as the machine
// of a daemon.
func (s *Server) isOwnName(name string) bool {
	if s.settings.Load().isOwn(name, s.host) {
		return true
	}
	known := s.nodes.Load()
	return known != nil && known.hosts[strings.ToLower(name)]
}

// isOwnAddress is whether a daemon of this database receives at an address.
func (s *Server) isOwnAddress(address netip.AddrPort) bool {
	known := s.nodes.Load()
	return known != nil && known.receivesAt(address, s.receiver.Addresses())
}

// isOwn is whether a name is one of this host.
func (s *settings) isOwn(name, host string) bool {
	return strings.EqualFold(name, s.fqdn) || strings.EqualFold(name, host) ||
		slices.ContainsFunc(s.receive.Connectors, func(c *receive.Connector) bool { return strings.EqualFold(c.FQDN, name) })
}
