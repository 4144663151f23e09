package adapter

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/parley-broker/parley/internal/publicdial"
)

// DialContext connects to host:port where that is permitted, within timeout, 0 for no bound but that of ctx. Where the operator has not
// named the host only public addresses are dialled, whatever its name leads to at that time.
func (p Permission) DialContext(ctx context.Context, network, address string, timeout time.Duration) (net.Conn, error) {
	public, err := p.CheckConnect(address)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: timeout}
	if public {
		dialer.Control = publicdial.RefusePrivate("name it with --allow-connect " + address)
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return conn, nil
}
