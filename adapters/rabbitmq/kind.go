// Package rabbitmq is the adapter RabbitMQ: messages of a queue taken in, and published to an exchange with confirms.
package rabbitmq

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/parley-broker/parley/adapters/endpoint"
	"github.com/parley-broker/parley/flow/adapter"
)

// Kind is the adapter.
var Kind = adapter.Kind{
	Name: "RabbitMQ",
	Guarantee: map[adapter.Direction]string{
		adapter.Receive: "Exactly once where publishers set a message id, at least once without",
		adapter.Send:    "At least once, confirmed by the broker, with the same message id each time",
	},
	Key: map[adapter.Direction]string{
		adapter.Receive: "the property message-id",
		adapter.Send:    "the property message-id: `id_prefix` and number of the message",
	},
	Check:       check,
	NewReceiver: newReceiver,
	NewSender:   newSender,
}

const passwordSecret = "password"

// Server are the settings of a connection.
type Server struct {
	User    string           `json:"user"`
	Vhost   string           `json:"vhost"`
	Timeout adapter.Duration `json:"timeout"`
}

func server() Server {
	return Server{User: "guest", Vhost: "/", Timeout: adapter.Duration(30 * time.Second)}
}

type receiveSettings struct {
	Server
	BatchCount int               `json:"batch_count"`
	BatchBytes int64             `json:"batch_bytes"`
	Promoted   map[string]string `json:"promoted"`
}

func receiveDefaults() receiveSettings {
	return receiveSettings{Server: server(), BatchCount: 100, BatchBytes: 1 << 20}
}

type sendSettings struct {
	Server
	RoutingKey         string            `json:"routing_key"`
	RoutingKeyProperty string            `json:"routing_key_property"`
	Mandatory          bool              `json:"mandatory"`
	IDPrefix           string            `json:"id_prefix"`
	Headers            map[string]string `json:"headers"`
	MaxSize            int64             `json:"max_size"`
}

func sendDefaults() sendSettings {
	return sendSettings{Server: server(), Mandatory: true, MaxSize: 16 << 20}
}

// largest is the largest body that is kept in memory.
const largest = 64 << 20

// shortest is the shortest time-out.
const shortest = adapter.Duration(100 * time.Millisecond)

// address is where a location or port is.
type address struct {
	isTLS bool
	host  string // host:port
	name  string // of a queue, or of an exchange; empty for the default exchange
}

const form = "Write amqp://host/queue of a location, amqp://host/exchange of a port, and amqps:// with TLS."

// readAddress reads amqp://host:port/name.
func readAddress(direction adapter.Direction, written string) (address, []adapter.Problem) {
	u, err := url.Parse(written)
	if err != nil || u.Scheme != "amqp" && u.Scheme != "amqps" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return address{}, endpoint.Wrong(fmt.Sprintf("the address %q is none of RabbitMQ", written), form, "address")
	}
	if u.User != nil {
		return address{}, endpoint.Wrong("the address has a user", "Give the user in the settings, and the secret password.", "address")
	}
	a := address{isTLS: u.Scheme == "amqps", host: u.Host, name: strings.TrimPrefix(u.Path, "/")}
	if u.Port() == "" {
		a.host = net.JoinHostPort(u.Hostname(), map[bool]string{false: "5672", true: "5671"}[a.isTLS])
	}
	if a.name == "" && direction == adapter.Receive {
		return address{}, endpoint.Wrong(fmt.Sprintf("the address %q names no queue", written), form, "address")
	}
	if len(a.name) > 255 {
		return address{}, endpoint.Wrong("a name of AMQP has more than 255 bytes", form, "address")
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
		if len(settings.RoutingKey) > 255 || len(settings.IDPrefix) > 200 {
			problems = append(problems, endpoint.Wrong("routing_key has more than 255 bytes, or id_prefix more than 200",
				"Write shorter ones.", "settings", "routing_key")...)
		}
		s = settings.Server
	} else {
		settings := receiveDefaults()
		problems = append(problems, adapter.CheckSettings(raw, &settings)...)
		problems = append(problems, endpoint.CheckProperties("promoted", settings.Promoted)...)
		problems = append(problems, adapter.Between("batch_count", int64(settings.BatchCount), 1, 1000)...)
		problems = append(problems, adapter.Between("batch_bytes", settings.BatchBytes, 1, largest)...)
		s = settings.Server
	}
	problems = append(problems, adapter.NotBelow("timeout", s.Timeout, shortest)...)
	problems = append(problems, adapter.OnlySecrets(secrets, passwordSecret, endpoint.AuthoritySecret, endpoint.CertificateSecret,
		endpoint.KeySecret)...)
	return append(problems, endpoint.CheckTLS(a.isTLS, secrets)...)
}
