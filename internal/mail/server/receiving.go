package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/hostfolders"
	"github.com/parley-broker/parley/internal/mail/authenticity"
	"github.com/parley-broker/parley/internal/mail/blocklist"
	"github.com/parley-broker/parley/internal/mail/milter"
	"github.com/parley-broker/parley/internal/mail/receive"
)

// equipment holds the parts that receive connectors need beside their settings.
type equipment struct {
	resolver *net.Resolver
	folders  *hostfolders.Folders
	log      *slog.Logger
}

// newResolver asks the name servers given, or those of the machine.
func newResolver(servers []string) *net.Resolver {
	if len(servers) == 0 {
		return net.DefaultResolver
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, servers[rand.IntN(len(servers))])
	}}
}

// newVerifier verifies what messages say of their origin.
func newVerifier(resolver *net.Resolver) *authenticity.Verifier {
	return &authenticity.Verifier{Resolver: resolver}
}

// equip gives connectors their certificates and filters. A connector without its certificate would have peers speak in the clear: where it
// cannot be read that is an error, or the connector is left out where there was no configuration before.
func (e equipment) equip(s *settings, r reading) error {
	var wrong []error
	for name, files := range s.sending.certificates {
		connector := s.sending.connectors[name]
		connector.Certificate = (&ownCertificate{files: files, log: e.log}).get
		s.sending.connectors[name] = connector
	}
	e.leaveOutUnreadable(s, r)
	for _, connector := range s.receive.Connectors {
		if connector.IsDisabled {
			continue
		}
		written := s.receivers[connector.Name]
		if err := e.secure(connector, written, s); err != nil {
			if err := r.leaveOut(s, "receive connector", connector.Name, err); err != nil {
				wrong = append(wrong, err)
			}
			connector.IsDisabled = true
			continue
		}
		if len(written.BlockLists) > 0 {
			connector.Filters = append(connector.Filters, &blocklist.Filter{Zones: written.BlockLists, Resolver: e.resolver, Log: e.log})
		}
		for i, m := range written.Milters {
			name := fmt.Sprintf("%s, %d", connector.Name, i+1)
			network, address := milterAddress(m.Address)
			filter := milter.New(name, network, address, seconds(m.Timeout), milter.Default(m.DefaultAction), e.log)
			filter.Dial = e.folders.Dial
			connector.Filters = append(connector.Filters, filter)
		}
	}
	return errors.Join(wrong...)
}

// files are those of a certificate, on this host.
func (e equipment) files(certificate, key string) receive.CertificateFiles {
	return receive.CertificateFiles{Certificate: certificate, Key: key, Folders: e.folders}
}

// leaveOutUnreadable leaves out connectors whose certificate cannot be read, before others that show it too would be. A connector that must
// not be left out is found once more by [equipment.secure].
func (e equipment) leaveOutUnreadable(s *settings, r reading) {
	for _, connector := range s.receive.Connectors {
		written := s.receivers[connector.Name]
		if connector.IsDisabled || written.CertificateFile == "" {
			continue
		}
		_, err := receive.NewCertificates(e.log, e.files(written.CertificateFile, written.CertificateKeyFile))
		if err != nil && r.leaveOut(s, "receive connector", connector.Name, fmt.Errorf("its certificate: %w", err)) == nil {
			connector.IsDisabled = true
		}
	}
}

// milterAddress reads inet:host:port or unix:/path.
func milterAddress(written string) (network, address string) {
	network, address, _ = strings.Cut(written, ":")
	switch network {
	case "inet":
		network = "tcp"
	case "inet6":
		network = "tcp6"
	}
	return network, address
}

// secure gives a connector its certificates: its own first, which serves those who ask for no name that there is a certificate for, and
// then those of the others.
func (e equipment) secure(connector *receive.Connector, written receiveConnector, s *settings) error {
	own := e.files(written.CertificateFile, written.CertificateKeyFile)
	var files []receive.CertificateFiles
	if own.Certificate != "" {
		files = append(files, own)
	}
	for _, other := range s.receive.Connectors {
		file := s.receivers[other.Name]
		if !other.IsDisabled && file.CertificateFile != "" && file.CertificateFile != own.Certificate {
			files = append(files, e.files(file.CertificateFile, file.CertificateKeyFile))
		}
	}
	if len(files) > 0 {
		certificates, err := receive.NewCertificates(e.log, files...)
		if err != nil {
			return fmt.Errorf("its certificate: %w", err)
		}
		connector.Certificate = certificates.Get
	}
	if written.ClientCAFile == "" {
		return nil
	}
	authorities, err := receive.LoadAuthorities(e.folders, written.ClientCAFile)
	if err != nil {
		receive.LogCause(e.log, err)
		return fmt.Errorf("the authorities of its peers: %w", err)
	}
	connector.ClientCAs = authorities
	return nil
}
