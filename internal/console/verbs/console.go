// Package verbs is the verb that serves the console.
package verbs

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/console"
	"github.com/parley-broker/parley/internal/verb"
)

const consoleLong = `Serve pages that show queues, conversations, failed work, mail and the daemon of a database, and mend what is wrong.

The command prints an address that lets in who opens it first, as the role of the database connection. Everybody else logs in with a
role of PostgreSQL and its password, and sees and does what that role may. Every change is recorded in parley.operator_actions.

Only this machine reaches the console, unless --listen names another address; then it needs a certificate, or a proxy in front of it.
parley serve --console serves the same pages beside a daemon.`

// NewConsole makes parley console.
func NewConsole(a *verb.App) *cobra.Command {
	var listening console.Listening
	var key bool
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve pages that show what happens, and mend it",
		Long:  consoleLong,
		Args:  cobra.NoArgs,
		Example: `  parley console
  parley console --dsn postgres://app@db1/shop --read-only
  parley console --dsn postgres://app@db1/shop --listen 0.0.0.0:7440 --cert console.pem --key console.key --no-link`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := listening.Validate(); err != nil {
				return verb.AsUsage(err)
			}
			return serve(cmd.Context(), a, &listening, !key)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&listening.Address, "listen", "127.0.0.1:7440", "address to serve the console on; port 0 for any that is free")
	flags.StringVar(&listening.CertFile, "cert", "", "file of a certificate, in PEM, for browsers on other machines")
	flags.StringVar(&listening.KeyFile, "key", "", "file of the key of --cert, in PEM")
	flags.BoolVar(&listening.IsBehindProxy, "behind-proxy", false, "a proxy in front of the console speaks TLS with browsers")
	flags.BoolVar(&listening.ReadOnly, "read-only", false, "show everything and change nothing")
	flags.BoolVar(&key, "no-link", false, "print no address that lets in without a password")
	return cmd
}

func serve(ctx context.Context, a *verb.App, listening *console.Listening, withKey bool) error {
	dsn, err := a.ResolveDSN(ctx)
	if err != nil {
		return err
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return a.BadDSN(err)
	}
	// A fault of the database is said here and not in a browser.
	conn, err := a.Attach(ctx)
	if err != nil {
		return err
	}
	verb.CloseConnection(ctx, conn)
	settings := console.Config{
		Targets:  []console.Target{{Name: config.Database, Config: config}},
		ReadOnly: listening.ReadOnly, Secure: listening.IsSecure(), IsBehindProxy: listening.IsBehindProxy,
		Logger: slog.New(slog.NewTextHandler(a.Stderr, nil)),
	}
	if withKey {
		settings.Key = rand.Text()
	}
	served, err := console.New(settings)
	if err != nil {
		return err
	}
	listener, err := listening.Open(ctx)
	if err != nil {
		return err
	}
	address := url.URL{Scheme: "http", Host: listener.Addr().String(), Path: "/login"}
	if listening.CertFile != "" {
		address.Scheme = "https"
	}
	if withKey {
		address.RawQuery = "key=" + settings.Key
	}
	if _, err := fmt.Fprintf(a.Stdout, "%s\n", address.String()); err != nil {
		return fmt.Errorf("print the address: %w", err)
	}
	return served.Serve(ctx, listener, listening.Certificate())
}
