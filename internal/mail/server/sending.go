package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/hostfolders"
	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/mtasts"
	"github.com/parley-broker/parley/internal/mail/nexthop"
	"github.com/parley-broker/parley/internal/mail/receive"
	"github.com/parley-broker/parley/internal/mail/send"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

type sendConnector struct {
	Spaces []struct {
		Pattern string `json:"pattern"`
	} `json:"address_spaces"`
	Enabled        bool        `json:"enabled"`
	Routing        string      `json:"routing"`
	Smart          []smartHost `json:"smart_hosts"`
	SmartOrder     string      `json:"smart_host_order"`
	Port           int         `json:"port"`
	Authentication string      `json:"authentication"`
	Username       string      `json:"username"`
	Password       string      `json:"password"`
	Certificate    string      `json:"certificate_file"`
	CertificateKey string      `json:"certificate_key_file"`
	TLS            string      `json:"tls"`
	Implicit       bool        `json:"implicit_tls"`
	TLSDomain      string      `json:"tls_domain"`
	MTASTS         bool        `json:"mta_sts"`
	Each           int         `json:"max_messages_per_connection"`
	MaxConnections int         `json:"max_connections"`
	MaxRecipients  int         `json:"max_recipients_per_message"`
	Inactive       int         `json:"inactivity_timeout"`
	Connect        int         `json:"connect_timeout"`
	Helo           string      `json:"helo"`
	ForceHelo      bool        `json:"force_helo"`
	Sources        []string    `json:"source_addresses"`
	Nodes          []string    `json:"source_nodes"`
	DNSServers     []string    `json:"dns_servers"`
	Rates          []rate      `json:"rates"`
	Sign           bool        `json:"sign"`
	KeepHeaders    []string    `json:"keep_headers"`
}

type smartHost struct {
	Host   string `json:"host"`
	Port   int    `json:"port"`
	Weight int    `json:"weight"`
}

type rate struct {
	Key string `json:"key"`
}

// leaving lists the changes to messages that leave by a connector.
type leaving struct {
	signs bool
	// keeps says which of the fields stay in which our own nodes write to each other.
	keeps message.Trusted
}

// sending holds the settings that the parts that send take from a configuration.
type sending struct {
	connectors map[string]send.Connector
	leaving    map[string]leaving
	// nodes are the daemons that use a connector, where not all do.
	nodes map[string][]string
	// certificates are the files of those that connectors which are enabled show.
	certificates map[string]receive.CertificateFiles
	// resolvers are those of connectors with name servers of their own, by these.
	resolvers map[string]*nexthop.Resolver
}

// sending reads send connectors. Resolvers of the configuration that is in use are used on, with what they know.
func (r reading) sending(all *settings, connectors map[string]sendConnector) (*sending, error) {
	s := &sending{
		connectors: make(map[string]send.Connector), leaving: make(map[string]leaving), nodes: make(map[string][]string),
		resolvers: make(map[string]*nexthop.Resolver), certificates: make(map[string]receive.CertificateFiles),
	}
	for name, written := range connectors {
		if all.kinds[written.Routing].NextHopIsDomain {
			written.Smart = nil
		}
		connector, err := r.connector(written, all.fqdn, s.resolvers)
		if err != nil {
			if err := r.leaveOut(all, "send connector", name, err); err != nil {
				return nil, err
			}
			if errors.Is(err, hostfolders.ErrNotPermitted) {
				all.passed = append(all.passed, all.kinds.queuesOf(object{"send connector", name})...)
			}
			continue
		}
		s.connectors[name] = connector
		s.leaving[name] = leaving{signs: written.Sign, keeps: message.Trusted{
			Routing:      slices.Contains(written.KeepHeaders, "ROUTING"),
			Organization: slices.Contains(written.KeepHeaders, "ORGANIZATION"),
			Forest:       slices.Contains(written.KeepHeaders, "FOREST"),
		}}
		if written.Enabled && written.Certificate != "" {
			s.certificates[name] = receive.CertificateFiles{
				Certificate: written.Certificate, Key: written.CertificateKey, Folders: r.folders,
			}
		}
		if len(written.Nodes) > 0 {
			s.nodes[name] = written.Nodes
		}
	}
	return s, nil
}

// connector makes a connector of what is written, with its resolver where it has name servers of its own. An error is why it cannot be
// used.
func (r reading) connector(written sendConnector, fqdn string, resolvers map[string]*nexthop.Resolver) (send.Connector, error) {
	connector, err := written.connector(fqdn)
	if err == nil && written.Enabled && r.isOurs(written.Nodes) {
		err = r.folders.Check(written.Certificate, written.CertificateKey)
	}
	if err != nil {
		return send.Connector{}, err
	}
	connector.RootCAs = r.roots
	if strings.Join(written.DNSServers, " ") == "" {
		return connector, nil
	}
	resolver, err := r.resolver(written.DNSServers, resolvers)
	if err != nil {
		return send.Connector{}, err
	}
	connector.Resolver = resolver
	return connector, nil
}

// resolver is the one that asks some name servers: that of a connector before, that of the configuration in use, or a new one. It is added
// to the resolvers.
func (r reading) resolver(servers []string, resolvers map[string]*nexthop.Resolver) (*nexthop.Resolver, error) {
	key := strings.Join(servers, " ")
	resolver := resolvers[key]
	if resolver == nil && r.used != nil {
		resolver = r.used.sending.resolvers[key]
	}
	if resolver == nil {
		made, err := nexthop.New(nexthop.Config{Servers: withPorts(servers, "53")})
		if err != nil {
			return nil, err
		}
		resolver = made
	}
	resolvers[key] = resolver
	return resolver, nil
}

// passedBy are the beginnings of queues whose connectors or stores are used by other daemons than this one, which has some names.
func (s *settings) passedBy(names ...string) []string {
	beginnings := slices.Clone(s.passed)
	for connector := range s.sending.nodes {
		if !s.sending.isUsedBy(connector, names...) {
			beginnings = append(beginnings, s.kinds.queuesOf(object{"send connector", connector})...)
		}
	}
	return beginnings
}

// isUsedBy is whether a daemon that has some names uses a connector.
func (s *sending) isUsedBy(connector string, names ...string) bool {
	nodes, isOfSome := s.nodes[connector]
	return !isOfSome || slices.ContainsFunc(nodes, func(node string) bool { return slices.Contains(names, node) })
}

// withPorts adds the usual port to addresses without one.
func withPorts(servers []string, port string) []string {
	completed := make([]string, len(servers))
	for i, server := range servers {
		if _, _, err := net.SplitHostPort(server); err != nil {
			server = net.JoinHostPort(strings.Trim(server, "[]"), port)
		}
		completed[i] = server
	}
	return completed
}

func (w sendConnector) connector(fqdn string) (send.Connector, error) {
	c := send.Connector{
		Port: w.Port, ImplicitTLS: w.Implicit, Hello: first(w.Helo, fqdn), OldHello: w.ForceHelo, Recipients: w.MaxRecipients,
		User: w.Username, Password: w.Password, DANE: w.TLS == "DANE", UsesMTASTS: w.MTASTS,
		Limits:   send.Limits{MessagesEach: w.Each, Connections: w.MaxConnections, IsRated: len(w.Rates) > 0},
		Timeouts: send.Timeouts{Connect: seconds(w.Connect), Command: seconds(w.Inactive), Data: seconds(w.Inactive)},
	}
	if w.Authentication != "NONE" {
		c.Mechanism = w.Authentication
	}
	c.Limits.IsRatedByHost = slices.ContainsFunc(w.Rates, func(r rate) bool {
		return slices.Contains([]string{"HOST", "REMOTE_IP", "SOURCE"}, strings.ToUpper(r.Key))
	})
	if err := w.secure(&c); err != nil {
		return send.Connector{}, err
	}
	c.Order = map[string]send.HostOrder{"WEIGHTED": send.WeightedOrder, "LISTED": send.ListedOrder}[w.SmartOrder]
	for _, host := range w.Smart {
		name := host.Host
		if host.Port != 0 {
			name = fmt.Sprintf("%s:%d", name, host.Port)
		}
		c.SmartHosts = append(c.SmartHosts, send.SmartHost{Name: name, Weight: host.Weight})
	}
	for _, source := range w.Sources {
		address, err := netip.ParseAddr(source)
		if err != nil {
			return send.Connector{}, fmt.Errorf("source address %q: %w", source, err)
		}
		if address.Is4() {
			c.Source4 = append(c.Source4, address)
		} else {
			c.Source6 = append(c.Source6, address)
		}
	}
	return c, nil
}

// secure says how connections are secured.
func (w sendConnector) secure(c *send.Connector) error {
	switch w.TLS {
	case "DOMAIN":
		c.TLS, c.Names = send.TLSVerified, []string{w.TLSDomain}
	case "CERTIFICATE":
		c.TLS = send.TLSVerified
	case "DANE":
		c.TLS = send.TLSOpportunistic
	default:
		mode, err := send.ParseTLSMode(w.TLS)
		if err != nil {
			return fmt.Errorf("read its TLS mode: %w", err)
		}
		c.TLS = mode
	}
	return nil
}

// policyKeeper keeps MTA-STS policies in the database, so that they outlast the daemon.
type policyKeeper struct{ pool *pgxpool.Pool }

var _ mtasts.Keeper = policyKeeper{}

// Kept is the policy of a domain, or nil.
func (k policyKeeper) Kept(ctx context.Context, domain string) (*mtasts.Policy, error) {
	kept, err := mailstore.KeptPolicy(ctx, k.pool, domain)
	if err != nil || kept == nil {
		return nil, err
	}
	var policy mtasts.Policy
	if err := json.Unmarshal(kept, &policy); err != nil {
		return nil, fmt.Errorf("read the kept policy of %s: %w", domain, err)
	}
	return &policy, nil
}

// Keep keeps a policy.
func (k policyKeeper) Keep(ctx context.Context, domain string, policy mtasts.Policy) error {
	written, err := json.Marshal(policy)
	if err != nil {
		return fmt.Errorf("write the policy of %s: %w", domain, err)
	}
	return mailstore.KeepPolicy(ctx, k.pool, domain, written, policy.Until)
}

// policies are the demands of domains on hosts that send to them.
func (s *Server) policies() func(ctx context.Context, domain string) *send.DomainPolicy {
	known := &mtasts.Policies{
		Text: s.resolver.Text, Client: s.config.PolicyClient, Keeper: policyKeeper{s.config.Pool}, Logger: s.config.Logger,
	}
	if known.Client == nil {
		known.Client = &http.Client{Timeout: time.Minute}
	}
	return func(ctx context.Context, domain string) *send.DomainPolicy {
		policy := known.Of(ctx, domain)
		if policy == nil {
			return nil
		}
		return &send.DomainPolicy{Hosts: policy.Hosts, Enforce: policy.Mode == mtasts.ModeEnforce}
	}
}
