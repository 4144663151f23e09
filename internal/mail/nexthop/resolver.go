package nexthop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

const (
	// maximumAge bounds how long an answer is kept, whatever its time to live says.
	maximumAge = time.Hour
	// maximumNegativeAge bounds how long it is kept that there is no answer.
	maximumNegativeAge = 5 * time.Minute
	// maximumKept bounds the answers that are kept; when it is reached all are forgotten.
	maximumKept = 50_000
	// attempts is how often each name server is asked.
	attempts = 2
	// maximumAliases bounds a chain of CNAME records.
	maximumAliases = 8
)

// Config names the servers to ask. The zero value asks the name servers of the machine.
type Config struct {
	// Servers are the name servers, as host:port; none means those of /etc/resolv.conf.
	Servers []string
	// Timeout bounds one question to one server; 0 means 5 s.
	Timeout time.Duration
	// Logger receives what could not be asked; nil means [slog.Default].
	Logger *slog.Logger
}

// Resolver asks name servers and keeps their answers. It may be used by several goroutines.
type Resolver struct {
	servers  []string
	udp, tcp *dns.Client
	logger   *slog.Logger

	mu     sync.Mutex
	kept   map[question]answer
	hits   uint64
	misses uint64
}

type question struct {
	name string
	kind uint16
}

// answer is the answer to a question, as far as known. An answer without records says that there are none.
type answer struct {
	records []dns.RR
	// exists is false when the name has no records of any type.
	exists bool
	secure bool
	until  time.Time
}

// New makes a resolver.
func New(config Config) (*Resolver, error) {
	servers := config.Servers
	if len(servers) == 0 {
		machine, err := dns.ClientConfigFromFile("/etc/resolv.conf")
		if err != nil {
			return nil, fmt.Errorf("read the name servers of this machine; name some in the configuration: %w", err)
		}
		for _, server := range machine.Servers {
			servers = append(servers, net.JoinHostPort(server, machine.Port))
		}
	}
	if len(servers) == 0 {
		return nil, errors.New("there are no name servers; name some in the configuration")
	}
	if config.Timeout == 0 {
		config.Timeout = 5 * time.Second
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return &Resolver{
		servers: servers,
		udp:     &dns.Client{Net: "udp", Timeout: config.Timeout, UDPSize: dns.DefaultMsgSize},
		tcp:     &dns.Client{Net: "tcp", Timeout: config.Timeout},
		logger:  config.Logger,
		kept:    make(map[question]answer),
	}, nil
}

// Flush forgets all answers.
func (r *Resolver) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.kept)
}

// Statistics says how many questions were answered from memory, and how many were not.
func (r *Resolver) Statistics() (hits, misses uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hits, r.misses
}

// lookup answers a question, following aliases. It fails with an [*Error] that may pass when no server answers.
func (r *Resolver) lookup(ctx context.Context, name string, kind uint16) (answer, error) {
	asked := question{name: dns.CanonicalName(name), kind: kind}
	r.mu.Lock()
	known, found := r.kept[asked]
	if found && time.Now().Before(known.until) {
		r.hits++
		r.mu.Unlock()
		return known, nil
	}
	r.misses++
	r.mu.Unlock()

	fresh, err := r.ask(ctx, asked)
	if err != nil {
		return answer{}, err
	}
	r.keep(asked, fresh)
	return fresh, nil
}

// keep keeps an answer.
func (r *Resolver) keep(asked question, fresh answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) >= maximumKept {
		clear(r.kept)
	}
	r.kept[asked] = fresh
}

func (r *Resolver) ask(ctx context.Context, asked question) (answer, error) {
	var last error
	for range attempts {
		for _, server := range r.servers {
			response, err := r.exchange(ctx, server, asked)
			switch {
			case ctx.Err() != nil:
				return answer{}, fmt.Errorf("ask for %s of %s: %w", dns.TypeToString[asked.kind], asked.name, ctx.Err())
			case err != nil:
				last = err
			case response.Rcode == dns.RcodeSuccess || response.Rcode == dns.RcodeNameError:
				return read(response, asked)
			default:
				last = fmt.Errorf("%s answered %s", server, dns.RcodeToString[response.Rcode])
			}
		}
	}
	return answer{}, &Error{
		Enhanced: "4.4.3", Text: fmt.Sprintf("%s of %s cannot be looked up", dns.TypeToString[asked.kind], display(asked.name)), cause: last,
	}
}

// exchange asks one server, by TCP when the answer does not fit a datagram.
func (r *Resolver) exchange(ctx context.Context, server string, asked question) (*dns.Msg, error) {
	message := new(dns.Msg).SetQuestion(asked.name, asked.kind)
	message.SetEdns0(dns.DefaultMsgSize, true)
	message.AuthenticatedData = true
	response, _, err := r.udp.ExchangeContext(ctx, message, server)
	if err == nil && response.Truncated {
		response, _, err = r.tcp.ExchangeContext(ctx, message, server)
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", server, err)
	}
	return response, nil
}

// read takes the records of a response that answer the question, following the aliases in it.
func read(response *dns.Msg, asked question) (answer, error) {
	result := answer{exists: response.Rcode == dns.RcodeSuccess, secure: response.AuthenticatedData}
	name, age := asked.name, maximumAge
	for range maximumAliases {
		alias := ""
		for _, record := range response.Answer {
			header := record.Header()
			if !strings.EqualFold(header.Name, name) {
				continue
			}
			switch header.Rrtype {
			case asked.kind:
				result.records = append(result.records, record)
				age = min(age, time.Duration(header.Ttl)*time.Second)
			case dns.TypeCNAME:
				alias = dns.CanonicalName(record.(*dns.CNAME).Target)
				age = min(age, time.Duration(header.Ttl)*time.Second)
			}
		}
		if alias == "" || len(result.records) > 0 {
			if len(result.records) == 0 {
				age = min(age, negativeAge(response))
			}
			result.until = time.Now().Add(age)
			return result, nil
		}
		name = alias
	}
	return answer{}, &Error{Permanent: true, Enhanced: "5.4.4", Text: fmt.Sprintf("%s has too long a chain of aliases", display(asked.name))}
}

// negativeAge is how long it may be kept that there is no answer (RFC 2308 section 5).
func negativeAge(response *dns.Msg) time.Duration {
	for _, record := range response.Ns {
		if soa, is := record.(*dns.SOA); is {
			return min(time.Duration(min(soa.Minttl, soa.Hdr.Ttl))*time.Second, maximumNegativeAge)
		}
	}
	return 0
}

// display is a name as people write it, without the dot of the root.
func display(name string) string { return strings.TrimSuffix(name, ".") }
