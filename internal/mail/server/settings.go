package server

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/mail/receive"
	"github.com/parley-broker/parley/internal/mail/send"
	"github.com/parley-broker/parley/internal/mail/signing"
)

// settings are the configuration, as the parts of mail take it.
type settings struct {
	version    int64
	fqdn       string
	postmaster string
	// reportLimit is the size from which on a report returns headers alone.
	reportLimit int64
	// reportCopies are codes whose reports are copied to the postmaster.
	reportCopies []string
	receive      *receive.Configuration
	sending      *sending
	stores       map[string]send.MailboxStore
	// keys sign for each domain.
	keys      map[string][]signing.Key
	verifiers map[string]string
}

// The objects of the configuration, by kind, as parley_mail._p_configuration gives them. Durations are in seconds.
type written struct {
	Version int64 `json:"version"`
	Ranges  []struct {
		Connector, Binding, Low, High string
	} `json:"ranges"`
	Objects struct {
		Organization map[string]organization     `json:"organization"`
		Receive      map[string]receiveConnector `json:"receive connector"`
		Send         map[string]sendConnector    `json:"send connector"`
		Groups       map[string]permissionGroup  `json:"permission group"`
		Domains      map[string]struct{}         `json:"accepted domain"`
		Stores       map[string]mailboxStore     `json:"mailbox store"`
		Keys         map[string]signingKey       `json:"signing key"`
		Credentials  map[string]credential       `json:"credential"`
	} `json:"objects"`
}

type organization struct {
	DefaultDomain  string   `json:"default_domain"`
	FQDN           string   `json:"fqdn"`
	Postmaster     string   `json:"postmaster"`
	DSNReturnLimit int64    `json:"dsn_return_limit"`
	DSNCopies      []string `json:"dsn_copies"`
}

type receiveConnector struct {
	Enabled               bool              `json:"enabled"`
	Usage                 string            `json:"usage"`
	Bindings              []string          `json:"bindings"`
	RemoteRanges          []string          `json:"remote_ranges"`
	FQDN                  string            `json:"fqdn"`
	Banner                string            `json:"banner"`
	ProtocolLog           string            `json:"protocol_log"`
	MaxConnections        int               `json:"max_connections"`
	PerSource             int               `json:"max_connections_per_source"`
	PerSourcePercent      int               `json:"max_connections_per_source_percent"`
	ConnectionRate        int               `json:"connection_rate"`
	ConnectionTimeout     int               `json:"connection_timeout"`
	InactivityTimeout     int               `json:"inactivity_timeout"`
	MessageRate           int               `json:"message_rate"`
	MaxMessageSize        int64             `json:"max_message_size"`
	SizeMode              string            `json:"size_mode"`
	MaxHeaderSize         int               `json:"max_header_size"`
	MaxRecipients         int               `json:"max_recipients"`
	MaxHops               int               `json:"max_hops"`
	MaxLocalHops          int               `json:"max_local_hops"`
	MaxProtocolErrors     int               `json:"max_protocol_errors"`
	MaxAuthFailures       int               `json:"max_authentication_failures"`
	AuthenticationLockout int               `json:"authentication_lockout"`
	Tarpit                int               `json:"tarpit"`
	MaxPipelined          int               `json:"max_pipelined_commands"`
	MaxCommandLine        int               `json:"max_command_line"`
	MaxTextLine           int               `json:"max_text_line"`
	BareLineEnds          string            `json:"bare_line_ends"`
	TLS                   string            `json:"tls"`
	ImplicitTLS           bool              `json:"implicit_tls"`
	TLSDomains            []string          `json:"tls_domains"`
	CertificateFile       string            `json:"certificate_file"`
	CertificateKeyFile    string            `json:"certificate_key_file"`
	Authentication        []string          `json:"authentication"`
	AuthenticationWithout bool              `json:"authentication_without_tls"`
	Milters               []json.RawMessage `json:"milters"`
	SPF                   string            `json:"spf"`
	DMARC                 string            `json:"dmarc"`
	BlockLists            []string          `json:"block_lists"`
	PermissionGroups      []string          `json:"permission_groups"`
}

type permissionGroup struct {
	Principals  []string `json:"principals"`
	Credentials []string `json:"credentials"`
	Rights      []string `json:"rights"`
}

type mailboxStore struct {
	Driver          string `json:"driver"`
	Address         string `json:"address"`
	FullIsPermanent bool   `json:"full_is_permanent"`
	MaxConnections  int    `json:"max_connections"`
}

type signingKey struct {
	Domain     string `json:"domain"`
	Selector   string `json:"selector"`
	PrivateKey string `json:"private_key"`
	Enabled    bool   `json:"enabled"`
}

type credential struct {
	AllowedSenders []string `json:"allowed_senders"`
	Enabled        bool     `json:"enabled"`
	Verifier       string   `json:"verifier"`
}

// readSettings reads a configuration. What cannot be used is an error: nothing of a configuration is used in part. Of used, which may be
// nil, is kept what has not changed.
func readSettings(text json.RawMessage, host string, roots *x509.CertPool, used *sending) (*settings, error) {
	var all written
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read the configuration of mail: %w", err)
	}
	if err := all.refuseUnkept(); err != nil {
		return nil, err
	}
	own := all.Objects.Organization["organization"]
	s := &settings{
		version: all.Version, fqdn: first(own.FQDN, own.DefaultDomain, host), reportLimit: own.DSNReturnLimit,
		reportCopies: own.DSNCopies,
		stores:       make(map[string]send.MailboxStore), keys: make(map[string][]signing.Key),
		verifiers: make(map[string]string),
	}
	s.postmaster = first(own.Postmaster, "postmaster@"+first(own.DefaultDomain, s.fqdn))
	s.receive = &receive.Configuration{AcceptedDomains: slices.Sorted(maps.Keys(all.Objects.Domains))}
	for name, written := range all.Objects.Receive {
		connector, err := written.connector(name, s.fqdn, all.Objects.Groups)
		if err != nil {
			return nil, fmt.Errorf("receive connector %q: %w", name, err)
		}
		s.receive.Connectors = append(s.receive.Connectors, connector)
	}
	slices.SortFunc(s.receive.Connectors, func(a, b *receive.Connector) int { return strings.Compare(a.Name, b.Name) })
	var err error
	if s.sending, err = readSending(all.Objects.Send, s.fqdn, roots, used); err != nil {
		return nil, err
	}
	for name, written := range all.Objects.Stores {
		s.stores[name] = written.store(s.fqdn)
	}
	for name, written := range all.Objects.Keys {
		if !written.Enabled {
			continue
		}
		signer, err := signing.ParseKey([]byte(written.PrivateKey))
		if err != nil {
			return nil, fmt.Errorf("signing key %q: %w", name, err)
		}
		s.keys[written.Domain] = append(s.keys[written.Domain], signing.Key{
			Domain: written.Domain, Selector: written.Selector, Signer: signer,
		})
	}
	for name, written := range all.Objects.Credentials {
		if written.Enabled && written.Verifier != "" {
			s.verifiers[name] = written.Verifier
		}
	}
	return s, nil
}

func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// principals are the groups of peers that a permission group stands for.
var principals = map[string]receive.Group{
	"ANONYMOUS": receive.Anonymous, "AUTHENTICATED": receive.Users, "PEER_SERVER": receive.PeerServers, "PARTNER": receive.Partners,
	"IP_TRUSTED": receive.ExternallySecured,
}

func (r receiveConnector) connector(name, fqdn string, groups map[string]permissionGroup) (*receive.Connector, error) {
	c := receive.NewConnector(name, receive.Usage(strings.ToLower(r.Usage)))
	c.IsDisabled, c.FQDN, c.Banner, c.IsVerbose = !r.Enabled, first(r.FQDN, fqdn), r.Banner, r.ProtocolLog == "VERBOSE"
	for _, binding := range r.Bindings {
		address, err := netip.ParseAddrPort(binding)
		if err != nil {
			return nil, fmt.Errorf("binding %q: %w", binding, err)
		}
		c.Bindings = append(c.Bindings, address)
	}
	c.RemoteRanges = nil
	for _, remote := range r.RemoteRanges {
		prefix, err := netip.ParsePrefix(remote)
		if err != nil {
			return nil, fmt.Errorf("remote range %q: %w", remote, err)
		}
		c.RemoteRanges = append(c.RemoteRanges, prefix)
	}
	c.TLS, c.Implicit, c.TLSDomains = receive.TLSMode(strings.ToLower(r.TLS)), r.ImplicitTLS, r.TLSDomains
	c.Mechanisms, c.IsClearAuth = r.Authentication, r.AuthenticationWithout
	if err := admit(c, r.PermissionGroups, groups); err != nil {
		return nil, err
	}
	c.Limits = receive.Limits{
		Connections: r.MaxConnections, ConnectionsPerSource: r.PerSource, PercentPerSource: r.PerSourcePercent,
		ConnectionsPerMinute: r.ConnectionRate, MessagesPerMinute: r.MessageRate, ConnectionTimeout: seconds(r.ConnectionTimeout),
		InactivityTimeout: seconds(r.InactivityTimeout), MessageBytes: r.MaxMessageSize, IsSizeUnadvertised: r.SizeMode != "ENABLED",
		HeaderBytes: r.MaxHeaderSize, Recipients: r.MaxRecipients, Hops: r.MaxHops, LocalHops: r.MaxLocalHops,
		ProtocolErrors: r.MaxProtocolErrors, FailedAuth: r.MaxAuthFailures, LockoutFailures: receive.DefaultLimits().LockoutFailures,
		LockoutTime: seconds(r.AuthenticationLockout), Tarpit: seconds(r.Tarpit), PipelinedCommands: r.MaxPipelined,
		TextLine: r.MaxTextLine, CommandLine: r.MaxCommandLine, IsNormalizing: r.BareLineEnds == "NORMALIZE",
	}
	return c, nil
}

func (w mailboxStore) store(fqdn string) send.MailboxStore {
	limits := send.Limits{Connections: w.MaxConnections}
	if w.Driver == "MAILDIR" {
		root, path, found := strings.Cut(w.Address, "{")
		if found {
			path = "{" + path
		}
		return send.MailboxStore{Root: root, Path: path, Limits: limits}
	}
	network, address := "tcp", w.Address
	if path, is := strings.CutPrefix(w.Address, "unix:"); is {
		network, address = "unix", path
	}
	return send.MailboxStore{Network: network, Address: address, Hello: fqdn, FullIsPermanent: w.FullIsPermanent, Limits: limits}
}
