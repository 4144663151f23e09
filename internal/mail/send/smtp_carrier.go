package send

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/emersion/go-sasl"

	"github.com/parley-broker/parley/internal/mail/nexthop"
)

// Connector is a send connector: how hosts are reached (spec section 11.1).
type Connector struct {
	// SmartHosts take the mail of all domains, tried in random order; none means the exchangers of each domain. [address] is a literal.
	SmartHosts []string
	// Port is that of the hosts; 0 means 25.
	Port int
	// ImplicitTLS, TLS, Names and DANE say how connections are secured. With DANE, hosts whose records are signed must show what these
	// name.
	ImplicitTLS bool
	TLS         TLSMode
	Names       []string
	DANE        bool
	// Hello is the name by which this host introduces itself.
	Hello string
	// Source4 and Source6 are the addresses from which to connect; zero values leave it to the system.
	Source4, Source6 netip.Addr
	// User and Password prove who we are, once the connection is encrypted; "" for nothing.
	User, Password string
	Certificate    *tls.Certificate
	Limits         Limits
	Timeouts       Timeouts
}

// SMTPCarrier reaches hosts by SMTP.
type SMTPCarrier struct {
	Resolver *nexthop.Resolver
	// Connector is a connector by its name.
	Connector func(name string) (Connector, bool)
	// Self is whether a name is one of this host's.
	Self func(name string) bool
	// Domain is a stricter policy that a domain publishes (MTA-STS), or nil.
	Domain func(ctx context.Context, domain string) *DomainPolicy
	Logger *slog.Logger
}

// DomainPolicy is what a domain asks of those who send to it (RFC 8461).
type DomainPolicy struct {
	// Hosts are the names of its exchangers; "*.example.com" stands for names below a domain, one label deep.
	Hosts []string
	// Enforce is whether a host that does not prove its name gets nothing; otherwise it is only logged.
	Enforce bool
}

var _ Carrier = (*SMTPCarrier)(nil)

// Limits are those of the connector.
func (s *SMTPCarrier) Limits(hop Hop) Limits {
	connector, _ := s.Connector(hop.Connector)
	return connector.Limits
}

// Connect tries the hosts of a hop in their order, and each of their addresses, until one takes the connection.
func (s *SMTPCarrier) Connect(ctx context.Context, hop Hop) (Way, error) {
	connector, known := s.Connector(hop.Connector)
	if !known {
		return nil, &OpenError{Result{Enhanced: "4.3.5", Text: fmt.Sprintf("the send connector %s is gone", hop.Connector), HostFailed: true}}
	}
	hosts, policy, err := s.hosts(ctx, hop, connector)
	if err != nil {
		return nil, &OpenError{resultOfError(hop.Name, err)}
	}
	last := &OpenError{Result{Enhanced: "4.4.1", Text: "no host of " + hop.Name + " answers", Host: hop.Name, HostFailed: true}}
	for _, host := range hosts {
		way, err := s.connectHost(ctx, connector, host, policy)
		if err == nil {
			return way, nil
		}
		if failed, is := errors.AsType[*OpenError](err); is {
			last = failed
		} else {
			last = &OpenError{resultOfError(host.Name, err)}
		}
		if ctx.Err() != nil {
			break
		}
	}
	last.Result.HostFailed = true
	return nil, last
}

// hosts are those to try, and what the domain asks of them.
func (s *SMTPCarrier) hosts(ctx context.Context, hop Hop, connector Connector) ([]nexthop.Host, *DomainPolicy, error) {
	if len(connector.SmartHosts) > 0 {
		hosts := make([]nexthop.Host, len(connector.SmartHosts))
		for i, name := range connector.SmartHosts {
			hosts[i] = nexthop.Host{Name: name}
		}
		rand.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
		return hosts, nil, nil
	}
	hosts, err := s.Resolver.Exchangers(ctx, hop.Name, s.Self)
	if err != nil {
		return nil, nil, fmt.Errorf("find the exchangers of %s: %w", hop.Name, err)
	}
	var policy *DomainPolicy
	if s.Domain != nil {
		policy = s.Domain(ctx, hop.Name)
	}
	if policy != nil && policy.Enforce {
		hosts = slices.DeleteFunc(hosts, func(host nexthop.Host) bool { return !named(policy.Hosts, host.Name) })
		if len(hosts) == 0 {
			return nil, nil, &handshakeError{fmt.Errorf("no exchanger of %s is one that its MTA-STS policy names", hop.Name)}
		}
	}
	return hosts, policy, nil
}

// named is whether a name is among patterns.
func named(patterns []string, name string) bool {
	_, parent, _ := strings.Cut(name, ".")
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if wanted, is := strings.CutPrefix(pattern, "*."); is {
			return strings.EqualFold(wanted, parent)
		}
		return strings.EqualFold(pattern, name)
	})
}

// connectHost tries the addresses of a host.
func (s *SMTPCarrier) connectHost(
	ctx context.Context, connector Connector, host nexthop.Host, policy *DomainPolicy,
) (*Connection, error) {
	name, port := host.Name, connector.Port
	if port == 0 {
		port = 25
	}
	if only, own, err := net.SplitHostPort(name); err == nil {
		name = only
		if port, err = strconv.Atoi(own); err != nil {
			return nil, fmt.Errorf("%q is no port", own)
		}
	}
	addresses, secure, err := s.Resolver.Addresses(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", name, err)
	}
	tlsPolicy, err := s.tlsPolicy(ctx, connector, policy, host, secure, port)
	if err != nil {
		return nil, err
	}
	var last error
	for _, address := range addresses {
		target := Target{
			Host: strings.Trim(name, "[]"), Address: netip.AddrPortFrom(address, uint16(port)).String(),
			ImplicitTLS: connector.ImplicitTLS, TLS: tlsPolicy, Hello: connector.Hello, Source: connector.source(address),
			Certificate: connector.Certificate, Timeouts: connector.Timeouts, Authenticate: connector.authenticate(),
		}
		connection, err := Open(ctx, target)
		if err == nil {
			return connection, nil
		}
		last = err
		s.Logger.DebugContext(ctx, "a host takes no connection", "host", name, "address", target.Address, "error", err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

// tlsPolicy is what a connection has to prove: by the connector, by signed records, which count more than a policy by MTA-STS, or by
// that.
func (s *SMTPCarrier) tlsPolicy(
	ctx context.Context, connector Connector, policy *DomainPolicy, host nexthop.Host, secure bool, port int,
) (TLSPolicy, error) {
	asked := TLSPolicy{Mode: connector.TLS, Names: connector.Names}
	if connector.User != "" && asked.Mode == TLSOpportunistic {
		// A password does not go in clear unless the connector says that nothing is encrypted.
		asked.Mode = TLSRequired
	}
	if connector.DANE && secure && (host.Secure || len(connector.SmartHosts) > 0) {
		records, err := s.Resolver.TLSA(ctx, host.Name, port)
		if err != nil {
			return TLSPolicy{}, fmt.Errorf("find which certificate %s shows: %w", host.Name, err)
		}
		if slices.ContainsFunc(records, usable) {
			return TLSPolicy{Mode: TLSDANE, Records: records}, nil
		}
		if len(records) > 0 {
			return TLSPolicy{Mode: TLSRequired}, nil
		}
	}
	if policy != nil && policy.Enforce && asked.Mode != TLSVerified {
		return TLSPolicy{Mode: TLSVerified}, nil
	}
	return asked, nil
}

func (c Connector) source(address netip.Addr) netip.Addr {
	if address.Is4() {
		return c.Source4
	}
	return c.Source6
}

func (c Connector) authenticate() func() sasl.Client {
	if c.User == "" {
		return nil
	}
	return func() sasl.Client { return sasl.NewPlainClient("", c.User, c.Password) }
}
