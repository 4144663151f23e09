package tcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// How messages are told apart on a connection.
const (
	framingLength = "length" // requests and answers
	framingPlain  = "plain"  // a length and a body, without answers
	framingLine   = "line"   // a line each, without answers
)

// receiveSettings are the settings of a location.
type receiveSettings struct {
	Framing            string           `json:"framing"`
	PrefixBytes        int              `json:"prefix_bytes"`
	MaxSize            int64            `json:"max_size"`
	InFlight           int              `json:"in_flight"`
	MaxConnections     int              `json:"max_connections"`
	IdleTimeout        adapter.Duration `json:"idle_timeout"`
	FrameTimeout       adapter.Duration `json:"frame_timeout"`
	Lanes              int              `json:"lanes"`
	BatchCount         int              `json:"batch_count"`
	BatchBytes         int64            `json:"batch_bytes"`
	TLS                bool             `json:"tls"`
	ClientCertificates bool             `json:"client_certificates"`
}

func receiveDefaults() receiveSettings {
	return receiveSettings{
		Framing: framingLength, PrefixBytes: 4, MaxSize: 1 << 20, InFlight: 200, MaxConnections: 100,
		IdleTimeout: adapter.Duration(5 * time.Minute), FrameTimeout: adapter.Duration(30 * time.Second), Lanes: 4, BatchCount: 100,
		BatchBytes: 1 << 20,
	}
}

// largest is the largest body that an adapter keeps in memory.
const largest = 64 << 20

// shortest is the shortest time-out.
const shortest = adapter.Duration(10 * time.Millisecond)

func (s receiveSettings) check(secrets []string) []adapter.Problem {
	problems := checkFraming(s.Framing, s.PrefixBytes, s.MaxSize)
	problems = append(problems, adapter.Between("in_flight", int64(s.InFlight), 1, 10_000)...)
	problems = append(problems, adapter.Between("max_connections", int64(s.MaxConnections), 1, 10_000)...)
	problems = append(problems, adapter.NotBelow("idle_timeout", s.IdleTimeout, shortest)...)
	problems = append(problems, adapter.NotBelow("frame_timeout", s.FrameTimeout, shortest)...)
	problems = append(problems, adapter.Between("lanes", int64(s.Lanes), 1, 64)...)
	problems = append(problems, adapter.Between("batch_count", int64(s.BatchCount), 1, 1000)...)
	problems = append(problems, adapter.Between("batch_bytes", s.BatchBytes, 1, largest)...)
	var needed []string
	if s.TLS {
		needed = []string{certificateSecret, keySecret}
	}
	if s.ClientCertificates {
		needed = append(needed, authoritySecret)
		if !s.TLS {
			problems = append(problems, needsTLS("client_certificates"))
		}
	}
	return append(problems, checkSecrets(secrets, s.TLS, needed)...)
}

// sendSettings are the settings of a port.
type sendSettings struct {
	Framing        string           `json:"framing"`
	PrefixBytes    int              `json:"prefix_bytes"`
	MaxSize        int64            `json:"max_size"`
	InFlight       int              `json:"in_flight"`
	Connections    int              `json:"connections"`
	ConnectTimeout adapter.Duration `json:"connect_timeout"`
	Timeout        adapter.Duration `json:"timeout"`
	Keys           bool             `json:"keys"`
	KeyPrefix      string           `json:"key_prefix"`
	TLS            bool             `json:"tls"`
	ServerName     string           `json:"server_name"`
}

func sendDefaults() sendSettings {
	return sendSettings{
		Framing: framingLength, PrefixBytes: 4, MaxSize: 1 << 20, InFlight: 200, Connections: 1,
		ConnectTimeout: adapter.Duration(10 * time.Second), Timeout: adapter.Duration(time.Minute), Keys: true,
	}
}

// longestPrefix is how long the beginning of a key may be.
const longestPrefix = 500

func (s sendSettings) check(secrets []string) []adapter.Problem {
	problems := checkFraming(s.Framing, s.PrefixBytes, s.MaxSize)
	problems = append(problems, adapter.Between("in_flight", int64(s.InFlight), 1, 10_000)...)
	problems = append(problems, adapter.Between("connections", int64(s.Connections), 1, 64)...)
	problems = append(problems, adapter.NotBelow("connect_timeout", s.ConnectTimeout, shortest)...)
	problems = append(problems, adapter.NotBelow("timeout", s.Timeout, shortest)...)
	if s.KeyPrefix != "" && (len(s.KeyPrefix) > longestPrefix || checkKey(s.KeyPrefix) != nil) {
		problems = append(problems, adapter.Problem{
			Path: []string{"settings", "key_prefix"}, Message: "the beginning of keys is too long, or has a character 0",
			Remedy: fmt.Sprintf("Write a text of at most %d bytes.", longestPrefix),
		})
	}
	if s.ServerName != "" && !s.TLS {
		problems = append(problems, needsTLS("server_name"))
	}
	var needed []string
	if slices.Contains(secrets, certificateSecret) || slices.Contains(secrets, keySecret) {
		needed = []string{certificateSecret, keySecret}
	}
	return append(problems, checkSecrets(secrets, s.TLS, needed)...)
}

func checkFraming(framing string, prefix int, size int64) []adapter.Problem {
	problems := adapter.OneOf("framing", framing, framingLength, framingPlain, framingLine)
	problems = append(problems, adapter.Between("max_size", size, 1, largest)...)
	if prefix != 2 && prefix != 4 && prefix != 8 {
		problems = append(problems, adapter.Problem{
			Path: []string{"settings", "prefix_bytes"}, Message: fmt.Sprintf("the length of a frame has %d bytes", prefix),
			Remedy: "Write 2, 4 or 8.",
		})
	} else if most := int64(maxLength(prefix) - requestHeader - 2 - longestKey); framing != framingLine && size > most {
		problems = append(problems, adapter.Problem{
			Path: []string{"settings", "max_size"}, Message: fmt.Sprintf("a length of %d bytes has no room for %d", prefix, size),
			Remedy: fmt.Sprintf("Write at most %d, or a longer prefix_bytes.", most),
		})
	}
	return problems
}

func needsTLS(name string) adapter.Problem {
	return adapter.Problem{
		Path: []string{"settings", name}, Message: name + " has no meaning without TLS", Remedy: "Set tls to true, or leave it out.",
	}
}

func checkSecrets(given []string, isTLS bool, needed []string) []adapter.Problem {
	if !isTLS {
		if len(given) == 0 {
			return nil
		}
		return []adapter.Problem{{
			Path: []string{"secrets", given[0]}, Message: "secrets of TLS are given, and TLS is not asked for",
			Remedy: "Set tls to true, or leave the secrets out.",
		}}
	}
	problems := adapter.OnlySecrets(given, certificateSecret, keySecret, authoritySecret)
	for _, name := range needed {
		if !slices.Contains(given, name) {
			problems = append(problems, adapter.Problem{
				Path: []string{"secrets"}, Message: fmt.Sprintf("the secret %s is missing", name),
				Remedy: fmt.Sprintf("Say where its PEM is, such as %s: \"file:/etc/parley/%s.pem\".", name, name),
			})
		}
	}
	return problems
}

// checkAddress gives what is wrong with host:port.
func checkAddress(direction adapter.Direction, address string) []adapter.Problem {
	wrong := func(message string) []adapter.Problem {
		remedy := "Write host:port, such as erp.example:9000."
		if direction == adapter.Receive {
			remedy = "Write address:port, such as 127.0.0.1:9000, or 0.0.0.0:9000 for all addresses of the machine."
		}
		return []adapter.Problem{{Path: []string{"address"}, Message: message, Remedy: remedy}}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return wrong(fmt.Sprintf("the address %q is not host:port", address))
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if host == "" || err != nil || number == 0 && direction == adapter.Send {
		return wrong(fmt.Sprintf("the address %q has no host, or no number of a port", address))
	}
	return nil
}

// check gives what is wrong with the definition of a location or port.
func check(direction adapter.Direction, address string, settings json.RawMessage, secrets []string) []adapter.Problem {
	problems := checkAddress(direction, address)
	if direction == adapter.Send {
		s := sendDefaults()
		problems = append(problems, adapter.CheckSettings(settings, &s)...)
		return append(problems, s.check(secrets)...)
	}
	s := receiveDefaults()
	problems = append(problems, adapter.CheckSettings(settings, &s)...)
	return append(problems, s.check(secrets)...)
}

// checkEndpoint checks an address and settings where a receiver or sender is made; the host has checked secrets.
func checkEndpoint(direction adapter.Direction, e adapter.Endpoint, into any) error {
	var errs []error
	for _, p := range append(checkAddress(direction, e.Address), adapter.CheckSettings(e.Settings, into)...) {
		errs = append(errs, fmt.Errorf("%s: %s. %s", strings.Join(p.Path, "."), p.Message, p.Remedy))
	}
	return errors.Join(errs...)
}
