package send

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// TLSMode says how much encryption a connection needs.
type TLSMode int

const (
	// TLSOpportunistic encrypts where the host offers it, whoever the host is.
	TLSOpportunistic TLSMode = iota
	// TLSOff never encrypts.
	TLSOff
	// TLSRequired encrypts, whoever the host is, or does not send.
	TLSRequired
	// TLSVerified encrypts, and the certificate must be valid for one of the names.
	TLSVerified
	// TLSDANE encrypts, and the certificate must be the one that signed DNS records name (RFC 7672).
	TLSDANE
)

// ParseTLSMode reads the name of a mode, as it stands in a send connector.
func ParseTLSMode(name string) (TLSMode, error) {
	modes := map[string]TLSMode{
		"OPPORTUNISTIC": TLSOpportunistic, "OFF": TLSOff, "REQUIRED": TLSRequired, "VERIFIED": TLSVerified, "DANE": TLSDANE,
	}
	mode, known := modes[strings.ToUpper(name)]
	if !known {
		return 0, fmt.Errorf("%q is no TLS mode; they are OFF, OPPORTUNISTIC, REQUIRED, VERIFIED and DANE", name)
	}
	return mode, nil
}

// TLSPolicy names the proof that a connection needs.
type TLSPolicy struct {
	Mode TLSMode
	// Names are the names of which the certificate must carry one, in the mode verified; "*.example.com" stands for names below a domain,
	// one label deep. None means the name of the host.
	Names []string
	// Records are those of the host, in the mode DANE.
	Records []*dns.TLSA
	// RootCAs are trusted in the mode verified; nil means those of the machine.
	RootCAs *x509.CertPool
}

// config is how to shake hands with a host under this policy.
func (p TLSPolicy) config(host string, own *own) *tls.Config {
	// The certificate is checked below, by the policy and not by the name of the host alone.
	//nolint:gosec // VerifyConnection verifies what the mode asks for.
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, GetClientCertificate: own.show}
	switch p.Mode {
	case TLSVerified:
		config.VerifyConnection = func(state tls.ConnectionState) error { return p.verifyNames(host, state.PeerCertificates) }
	case TLSDANE:
		config.VerifyConnection = func(state tls.ConnectionState) error { return p.verifyRecords(host, state.PeerCertificates) }
	case TLSOff, TLSOpportunistic, TLSRequired:
	}
	return config
}

func (p TLSPolicy) verifyNames(host string, chain []*x509.Certificate) error {
	if err := verifyChain(chain, p.RootCAs); err != nil {
		return err
	}
	names := p.Names
	if len(names) == 0 {
		names = []string{host}
	}
	for _, name := range names {
		if wanted, is := strings.CutPrefix(name, "*."); is {
			if slices.ContainsFunc(chain[0].DNSNames, func(shown string) bool {
				_, parent, _ := strings.Cut(shown, ".")
				return strings.EqualFold(parent, wanted)
			}) {
				return nil
			}
			continue
		}
		if chain[0].VerifyHostname(name) == nil {
			return nil
		}
	}
	return fmt.Errorf("the certificate is for %s and not for %s", strings.Join(chain[0].DNSNames, ", "), strings.Join(names, " or "))
}

func verifyChain(chain []*x509.Certificate, roots *x509.CertPool) error {
	if len(chain) == 0 {
		return errors.New("the host showed no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		intermediates.AddCert(certificate)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates}); err != nil {
		return fmt.Errorf("verify the certificate: %w", err)
	}
	return nil
}

// The uses, selectors and kinds of a TLSA record (RFC 6698 section 2.1).
const (
	useTrustAnchor, useEndEntity        = 2, 3
	selectCertificate, selectPublicKey  = 0, 1
	matchExactly, matchSHA256, matchSHA = 0, 1, 2
)

// usable is whether a record means something to SMTP (RFC 7672 section 3.1).
func usable(record *dns.TLSA) bool {
	return (record.Usage == useTrustAnchor || record.Usage == useEndEntity) && record.Selector <= selectPublicKey &&
		record.MatchingType <= matchSHA
}

// verifyRecords accepts a chain that one of the records names. A record that names the certificate of the host itself needs no name and no
// date.
func (p TLSPolicy) verifyRecords(host string, chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return errors.New("the host showed no certificate")
	}
	for _, record := range p.Records {
		switch {
		case !usable(record):
		case record.Usage == useEndEntity:
			if matches(record, chain[0]) {
				return nil
			}
		default:
			for i, anchor := range chain {
				if !matches(record, anchor) {
					continue
				}
				roots := x509.NewCertPool()
				roots.AddCert(anchor)
				if verifyChain(chain[:max(i, 1)], roots) == nil && chain[0].VerifyHostname(host) == nil {
					return nil
				}
			}
		}
	}
	return errors.New("no TLSA record of the host matches its certificate")
}

func matches(record *dns.TLSA, certificate *x509.Certificate) bool {
	data := certificate.Raw
	if record.Selector == selectPublicKey {
		data = certificate.RawSubjectPublicKeyInfo
	}
	switch record.MatchingType {
	case matchSHA256:
		sum := sha256.Sum256(data)
		data = sum[:]
	case matchSHA:
		sum := sha512.Sum512(data)
		data = sum[:]
	}
	return strings.EqualFold(record.Certificate, fmt.Sprintf("%x", data))
}
