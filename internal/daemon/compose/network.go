package compose

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/pairing"
	"github.com/parley-broker/parley/internal/broker/transport/endpoint"
	"github.com/parley-broker/parley/internal/broker/transport/link"
	"github.com/parley-broker/parley/internal/broker/trust"
	"github.com/parley-broker/parley/internal/daemon"
)

// Network is how the daemon talks to other servers; not at all unless it has an Address.
type Network struct {
	Address       string // of the broker endpoint
	Advertised    string // under which others reach it, tcp://host:port
	Forward       bool
	ForwardSizeMB int64
	// Identity is the folder of the broker's key and certificate; "" for the default one. Certificate, Key and Authorities are files that are
	// used instead.
	Identity, Certificate, Key, Authorities string
	// MasterKeys opens the file of the master key, which NamesMasterKey reports was named.
	MasterKeys           func() (*dialogsecurity.MasterKeys, error)
	NamesMasterKey       bool
	IsStrict             bool // as Service Broker: encrypted links do not stand for encrypted dialogs
	Compress             bool
	SocketsPerAddress    int
	HandshakesPerAddress int

	databases []*servedDatabase
	logger    *slog.Logger

	trust   *trust.Trust
	keys    *dialogsecurity.MasterKeys // nil for a daemon without an Address or a named master key
	dialogs *endpoint.Endpoint
}

// validate finds what cannot be meant.
func (n *Network) validate() error {
	switch {
	case n.Address == "" && (n.Forward || n.Identity != "" || n.Certificate != "" || n.Key != "" || n.Authorities != "" ||
		n.IsStrict || n.Compress || n.Advertised != ""):
		return errors.New("--advertise, --forward, --compress, --identity, --certificate, --certificate-key, --authorities and " +
			"--strict-encryption are for a daemon with --listen")
	case (n.Certificate == "") != (n.Key == ""):
		return errors.New("--certificate and --certificate-key belong together")
	case n.Authorities != "" && n.Certificate == "":
		return errors.New("--authorities needs --certificate")
	case n.Certificate != "" && n.Identity != "":
		return errors.New("give --identity or --certificate, not both")
	case n.SocketsPerAddress < 1 || n.HandshakesPerAddress < 1:
		return errors.New("--connections-per-address and --handshakes-per-address must be at least 1")
	case n.ForwardSizeMB < 1 || n.ForwardSizeMB > 1<<20:
		return errors.New("--forward-size must be between 1 and 1048576")
	}
	return nil
}

// Prepare makes the broker endpoint for the databases, and listens where --listen says.
func (n *Network) Prepare(ctx context.Context) (err error) {
	logger := n.logger
	if n.Address != "" || n.NamesMasterKey {
		if n.keys, err = n.MasterKeys(); err != nil {
			return err
		}
	}
	if n.Address == "" {
		n.dialogs, err = endpoint.New(endpoint.Config{Logger: logger})
		return err
	}
	source, authorities, err := n.source(logger)
	if err != nil {
		return err
	}
	host := &pairing.Host{Certificate: source.Certificate, Keys: n.keys, Address: n.Advertised, Logger: logger}
	config := trust.Config{
		Source: source, Authorities: authorities, UnknownPeers: host, Name: daemonName(n.Address),
		Address: n.Advertised, Logger: logger,
	}
	for _, database := range n.databases {
		config.Databases = append(config.Databases, trust.Database{
			Name: database.pool.Config().ConnConfig.Database, DB: database.pool,
		})
		host.Databases = append(host.Databases, database.pool)
	}
	n.trust = trust.New(config)
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", n.Address)
	if err != nil {
		return fmt.Errorf("listen on --listen %s: %w", n.Address, err)
	}
	logger.Info("the broker endpoint is open", "address", listener.Addr().String(), "forwards", n.Forward,
		"advertised", strings.TrimPrefix(n.Advertised, "tcp://"))
	n.dialogs, err = endpoint.New(endpoint.Config{
		Network: &endpoint.Network{
			Listener: listener,
			Link: link.Config{
				Security: n.trust, Software: "parley " + parley.Release, Compress: n.Compress, Log: logger,
				SocketsPerHost: n.SocketsPerAddress, HandshakesPerHost: n.HandshakesPerAddress,
			},
		},
		Guard: func(logger *slog.Logger) dialogsecurity.Guard {
			return dialogsecurity.New(dialogsecurity.Config{Keys: n.keys, IsLinkEncrypted: !n.IsStrict, Logger: logger})
		},
		Forward:     n.Forward,
		ForwardSize: n.ForwardSizeMB << 20,
		Logger:      logger,
	})
	if err != nil {
		_ = listener.Close()
	}
	return err
}

// source finds the certificate of this broker. Without any, one is made, whose key others have to trust first.
func (n *Network) source(logger *slog.Logger) (trust.Source, func() *x509.CertPool, error) {
	if n.Certificate != "" {
		files, err := identity.OpenFiles(n.Certificate, n.Key, n.Authorities)
		if err != nil {
			return nil, nil, err
		}
		return files, files.Authorities, nil
	}
	folder, err := identity.OpenFolder(n.Identity)
	if err != nil {
		return nil, nil, err
	}
	host, _ := os.Hostname()
	certificate, isNew, err := folder.Create(identity.Config{Name: host})
	if err != nil {
		return nil, nil, err
	}
	if isNew {
		logger.Info("this broker has a certificate now", "folder", folder.Path(), "key", certificate.Fingerprint.String())
	}
	return folder, nil, nil
}

// Run serves the broker endpoint until ctx ends.
func (n *Network) Run(ctx context.Context) error {
	if n.trust == nil {
		return n.dialogs.Run(ctx)
	}
	return daemon.Together(ctx, n.dialogs.Run, n.trust.Run)
}

// Close closes the links to other servers.
func (n *Network) Close() {
	if n.dialogs != nil {
		n.dialogs.Close()
	}
}

// daemonName distinguishes this daemon from others of the same databases.
func daemonName(address string) string {
	host, err := os.Hostname()
	if err != nil {
		return address
	}
	return host + " " + address
}
