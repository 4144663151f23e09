package send

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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
	// SmartHosts take the mail of all domains, tried in Order; none means the exchangers of each domain. [address] is a literal.
	SmartHosts []SmartHost
	Order      HostOrder
	// Port is that of the hosts; 0 means 25.
	Port int
	// ImplicitTLS, TLS, Names and DANE say how connections are secured. With DANE, hosts whose records are signed must show what these
	// name.
	ImplicitTLS bool
	TLS         TLSMode
	Names       []string
	DANE        bool
	// Hello is the name by which this host introduces itself, by HELO with OldHello.
	Hello    string
	OldHello bool
	// Recipients bounds those of one transaction; 0 means as many as a message has.
	Recipients int
	// Resolver finds hosts; nil means that of the carrier.
	Resolver *nexthop.Resolver
	// UsesMTASTS is whether policies that domains publish are held.
	UsesMTASTS bool
	// Source4 and Source6 are the addresses from which to connect, one of them at random; none leaves it to the system.
	Source4, Source6 []netip.Addr
	// Mechanism is PLAIN, LOGIN or SCRAM-SHA-256, by which User and Password prove who we are, or EXTERNAL, by which Certificate does,
	// for User where there is one; "" for nothing. PLAIN, LOGIN and EXTERNAL are used once the connection is encrypted.
	Mechanism, User, Password string
	// Certificate gives the certificate for hosts that ask for one; nil for none.
	Certificate func() (*tls.Certificate, error)
	// RootCAs are trusted; nil means those of the machine.
	RootCAs  *x509.CertPool
	Limits   Limits
	Timeouts Timeouts
}

// SmartHost is a host that takes the mail of all domains: a name or [address], with a port of its own or not. Of hosts in the order
// weighted one of twice the weight comes first twice as often.
type SmartHost struct {
	Name   string
	Weight int
}

// HostOrder says in which order smart hosts are tried.
type HostOrder int

// The orders.
const (
	RandomOrder HostOrder = iota
	WeightedOrder
	ListedOrder
)

// SMTPCarrier reaches hosts by SMTP.
type SMTPCarrier struct {
	Resolver *nexthop.Resolver
	// Connector is a connector by its name.
	Connector func(name string) (Connector, bool)
	// Self is whether a name is one of this host's.
	Self func(name string) bool
	// Own reports whether a daemon of the same queues receives at an address: mail that is sent there comes back. Nil means nobody does.
	Own func(address netip.AddrPort) bool
	// Domain is a stricter policy that a domain publishes (MTA-STS), or nil.
	Domain func(ctx context.Context, domain string) *DomainPolicy
	Logger *slog.Logger
}

// DomainPolicy is the policy of a domain for hosts that send to it (RFC 8461).
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
	connector, known := awaitKnown(ctx, s.Connector, hop.Connector)
	if !known {
		return nil, &OpenError{Result{Enhanced: "4.3.5", Text: fmt.Sprintf("the send connector %s is gone", hop.Connector), HostFailed: true}}
	}
	hosts, policy, err := s.hosts(ctx, hop, connector)
	if err != nil {
		return nil, &OpenError{resultOfError(hop.Name, err)}
	}
	last := &OpenError{resultOfError(hop.Name, leadBack(hop, connector))}
	mayPass := false
	for i, host := range hosts {
		if s.leadsBack(ctx, connector, hosts, i) {
			s.Logger.WarnContext(ctx, "mail for a next hop would come back to this server", "hop", hop.Name, "host", host.Name)
			if len(connector.SmartHosts) > 0 {
				continue
			}
			break
		}
		way, err := s.connectHost(ctx, connector, host, policy)
		if err == nil {
			return way, nil
		}
		failed, is := errors.AsType[*OpenError](err)
		if !is {
			failed = &OpenError{resultOfError(host.Name, err)}
		}
		if unresolved, is := errors.AsType[*nexthop.Error](err); is && unresolved.Permanent && len(connector.SmartHosts) == 0 {
			// A domain none of whose hosts has an address takes no mail. A smart host without one is a mistake of ours, and what waits for it
			// goes on once that is mended.
			if !mayPass {
				last = failed
			}
			continue
		}
		last, mayPass = failed, true
		last.Result.HostFailed = true
		if last.Result.Class == Failed && last.Result.Code == 0 {
			last.Result.Class, last.Result.Enhanced = Deferred, "4"+last.Result.Enhanced[1:]
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

// hosts are those to try, and what the domain asks of them.
func (s *SMTPCarrier) hosts(ctx context.Context, hop Hop, connector Connector) ([]nexthop.Host, *DomainPolicy, error) {
	if len(connector.SmartHosts) > 0 {
		return connector.smartHosts(), nil, nil
	}
	hosts, err := s.resolver(connector).Exchangers(ctx, hop.Name, s.Self)
	if err != nil {
		return nil, nil, fmt.Errorf("find the exchangers of %s: %w", hop.Name, err)
	}
	var policy *DomainPolicy
	if s.Domain != nil && connector.UsesMTASTS {
		policy = s.Domain(ctx, hop.Name)
	}
	return hosts, policy, nil
}

func (s *SMTPCarrier) resolver(connector Connector) *nexthop.Resolver {
	if connector.Resolver != nil {
		return connector.Resolver
	}
	return s.Resolver
}

// smartHosts are the smart hosts in the order in which they are tried now.
func (c Connector) smartHosts() []nexthop.Host {
	left := slices.Clone(c.SmartHosts)
	if c.Order == RandomOrder {
		rand.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	}
	hosts := make([]nexthop.Host, 0, len(left))
	for len(left) > 0 {
		next := 0
		if c.Order == WeightedOrder {
			sum := 0
			for _, host := range left {
				sum += max(host.Weight, 1)
			}
			for at := rand.IntN(sum); at >= max(left[next].Weight, 1); next++ {
				at -= max(left[next].Weight, 1)
			}
		}
		hosts = append(hosts, nexthop.Host{Name: left[next].Name})
		left = slices.Delete(left, next, next+1)
	}
	return hosts
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

// endOf is the name of a host without the port that a smart host may have, and the port.
func (c Connector) endOf(host nexthop.Host) (name string, port int, err error) {
	name, port = host.Name, c.Port
	if port == 0 {
		port = 25
	}
	if only, own, err := net.SplitHostPort(name); err == nil {
		name = only
		if port, err = strconv.Atoi(own); err != nil {
			return "", 0, fmt.Errorf("%q is no port", own)
		}
	}
	return name, port, nil
}

// connectHost tries the addresses of a host.
func (s *SMTPCarrier) connectHost(
	ctx context.Context, connector Connector, host nexthop.Host, policy *DomainPolicy,
) (*Connection, error) {
	name, port, err := connector.endOf(host)
	if err != nil {
		return nil, err
	}
	addresses, secure, err := s.resolver(connector).Addresses(ctx, name)
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
			ImplicitTLS: connector.ImplicitTLS, TLS: tlsPolicy, Hello: connector.Hello, OldHello: connector.OldHello,
			Recipients: connector.Recipients, Source: connector.source(address),
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

// tlsPolicy names the proof that a connection needs: by the connector, by signed records, which count more than a policy by MTA-STS, or by
// that.
func (s *SMTPCarrier) tlsPolicy(
	ctx context.Context, connector Connector, policy *DomainPolicy, host nexthop.Host, secure bool, port int,
) (TLSPolicy, error) {
	asked := TLSPolicy{Mode: connector.TLS, Names: connector.Names, RootCAs: connector.RootCAs}
	if slices.Contains([]string{"PLAIN", "LOGIN", "EXTERNAL"}, connector.Mechanism) && asked.Mode == TLSOpportunistic {
		// A password does not go in clear unless the connector says that nothing is encrypted, and in clear a certificate proves nothing.
		asked.Mode = TLSRequired
	}
	if connector.DANE && secure && (host.Secure || len(connector.SmartHosts) > 0) {
		records, err := s.resolver(connector).TLSA(ctx, strings.TrimSuffix(host.Name, ":"+strconv.Itoa(port)), port)
		if err != nil {
			return TLSPolicy{}, fmt.Errorf("find which certificate %s shows: %w", host.Name, err)
		}
		if slices.ContainsFunc(records, usable) {
			return TLSPolicy{Mode: TLSDANE, Records: records}, nil
		}
		if len(records) > 0 && asked.Mode != TLSVerified {
			// Records that all say nothing to SMTP ask for TLS (RFC 7672 section 2.2). They prove nothing, so that a policy still counts.
			asked.Mode = TLSRequired
		}
	}
	switch {
	case policy == nil || named(policy.Hosts, host.Name):
	case policy.Enforce:
		return TLSPolicy{}, &handshakeError{fmt.Errorf("the host %s is none that the MTA-STS policy of the domain names", host.Name)}
	default:
		s.Logger.WarnContext(ctx, "a host is none that the MTA-STS policy of its domain names; the policy is for tests", "host", host.Name)
	}
	if policy != nil && policy.Enforce && asked.Mode != TLSVerified {
		return TLSPolicy{Mode: TLSVerified, RootCAs: connector.RootCAs}, nil
	}
	return asked, nil
}

func (c Connector) source(address netip.Addr) netip.Addr {
	sources := c.Source6
	if address.Is4() {
		sources = c.Source4
	}
	if len(sources) == 0 {
		return netip.Addr{}
	}
	return sources[rand.IntN(len(sources))]
}

func (c Connector) authenticate() func(offered []string) sasl.Client {
	switch c.Mechanism {
	case "":
		return nil
	case "EXTERNAL":
		return external(c.User)
	case "LOGIN":
		return func([]string) sasl.Client { return &loginClient{answers: []string{c.User, c.Password}} }
	case "SCRAM-SHA-256":
		return func([]string) sasl.Client { return newScramClient(c.User, c.Password) }
	default:
		return func([]string) sasl.Client { return sasl.NewPlainClient("", c.User, c.Password) }
	}
}
