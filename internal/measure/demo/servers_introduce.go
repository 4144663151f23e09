package demo

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/site"
)

// The services of the paper: the target's, and the initiators' own.
const (
	targetService    = "//MySSB.com/Lab/S_Test"
	initiatorService = "//MySSB.com/Lab/S_Sender"
)

// introduce makes the hosts known to each other: keys, routes and rights. Each way leads through the link's relay.
func (n *network) introduce(ctx context.Context) error {
	// The keys decide which peers are accepted; this decides what they may send to.
	if _, err := n.target.control.Exec(ctx, `
		select parley.grant(
			permission => 'SEND', class => 'SERVICE', object => $1, grantee => 'PUBLIC'
		)`, targetService); err != nil {
		return fmt.Errorf("let the initiators send: %w", err)
	}
	for _, i := range n.initiators {
		if err := join(ctx, i.control, n.target.control, n.target.daemon, i.link.toTarget.Address(), targetService); err != nil {
			return fmt.Errorf("%s: %w", i.name, err)
		}
		if err := join(ctx, n.target.control, i.control, i.daemon, i.link.toInitiator.Address(), initiatorService); err != nil {
			return fmt.Errorf("%s: %w", i.name, err)
		}
	}
	return nil
}

// join lets a database trust a daemon, and gives it the route to a service behind it.
func join(ctx context.Context, from, to *pgx.Conn, daemon *site.Daemon, address, service string) error {
	var instance string
	if err := to.QueryRow(ctx, "select service_broker_guid::text from parley.databases").Scan(&instance); err != nil {
		return fmt.Errorf("ask for the name of a broker: %w", err)
	}
	if err := daemon.BeTrusted(ctx, from, address); err != nil {
		return err
	}
	_, err := from.Exec(ctx, "select parley.create_route($1, 'tcp://' || $2, service_name => $3, broker_instance => $4)",
		daemon.Name(), address, service, instance)
	if err != nil {
		return fmt.Errorf("create a route: %w", err)
	}
	return nil
}
