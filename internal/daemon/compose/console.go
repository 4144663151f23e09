package compose

import (
	"context"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/console"
)

// consolePart serves the console for all databases of the daemon. Its users log in with roles of their own: the login of the
// daemon serves nobody.
type consolePart struct {
	daemon   *Daemon
	served   *console.Console
	listener net.Listener
}

// Prepare makes the console and listens.
func (c *consolePart) Prepare(ctx context.Context) error {
	settings := console.Config{
		ReadOnly: c.daemon.Console.ReadOnly, Secure: c.daemon.Console.IsSecure(),
		IsBehindProxy: c.daemon.Console.IsBehindProxy, Logger: c.daemon.Logger,
	}
	for _, dsn := range c.daemon.DSNs {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			return fmt.Errorf("read the DSN of the console: %w", err)
		}
		name := config.Database
		for _, other := range settings.Targets {
			if other.Name == config.Database {
				name = fmt.Sprintf("%s@%s:%d", config.Database, config.Host, config.Port)
			}
		}
		settings.Targets = append(settings.Targets, console.Target{Name: name, Config: config})
	}
	var err error
	if c.served, err = console.New(settings); err != nil {
		return err
	}
	if c.listener, err = c.daemon.Console.Open(ctx); err != nil {
		return err
	}
	c.daemon.Logger.Info("the console is served", "address", c.listener.Addr().String())
	return nil
}

// Run serves it until ctx ends.
func (c *consolePart) Run(ctx context.Context) error {
	return c.served.Serve(ctx, c.listener, c.daemon.Console.Certificate())
}

// Close stops listening.
func (c *consolePart) Close() {
	if c.listener != nil {
		_ = c.listener.Close()
	}
}
