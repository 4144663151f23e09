package link

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/broker/transport"
)

// mirrorsMost is how many servers an address can name: one and its mirror.
const mirrorsMost = 2

// parseAddress reads tcp://host:port, with the mirror's behind a comma. The scheme may be left out.
func parseAddress(address string) ([]string, error) {
	var hosts []string
	for part := range strings.SplitSeq(address, ",") {
		part = strings.TrimSpace(part)
		if scheme, rest, found := strings.Cut(part, "://"); found {
			if !strings.EqualFold(scheme, "tcp") {
				return nil, transport.Fail(transport.FailureOfAddress, "address %q: only tcp:// leads to another server", address)
			}
			part = rest
		}
		host, port, err := net.SplitHostPort(part)
		if err != nil {
			return nil, transport.Fail(transport.FailureOfAddress, "address %q: %w", address, err)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" {
			return nil, transport.Fail(transport.FailureOfAddress, "address %q: want tcp://host:port", address)
		}
		hosts = append(hosts, part)
	}
	if len(hosts) > mirrorsMost {
		return nil, transport.Fail(transport.FailureOfAddress, "address %q: %s", address, fmt.Sprintf("at most %d servers", mirrorsMost))
	}
	return hosts, nil
}
