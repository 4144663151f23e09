package cli

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/pairing"
	"github.com/parley-broker/parley/internal/broker/transport/endpoint"
	"github.com/parley-broker/parley/internal/broker/transport/link"
	"github.com/parley-broker/parley/internal/broker/transport/router"
	"github.com/parley-broker/parley/internal/broker/trust"
	"github.com/parley-broker/parley/internal/daemon"
)

// network is how the daemon talks to other servers; not at all unless --listen is given.
type network struct {
	address                       string
	advertised                    advertised
	forward                       bool
	forwardSizeMB                 int64
	identity                      string
	certificate, key, authorities string
	masterKey                     masterKeyFlag
	isStrict                      bool
	compress                      bool
	socketsPerAddress             int
	handshakesPerAddress          int

	databases []*servedDatabase
	logger    *slog.Logger

	trust   *trust.Trust
	keys    *dialogsecurity.MasterKeys // nil for a daemon without --listen and --master-key
	dialogs *endpoint.Endpoint
}

func (n *network) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&n.address, "listen", "",
		"address of the broker endpoint, where brokers on other servers connect, such as :4022 (default: nothing goes over the network)")
	flags.StringVar((*string)(&n.advertised), "advertise", "", advertiseUsage+"; sent to those that this daemon is paired with")
	flags.BoolVar(&n.forward, "forward", false, "pass messages on to other servers where inbound routes say so")
	flags.Int64Var(&n.forwardSizeMB, "forward-size", router.DefaultForwardSize>>20,
		"megabytes of messages that may be on their way through at a time; what comes on top is dropped, and sent again by its sender")
	flags.BoolVar(&n.compress, "compress", false,
		"compress what goes to brokers that take it, for slow networks: it costs processor time at both ends")
	flags.StringVar(&n.identity, "identity", "",
		"folder with the key and the certificate of this broker (default: that of parley certificate)")
	flags.StringVar(&n.certificate, "certificate", "", "file with a certificate to use instead, with --certificate-key")
	flags.StringVar(&n.key, "certificate-key", "", "file with its private key")
	flags.IntVar(&n.socketsPerAddress, "connections-per-address", 128,
		"connections that one address may open; of IPv6 one network of 64 bits counts as one")
	flags.IntVar(&n.handshakesPerAddress, "handshakes-per-address", 16,
		"how many of them may not have said yet who they are; a handshake takes ten seconds at most")
	n.masterKey.addFlag(cmd)
	flags.BoolVar(&n.isStrict, "strict-encryption", false,
		"as Service Broker: hold dialogs with encryption for which there is no remote service binding, though links are encrypted")
	flags.StringVar(&n.authorities, "authorities", "", "file with certificates of authorities that may vouch for other brokers")
}

// validate finds what cannot be meant.
func (n *network) validate() error {
	switch {
	case n.address == "" && (n.forward || n.identity != "" || n.certificate != "" || n.key != "" || n.authorities != "" ||
		n.isStrict || n.compress || n.advertised != ""):
		return usagef("--advertise, --forward, --compress, --identity, --certificate, --certificate-key, --authorities and " +
			"--strict-encryption are for a daemon with --listen")
	case (n.certificate == "") != (n.key == ""):
		return usagef("--certificate and --certificate-key belong together")
	case n.authorities != "" && n.certificate == "":
		return usagef("--authorities needs --certificate")
	case n.certificate != "" && n.identity != "":
		return usagef("give --identity or --certificate, not both")
	case n.socketsPerAddress < 1 || n.handshakesPerAddress < 1:
		return usagef("--connections-per-address and --handshakes-per-address must be at least 1")
	case n.forwardSizeMB < 1 || n.forwardSizeMB > 1<<20:
		return usagef("--forward-size must be between 1 and 1048576")
	}
	return n.advertised.validate()
}

// Prepare makes the broker endpoint for the databases, and listens where --listen says.
func (n *network) Prepare(ctx context.Context) (err error) {
	logger := n.logger
	if n.address != "" || n.masterKey.path != "" {
		if n.keys, err = n.masterKey.openIn(n.identity); err != nil {
			return err
		}
	}
	if n.address == "" {
		n.dialogs, err = endpoint.New(endpoint.Config{Logger: logger})
		return err
	}
	source, authorities, err := n.source(logger)
	if err != nil {
		return err
	}
	host := &pairing.Host{Certificate: source.Certificate, Keys: n.keys, Address: n.advertised.route(), Logger: logger}
	config := trust.Config{
		Source: source, Authorities: authorities, UnknownPeers: host, Name: daemonName(n.address),
		Address: n.advertised.route(), Logger: logger,
	}
	for _, database := range n.databases {
		config.Databases = append(config.Databases, trust.Database{
			Name: database.pool.Config().ConnConfig.Database, DB: database.pool,
		})
		host.Databases = append(host.Databases, database.pool)
	}
	n.trust = trust.New(config)
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", n.address)
	if err != nil {
		return fmt.Errorf("listen on --listen %s: %w", n.address, err)
	}
	logger.Info("the broker endpoint is open", "address", listener.Addr().String(), "forwards", n.forward,
		"advertised", string(n.advertised))
	n.dialogs, err = endpoint.New(endpoint.Config{
		Network: &endpoint.Network{
			Listener: listener,
			Link: link.Config{
				Security: n.trust, Software: "parley " + parley.Release, Compress: n.compress, Log: logger,
				SocketsPerHost: n.socketsPerAddress, HandshakesPerHost: n.handshakesPerAddress,
			},
		},
		Guard: func(logger *slog.Logger) dialogsecurity.Guard {
			return dialogsecurity.New(dialogsecurity.Config{Keys: n.keys, IsLinkEncrypted: !n.isStrict, Logger: logger})
		},
		Forward:     n.forward,
		ForwardSize: n.forwardSizeMB << 20,
		Logger:      logger,
	})
	if err != nil {
		_ = listener.Close()
	}
	return err
}

// source finds the certificate of this broker. Without any, one is made, whose key others have to trust first.
func (n *network) source(logger *slog.Logger) (trust.Source, func() *x509.CertPool, error) {
	if n.certificate != "" {
		files, err := identity.OpenFiles(n.certificate, n.key, n.authorities)
		if err != nil {
			return nil, nil, err
		}
		return files, files.Authorities, nil
	}
	folder, err := identity.OpenFolder(n.identity)
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
func (n *network) Run(ctx context.Context) error {
	if n.trust == nil {
		return n.dialogs.Run(ctx)
	}
	return daemon.Together(ctx, n.dialogs.Run, n.trust.Run)
}

// Close closes the links to other servers.
func (n *network) Close() {
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
