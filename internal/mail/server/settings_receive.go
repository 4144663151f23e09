package server

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/hostfolders"
	"github.com/parley-broker/parley/internal/mail/authenticity"
	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/receive"
)

type receiveConnector struct {
	Enabled               bool             `json:"enabled"`
	Usage                 string           `json:"usage"`
	Bindings              []string         `json:"bindings"`
	RemoteRanges          []string         `json:"remote_ranges"`
	FQDN                  string           `json:"fqdn"`
	Banner                string           `json:"banner"`
	ProtocolLog           string           `json:"protocol_log"`
	MaxConnections        int              `json:"max_connections"`
	PerSource             int              `json:"max_connections_per_source"`
	PerSourcePercent      int              `json:"max_connections_per_source_percent"`
	ConnectionRate        int              `json:"connection_rate"`
	ConnectionTimeout     int              `json:"connection_timeout"`
	InactivityTimeout     int              `json:"inactivity_timeout"`
	MessageRate           int              `json:"message_rate"`
	MaxMessageSize        int64            `json:"max_message_size"`
	SizeMode              string           `json:"size_mode"`
	MaxHeaderSize         int              `json:"max_header_size"`
	MaxRecipients         int              `json:"max_recipients"`
	MaxHops               int              `json:"max_hops"`
	MaxLocalHops          int              `json:"max_local_hops"`
	MaxProtocolErrors     int              `json:"max_protocol_errors"`
	MaxAuthFailures       int              `json:"max_authentication_failures"`
	AuthenticationLockout int              `json:"authentication_lockout"`
	Tarpit                int              `json:"tarpit"`
	MaxPipelined          int              `json:"max_pipelined_commands"`
	MaxCommandLine        int              `json:"max_command_line"`
	MaxTextLine           int              `json:"max_text_line"`
	BareLineEnds          string           `json:"bare_line_ends"`
	TLS                   string           `json:"tls"`
	ImplicitTLS           bool             `json:"implicit_tls"`
	TLSDomains            []string         `json:"tls_domains"`
	CertificateFile       string           `json:"certificate_file"`
	CertificateKeyFile    string           `json:"certificate_key_file"`
	Authentication        []string         `json:"authentication"`
	AuthenticationWithout bool             `json:"authentication_without_tls"`
	Milters               []milterSettings `json:"milters"`
	ProxyNetworks         []string         `json:"proxy_networks"`
	XClientNetworks       []string         `json:"xclient_networks"`
	PeerServers           []string         `json:"peer_server_networks"`
	Trusted               []string         `json:"trusted_networks"`
	ClientCAFile          string           `json:"client_ca_file"`
	MessageRateSource     string           `json:"message_rate_source"`
	RefuseReserved        bool             `json:"refuse_reserved_domains"`
	SPF                   string           `json:"spf"`
	DKIM                  string           `json:"dkim"`
	DMARC                 string           `json:"dmarc"`
	BlockLists            []string         `json:"block_lists"`
	PermissionGroups      []string         `json:"permission_groups"`
}

type milterSettings struct {
	Address       string `json:"address"`
	DefaultAction string `json:"default_action"`
	Timeout       int    `json:"timeout"`
}

type permissionGroup struct {
	Principals  []string `json:"principals"`
	Credentials []string `json:"credentials"`
	Rights      []string `json:"rights"`
}

type credential struct {
	AllowedSenders []string `json:"allowed_senders"`
	Enabled        bool     `json:"enabled"`
	Verifier       string   `json:"verifier"`
	Role           string   `json:"role"`
	MessageRate    int      `json:"message_rate"`
}

// permitted finds whether what a connector names on this host is below the folders given.
func (r receiveConnector) permitted(folders *hostfolders.Folders) error {
	paths := []string{r.CertificateFile, r.CertificateKeyFile, r.ClientCAFile}
	for _, m := range r.Milters {
		if network, path := milterAddress(m.Address); network == "unix" {
			paths = append(paths, path)
		}
	}
	return folders.Check(paths...)
}

// readReceiving reads what concerns receiving.
func (w *written) readReceiving(s *settings, r reading) error {
	own := w.Objects.Organization["organization"]
	s.receive = &receive.Configuration{
		AcceptedDomains: slices.Sorted(maps.Keys(w.Objects.Domains)), ReceiveBytes: own.MaxReceiveSize, SendBytes: own.MaxSendSize,
		Recipients: own.MaxRecipients, Users: make(map[string]receive.User), DefaultDomain: own.DefaultDomain,
		Node: receive.NodeLimits{Connections: own.MaxConnections, ConnectionsPerMinute: own.ConnectionRate},
	}
	for _, name := range slices.Sorted(maps.Keys(w.Objects.Receive)) {
		connector, err := w.Objects.Receive[name].connector(name, s.fqdn, w.Objects.Groups)
		if err == nil {
			err = s.receive.With(connector).Validate()
		}
		if err == nil && !connector.IsDisabled {
			err = w.Objects.Receive[name].permitted(r.folders)
		}
		if err != nil {
			if err := r.leaveOut(s, "receive connector", name, err); err != nil {
				return err
			}
			continue
		}
		connector.Limits.Hops = min(connector.Limits.Hops, cmp.Or(own.MaxHops, connector.Limits.Hops))
		connector.Limits.LocalHops = min(connector.Limits.LocalHops, cmp.Or(own.MaxLocalHops, connector.Limits.LocalHops))
		s.receive.Connectors = append(s.receive.Connectors, connector)
		s.receive.Names = append(s.receive.Names, connector.FQDN)
	}
	s.receive.Names = append(s.receive.Names, s.fqdn)
	if own.DefaultDomain != "" {
		s.receive.Names = append(s.receive.Names, own.DefaultDomain)
	}
	slices.Sort(s.receive.Names)
	s.receive.Names = slices.Compact(s.receive.Names)
	slices.SortFunc(s.receive.Connectors, func(a, b *receive.Connector) int { return strings.Compare(a.Name, b.Name) })
	s.receivers, s.credentials = w.Objects.Receive, make(map[string]credential)
	if err := w.readFolders(s, r); err != nil {
		return err
	}
	for name, written := range w.Objects.Credentials {
		if written.Enabled {
			s.credentials[name] = written
			s.receive.Users[name] = receive.User{Senders: folded(written.AllowedSenders), MessagesPerMinute: written.MessageRate}
		}
	}
	for _, written := range w.Objects.Send {
		for _, space := range written.Spaces {
			if written.Enabled && space.Pattern != "*" && space.Pattern != "--" {
				s.receive.RoutedDomains = append(s.receive.RoutedDomains, space.Pattern)
			}
		}
	}
	return nil
}

// folded gives addresses and domains as they are compared.
func folded(written []string) []string {
	all := make([]string, len(written))
	for i, one := range written {
		all[i] = message.Fold(one)
	}
	return all
}

// checks are the actions on findings, as they are written.
var checks = map[string]authenticity.Check{
	"OFF": authenticity.Off, "RECORD": authenticity.Record, "REJECT": authenticity.Enforce, "ENFORCE": authenticity.Enforce,
}

// rateSources are whose messages a rate counts, as they are written.
var rateSources = map[string]receive.RateSource{
	"IP": receive.RateOfAddress, "USER": receive.RateOfUser, "BOTH": receive.RateOfBoth,
}

// principals are the groups of peers that a permission group stands for.
var principals = map[string]receive.Group{
	"ANONYMOUS": receive.Anonymous, "AUTHENTICATED": receive.Users, "PEER_SERVER": receive.PeerServers, "PARTNER": receive.Partners,
	"IP_TRUSTED": receive.ExternallySecured,
}

func (r receiveConnector) connector(name, fqdn string, groups map[string]permissionGroup) (*receive.Connector, error) {
	c := receive.NewConnector(name, receive.Usage(strings.ToLower(r.Usage)))
	c.IsDisabled, c.FQDN, c.IsVerbose = !r.Enabled, first(r.FQDN, fqdn), r.ProtocolLog == "VERBOSE"
	if r.Banner != "" {
		c.Banner = c.FQDN + " " + r.Banner
	}
	for _, binding := range r.Bindings {
		address, err := netip.ParseAddrPort(binding)
		if err != nil {
			return nil, fmt.Errorf("binding %q: %w", binding, err)
		}
		c.Bindings = append(c.Bindings, address)
	}
	for texts, into := range map[*[]string]*[]receive.Range{
		&r.RemoteRanges: &c.RemoteRanges, &r.ProxyNetworks: &c.ProxyRanges, &r.XClientNetworks: &c.XClientRange,
		&r.PeerServers: &c.PeerServers, &r.Trusted: &c.Secured,
	} {
		*into = nil
		for _, text := range *texts {
			one, err := receive.ParseRange(text)
			if err != nil {
				return nil, err
			}
			*into = append(*into, one)
		}
	}
	c.Checks = authenticity.Checks{SPF: checks[r.SPF], DKIM: checks[r.DKIM], DMARC: checks[r.DMARC]}
	c.IsReservedRefused = r.RefuseReserved
	c.TLS, c.Implicit, c.TLSDomains = receive.TLSMode(strings.ToLower(r.TLS)), r.ImplicitTLS, r.TLSDomains
	c.Mechanisms, c.IsClearAuth = r.Authentication, r.AuthenticationWithout
	if err := admit(c, r.PermissionGroups, groups); err != nil {
		return nil, err
	}
	c.Limits = receive.Limits{
		Connections: r.MaxConnections, ConnectionsPerSource: r.PerSource, PercentPerSource: r.PerSourcePercent,
		ConnectionsPerMinute: r.ConnectionRate, MessagesPerMinute: r.MessageRate, RateOf: rateSources[r.MessageRateSource],
		ConnectionTimeout: seconds(r.ConnectionTimeout),
		InactivityTimeout: seconds(r.InactivityTimeout), MessageBytes: r.MaxMessageSize, IsSizeOff: r.SizeMode == "DISABLED",
		IsSizeUnadvertised: r.SizeMode != "ENABLED",
		HeaderBytes:        r.MaxHeaderSize, Recipients: r.MaxRecipients, Hops: r.MaxHops, LocalHops: r.MaxLocalHops,
		ProtocolErrors: r.MaxProtocolErrors, FailedAuth: r.MaxAuthFailures, LockoutFailures: receive.DefaultLimits().LockoutFailures,
		LockoutTime: seconds(r.AuthenticationLockout), Tarpit: seconds(r.Tarpit), PipelinedCommands: r.MaxPipelined,
		TextLine: r.MaxTextLine, CommandLine: r.MaxCommandLine, IsNormalizing: r.BareLineEnds == "NORMALIZE",
	}
	return c, nil
}
