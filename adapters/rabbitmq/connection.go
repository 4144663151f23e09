package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/parley-broker/parley/adapters/endpoint"
	"github.com/parley-broker/parley/flow/adapter"
)

// heartbeat is how often each side says that it is there; a connection on which nothing came for twice as long is lost.
const heartbeat = 10 * time.Second

// dial connects and logs in.
func dial(ctx context.Context, e adapter.Endpoint, a address, s Server) (*amqp.Connection, error) {
	password, found, err := endpoint.Secret(ctx, e, passwordSecret)
	if err != nil {
		return nil, err
	}
	if !found {
		password = "guest" // that of a broker that was just installed, which takes it from its own machine alone
	}
	config := amqp.Config{
		SASL: []amqp.Authentication{&amqp.PlainAuth{Username: s.User, Password: password}}, Vhost: s.Vhost, Heartbeat: heartbeat,
		Properties: amqp.Table{"connection_name": "parley " + e.Name},
		Dial: func(network, host string) (net.Conn, error) {
			conn, err := e.Permission.DialContext(ctx, network, host, time.Duration(s.Timeout))
			if err != nil {
				return nil, err
			}
			// It holds for the handshake; the client sets others when that is over.
			return conn, conn.SetDeadline(time.Now().Add(time.Duration(s.Timeout)))
		},
	}
	scheme := "amqp://"
	if a.isTLS {
		scheme = "amqps://"
		name, _, _ := net.SplitHostPort(a.host)
		if config.TLSClientConfig, err = endpoint.TLS(ctx, e, name); err != nil {
			return nil, err
		}
	}
	conn, err := amqp.DialConfig(scheme+a.host, config)
	if err != nil {
		return nil, fmt.Errorf("connect to RabbitMQ at %s as %s: %w", a.host, s.User, err)
	}
	if ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), conn.Close())
	}
	return conn, nil
}
