package trust

import (
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/verb"
)

// Advertised is the address under which other brokers reach a daemon of ours. It is only ever what an operator has stated: where the daemon
// listens gives no hint of it behind a translation of addresses, in a container, or on all addresses of a machine.
type Advertised string

// AdvertiseUsage explains the flag of an advertised address.
const AdvertiseUsage = "host:port under which other brokers reach this side's --listen, where that is not what they see by themselves"

// hostName is a name as routes take it. One of digits and dots alone is no name, but an address gone wrong.
var hostName = regexp.MustCompile(`^[0-9.]*[A-Za-z_-][A-Za-z0-9_.-]*$`)

// checkAddress refuses what is no HOST:PORT that can be connected to.
func checkAddress(flag, address string) error {
	host, port, err := net.SplitHostPort(address)
	if strings.Contains(address, "://") {
		return verb.Usagef("%s%s is no address: write host:port, without the scheme", flag, address)
	}
	if err != nil || host == "" || port == "" {
		return verb.Usagef("%s%s is no address: write host:port", flag, address)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return verb.Usagef("%s%s: the port has to be a number from 1 to 65535", flag, address)
	}
	switch ip, err := netip.ParseAddr(host); {
	case ip.Zone() != "":
		return verb.Usagef("%s%s: what stands behind %% is an interface of this machine, and means nothing on another one", flag, address)
	case err != nil && !hostName.MatchString(host):
		return verb.Usagef("%s%s: %q is neither an address nor a name of DNS: letters without accents, digits, hyphens and dots",
			flag, address, host)
	case ip.Unmap().IsUnspecified():
		return verb.Usagef("%s%s: %s stands for all addresses of a machine, and leads nowhere from another one: give the name or the address "+
			"that others connect to", flag, address, host)
	}
	return nil
}

// Validate refuses what nobody can connect to.
func (a Advertised) Validate() error {
	if a == "" {
		return nil
	}
	return checkAddress("--advertise ", string(a))
}

// Route gives it as routes and peers have it; "" for none.
func (a Advertised) Route() string {
	if a == "" {
		return ""
	}
	return "tcp://" + string(a)
}
