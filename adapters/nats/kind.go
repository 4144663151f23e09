// Package nats is the adapter NATS: messages of a stream of JetStream taken in by a durable consumer, and published into one.
package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-broker/parley/adapters/endpoint"
	"github.com/parley-broker/parley/flow/adapter"
)

// Kind is the adapter.
var Kind = adapter.Kind{
	Name: "NATS",
	Guarantee: map[adapter.Direction]string{
		adapter.Receive: "Exactly once, also with several nodes on one consumer",
		adapter.Send:    "At least once, stored by the stream; once within its window of duplicates",
	},
	Key: map[adapter.Direction]string{
		adapter.Receive: "the stream, the number of the message in it, and when it was stored",
		adapter.Send:    "the header Nats-Msg-Id: `id_prefix` and number of the message",
	},
	Check:       check,
	NewReceiver: newReceiver,
	NewSender:   newSender,
}

// The secrets of a login.
const (
	passwordSecret    = "password"
	tokenSecret       = "token"
	credentialsSecret = "credentials" // the text of a file of credentials, with a JWT and its seed
)

// Server are the settings of a connection.
type Server struct {
	User    string           `json:"user"`
	Timeout adapter.Duration `json:"timeout"`
}

func server() Server { return Server{Timeout: adapter.Duration(30 * time.Second)} }

type receiveSettings struct {
	Server
	Consumer   string            `json:"consumer"`
	Subject    string            `json:"subject"`
	AckWait    adapter.Duration  `json:"ack_wait"`
	BatchCount int               `json:"batch_count"`
	BatchBytes int               `json:"batch_bytes"`
	Promoted   map[string]string `json:"promoted"`
}

func receiveDefaults() receiveSettings {
	return receiveSettings{Server: server(), AckWait: adapter.Duration(time.Minute), BatchCount: 100, BatchBytes: 1 << 20}
}

type sendSettings struct {
	Server
	SubjectProperty string            `json:"subject_property"`
	IDPrefix        string            `json:"id_prefix"`
	Headers         map[string]string `json:"headers"`
	MaxSize         int64             `json:"max_size"`
}

func sendDefaults() sendSettings { return sendSettings{Server: server(), MaxSize: 1 << 20} }

// largest is the largest body that is kept in memory.
const largest = 64 << 20

// shortest is the shortest time-out.
const shortest = adapter.Duration(100 * time.Millisecond)

// address is where a location or port is.
type address struct {
	isTLS bool
	host  string // host:port
	name  string // of a stream, or a subject
}

const form = "Write nats://host/STREAM of a location, nats://host/a.subject of a port, and tls:// with TLS."

// A name of a stream or consumer is one word; a subject has points, and no wildcards where something is published.
var (
	word    = regexp.MustCompile(`^[^.*>/\\\x00-\x20\x7f]+$`)
	subject = regexp.MustCompile(`^[^.*>\x00-\x20\x7f]+(\.[^.*>\x00-\x20\x7f]+)*$`)
)

// readAddress reads nats://host:port/name.
func readAddress(direction adapter.Direction, written string) (address, []adapter.Problem) {
	u, err := url.Parse(written)
	if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return address{}, endpoint.Wrong(fmt.Sprintf("the address %q is none of NATS", written), form, "address")
	}
	if u.User != nil {
		return address{}, endpoint.Wrong("the address has a user", "Give the user in the settings, and the secret password.", "address")
	}
	a := address{isTLS: u.Scheme == "tls", host: u.Host, name: strings.TrimPrefix(u.Path, "/")}
	if u.Port() == "" {
		a.host = net.JoinHostPort(u.Hostname(), "4222")
	}
	named := word
	if direction == adapter.Send {
		named = subject
	}
	if !named.MatchString(a.name) {
		return address{}, endpoint.Wrong(fmt.Sprintf("the address %q names no stream, or no subject", written), form, "address")
	}
	return a, nil
}

func check(direction adapter.Direction, written string, raw json.RawMessage, secrets []string) []adapter.Problem {
	a, problems := readAddress(direction, written)
	var s Server
	if direction == adapter.Send {
		settings := sendDefaults()
		problems = append(problems, adapter.CheckSettings(raw, &settings)...)
		problems = append(problems, endpoint.CheckProperties("headers", settings.Headers)...)
		problems = append(problems, adapter.Between("max_size", settings.MaxSize, 1, largest)...)
		s = settings.Server
	} else {
		settings := receiveDefaults()
		problems = append(problems, adapter.CheckSettings(raw, &settings)...)
		problems = append(problems, settings.check()...)
		s = settings.Server
	}
	problems = append(problems, adapter.NotBelow("timeout", s.Timeout, shortest)...)
	problems = append(problems, adapter.OnlySecrets(secrets, passwordSecret, tokenSecret, credentialsSecret, endpoint.AuthoritySecret,
		endpoint.CertificateSecret, endpoint.KeySecret)...)
	return append(problems, endpoint.CheckTLS(a.isTLS, secrets)...)
}

func (s receiveSettings) check() []adapter.Problem {
	problems := endpoint.CheckProperties("promoted", s.Promoted)
	problems = append(problems, adapter.Between("batch_count", int64(s.BatchCount), 1, 1000)...)
	problems = append(problems, adapter.Between("batch_bytes", int64(s.BatchBytes), 1, largest)...)
	problems = append(problems, adapter.NotBelow("ack_wait", s.AckWait, adapter.Duration(time.Second))...)
	if !word.MatchString(s.Consumer) {
		problems = append(problems, endpoint.Wrong(fmt.Sprintf("%q is no name of a consumer", s.Consumer),
			"Name the durable consumer of this location, such as parley-orders; it is made where there is none.", "settings", "consumer")...)
	}
	return problems
}

// dialer connects where the operator permits it.
type dialer struct {
	ctx      context.Context //nolint:containedctx // the library gives none to its dialer
	endpoint adapter.Endpoint
	timeout  time.Duration
}

// Dial connects.
func (d dialer) Dial(network, host string) (net.Conn, error) {
	return d.endpoint.Permission.DialContext(d.ctx, network, host, d.timeout)
}

// dial connects and logs in. A connection that is lost is not made anew: who uses it begins again.
func dial(ctx context.Context, e adapter.Endpoint, a address, s Server) (*nats.Conn, error) {
	options := []nats.Option{
		nats.Name("parley " + e.Name), nats.NoReconnect(), nats.Timeout(time.Duration(s.Timeout)),
		nats.SetCustomDialer(dialer{ctx, e, time.Duration(s.Timeout)}), nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2),
		nats.IgnoreDiscoveredServers(), nats.SkipHostLookup(),
	}
	password, hasPassword, err := endpoint.Secret(ctx, e, passwordSecret)
	if err == nil && hasPassword {
		options = append(options, nats.UserInfo(s.User, password))
	}
	token, hasToken, tokenErr := endpoint.Secret(ctx, e, tokenSecret)
	if hasToken {
		options = append(options, nats.Token(token))
	}
	credentials, hasCredentials, credentialsErr := endpoint.Secret(ctx, e, credentialsSecret)
	if hasCredentials {
		options = append(options, nats.UserCredentialBytes([]byte(credentials)))
	}
	if err := errors.Join(err, tokenErr, credentialsErr); err != nil {
		return nil, err
	}
	if a.isTLS {
		name, _, _ := net.SplitHostPort(a.host)
		config, err := endpoint.TLS(ctx, e, name)
		if err != nil {
			return nil, err
		}
		options = append(options, nats.Secure(config))
	}
	conn, err := nats.Connect("nats://"+a.host, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w", a.host, err)
	}
	return conn, nil
}
