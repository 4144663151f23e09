package send

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/parley-broker/parley/internal/mail/nexthop"
)

// leadsBack is whether we receive ourselves at an address of a host, so that what is sent there comes back. Of exchangers that are equal
// it is asked about all before the first is tried: none that is not better than we are may be (RFC 5321 section 5.1). Names of ours are
// known before; this finds those that only DNS has.
func (s *SMTPCarrier) leadsBack(ctx context.Context, connector Connector, hosts []nexthop.Host, at int) bool {
	switch {
	case s.Own == nil:
		return false
	case len(connector.SmartHosts) > 0:
		return s.isOwn(ctx, connector, hosts[at])
	case at > 0 && hosts[at-1].Preference == hosts[at].Preference:
		return false
	}
	return slices.ContainsFunc(hosts[at:], func(host nexthop.Host) bool {
		return host.Preference == hosts[at].Preference && s.isOwn(ctx, connector, host)
	})
}

// isOwn is whether we receive at an address of a host. One whose addresses are not known is not ours.
func (s *SMTPCarrier) isOwn(ctx context.Context, connector Connector, host nexthop.Host) bool {
	name, port, err := connector.endOf(host)
	if err != nil {
		return false
	}
	addresses, _, err := s.resolver(connector).Addresses(ctx, name)
	return err == nil && slices.ContainsFunc(addresses, func(address netip.Addr) bool {
		return s.Own(netip.AddrPortFrom(address.Unmap(), uint16(port)))
	})
}

// leadBack is why mail for a hop goes nowhere when all its hosts are ours. Smart hosts are what somebody has configured.
func leadBack(hop Hop, connector Connector) error {
	if len(connector.SmartHosts) > 0 {
		return &nexthop.Error{
			Permanent: true, Enhanced: "5.3.5",
			Text: fmt.Sprintf("the smart hosts of the send connector %s are this server itself", hop.Connector),
		}
	}
	return &nexthop.Error{Permanent: true, Enhanced: "5.4.6", Text: fmt.Sprintf("mail for %s would come back to this server", hop.Name)}
}
