// Package kafka is the adapter Kafka: records of a topic taken in by a group of consumers, and produced into one.
package kafka

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/parley-broker/parley/adapters/endpoint"
	"github.com/parley-broker/parley/flow/adapter"
)

// Kind is the adapter.
var Kind = adapter.Kind{
	Name: "Kafka",
	Guarantee: map[adapter.Direction]string{
		adapter.Receive: "Exactly once, also with several nodes in one group",
		adapter.Send:    "At least once, acknowledged by all replicas in sync, with the same id each time",
	},
	Key: map[adapter.Direction]string{
		adapter.Receive: "topic, partition, offset and time of the record",
		adapter.Send:    "the header parley-message-id: `id_prefix` and number of the message",
	},
	Check:       check,
	NewReceiver: newReceiver,
	NewSender:   newSender,
}

const passwordSecret = "password"

// The ways to log in.
const (
	noLogin     = "none"
	plainLogin  = "plain"
	scramSHA256 = "scram-sha-256"
	scramSHA512 = "scram-sha-512"
)

// Server are the settings of connections.
type Server struct {
	Login   string           `json:"login"`
	User    string           `json:"user"`
	Timeout adapter.Duration `json:"timeout"`
}

func server() Server { return Server{Login: noLogin, Timeout: adapter.Duration(30 * time.Second)} }

// Where a group begins that has not read a topic before.
const (
	earliest = "earliest"
	latest   = "latest"
)

type receiveSettings struct {
	Server
	Group       string            `json:"group"`
	Start       string            `json:"start"`
	BatchCount  int               `json:"batch_count"`
	KeyProperty string            `json:"key_property"`
	Promoted    map[string]string `json:"promoted"`
}

func receiveDefaults() receiveSettings {
	return receiveSettings{Server: server(), Start: earliest, BatchCount: 100}
}

type sendSettings struct {
	Server
	KeyProperty string            `json:"key_property"`
	IDPrefix    string            `json:"id_prefix"`
	Headers     map[string]string `json:"headers"`
	MaxSize     int64             `json:"max_size"`
}

func sendDefaults() sendSettings { return sendSettings{Server: server(), MaxSize: 1 << 20} }

// largest is the largest body that is kept in memory.
const largest = 64 << 20

// address is where a location or port is.
type address struct {
	isTLS   bool
	brokers []string // host:port
	topic   string
}

const form = "Write kafka://host:9092,other:9092/topic, and kafkas:// with TLS."

var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// readAddress reads kafka://host:port,host:port/topic.
func readAddress(written string) (address, []adapter.Problem) {
	scheme, rest, found := strings.Cut(written, "://")
	hosts, topic, hasTopic := strings.Cut(rest, "/")
	if !found || !hasTopic || scheme != "kafka" && scheme != "kafkas" || hosts == "" {
		return address{}, endpoint.Wrong(fmt.Sprintf("the address %q is none of Kafka", written), form, "address")
	}
	if !topicName.MatchString(topic) || topic == "." || topic == ".." {
		return address{}, endpoint.Wrong(fmt.Sprintf("%q is no name of a topic", topic), form, "address")
	}
	a := address{isTLS: scheme == "kafkas", topic: topic}
	for host := range strings.SplitSeq(hosts, ",") {
		if name, port, err := net.SplitHostPort(host); err != nil || name == "" || port == "" || strings.ContainsAny(host, " @") {
			return address{}, endpoint.Wrong(fmt.Sprintf("%q is not host:port", host), form, "address")
		}
		a.brokers = append(a.brokers, host)
	}
	return a, nil
}

func check(direction adapter.Direction, written string, raw json.RawMessage, secrets []string) []adapter.Problem {
	a, problems := readAddress(written)
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
		problems = append(problems, endpoint.CheckProperties("promoted", settings.Promoted)...)
		problems = append(problems, adapter.Between("batch_count", int64(settings.BatchCount), 1, 1000)...)
		problems = append(problems, adapter.OneOf("start", settings.Start, earliest, latest)...)
		if settings.Group == "" {
			problems = append(problems, endpoint.Wrong("the group is missing",
				"Name the group of consumers of this location; Kafka keeps how far it has read.", "settings", "group")...)
		}
		s = settings.Server
	}
	problems = append(problems, adapter.NotBelow("timeout", s.Timeout, adapter.Duration(time.Second))...)
	problems = append(problems, adapter.OneOf("login", s.Login, noLogin, plainLogin, scramSHA256, scramSHA512)...)
	problems = append(problems, adapter.OnlySecrets(secrets, passwordSecret, endpoint.AuthoritySecret, endpoint.CertificateSecret,
		endpoint.KeySecret)...)
	return append(problems, endpoint.CheckTLS(a.isTLS, secrets)...)
}

// options are those of a client, whichever way records go. Brokers that others name are connected to where the operator permits them.
func options(ctx context.Context, e adapter.Endpoint, a address, s Server) ([]kgo.Opt, error) {
	made := []kgo.Opt{kgo.SeedBrokers(a.brokers...), kgo.ClientID("parley")}
	timeout := time.Duration(s.Timeout)
	dial := func(ctx context.Context, network, host string) (net.Conn, error) {
		return e.Permission.DialContext(ctx, network, host, timeout)
	}
	if a.isTLS {
		config, err := endpoint.TLS(ctx, e, "")
		if err != nil {
			return nil, err
		}
		plainly := dial
		dial = func(ctx context.Context, network, host string) (net.Conn, error) {
			conn, err := plainly(ctx, network, host)
			if err != nil {
				return nil, err
			}
			return secure(ctx, conn, host, config, timeout)
		}
	}
	made = append(made, kgo.Dialer(dial))
	if mechanism := login(e, s); mechanism != nil {
		made = append(made, kgo.SASL(mechanism))
	}
	return made, nil
}

// login is how the client says who it is; nil where it need not. The password is read anew for each connection.
func login(e adapter.Endpoint, s Server) sasl.Mechanism {
	password := func(ctx context.Context) (string, error) {
		value, found, err := endpoint.Secret(ctx, e, passwordSecret)
		if err == nil && !found {
			err = fmt.Errorf("the secret %s is missing, with which %s logs in", passwordSecret, s.User)
		}
		return value, err
	}
	scrams := func(ctx context.Context) (scram.Auth, error) {
		value, err := password(ctx)
		return scram.Auth{User: s.User, Pass: value}, err
	}
	switch s.Login {
	case plainLogin:
		return plain.Plain(func(ctx context.Context) (plain.Auth, error) {
			value, err := password(ctx)
			return plain.Auth{User: s.User, Pass: value}, err
		})
	case scramSHA256:
		return scram.Sha256(scrams)
	case scramSHA512:
		return scram.Sha512(scrams)
	}
	return nil
}

// secure begins TLS with a broker, whose certificate has the name by which it is connected to.
func secure(ctx context.Context, conn net.Conn, host string, config *tls.Config, timeout time.Duration) (net.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	config = config.Clone()
	config.ServerName, _, _ = net.SplitHostPort(host)
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("secure the connection to %s: %w", host, err), conn.Close())
	}
	return secured, nil
}
