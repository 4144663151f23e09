package tcp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// sender sends messages on connections that it keeps.
type sender struct {
	endpoint     adapter.Endpoint
	settings     sendSettings
	certificates certificates

	mu    sync.Mutex
	next  int
	links []*place
}

// place is where one of the connections is, while there is one.
type place struct {
	mu   sync.Mutex // of the one who connects
	link *link
}

func newSender(e adapter.Endpoint) (adapter.Sender, error) {
	s := &sender{endpoint: e, settings: sendDefaults(), certificates: certificates{endpoint: e}}
	if err := checkEndpoint(adapter.Send, e, &s.settings); err != nil {
		return nil, err
	}
	if s.settings.KeyPrefix == "" {
		s.settings.KeyPrefix = e.Name
	}
	for range s.settings.Connections {
		s.links = append(s.links, &place{})
	}
	_, err := e.Permission.CheckConnect(e.Address)
	return s, err
}

// Close closes the connections.
func (s *sender) Close() error {
	for _, p := range s.links {
		p.mu.Lock()
		if p.link != nil {
			p.link.fail(net.ErrClosed)
			p.link = nil
		}
		p.mu.Unlock()
	}
	return nil
}

// Send sends messages on one connection, one behind the other, and waits until all are acknowledged. Messages with a key of which the
// acknowledgement was lost with a connection are sent once more at once, on a new one.
func (s *sender) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	deliveries := make([]adapter.Delivery, len(messages))
	var waiting []outgoing
	for n, m := range messages {
		frame, err := s.frame(ctx, m)
		if err != nil {
			deliveries[n].Err = err
			continue
		}
		waiting = append(waiting, outgoing{n: n, frame: frame})
	}
	s.mu.Lock()
	at := s.links[s.next%len(s.links)]
	s.next++
	s.mu.Unlock()
	for try := 0; len(waiting) > 0; try++ {
		l, err := s.connected(ctx, at)
		if err != nil {
			for _, o := range waiting {
				deliveries[o.n].Err = err
			}
			break
		}
		l.send(ctx, waiting, deliveries)
		again := waiting[:0]
		for _, o := range waiting {
			if errors.Is(deliveries[o.n].Err, errLost) {
				again = append(again, o)
			}
		}
		if try > 0 || !s.settings.Keys || s.settings.Framing != framingLength {
			break
		}
		waiting = again
	}
	return deliveries
}

// outgoing is a message with its frame, but for the number of its request.
type outgoing struct {
	n     int
	frame frame
}

// frame has the parts of a request that come from its message.
type frame struct {
	key  string
	body []byte
}

// frame reads a message.
func (s *sender) frame(ctx context.Context, m *adapter.Message) (frame, error) {
	body, err := m.Open(ctx)
	if err != nil {
		return frame{}, err
	}
	defer func() { _ = body.Close() }()
	if m.Size > s.settings.MaxSize {
		return frame{}, s.tooLarge()
	}
	bytes := make([]byte, 0, max(m.Size, 0)+1)
	for {
		n, err := body.Read(bytes[len(bytes):cap(bytes)])
		if bytes = bytes[:len(bytes)+n]; int64(len(bytes)) > s.settings.MaxSize {
			return frame{}, s.tooLarge()
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return frame{}, err
		}
		if len(bytes) == cap(bytes) {
			bytes = append(bytes, 0)[:len(bytes)]
		}
	}
	f := frame{body: bytes}
	if s.settings.Keys {
		f.key = s.settings.KeyPrefix + ":" + strconv.FormatInt(m.ID, 10)
	}
	if s.settings.Framing == framingLine {
		line, _ := strings.CutSuffix(string(bytes), "\n")
		f.body = []byte(strings.TrimSuffix(line, "\r"))
		if len(f.body) == 0 || strings.Contains(line, "\n") {
			return frame{}, refusal(errors.New("the message is no line: it is empty, or has several; use the framing length"))
		}
	}
	return f, nil
}

func (s *sender) tooLarge() error {
	return refusal(fmt.Errorf("the message has more than %d bytes; raise max_size here and at the other end", s.settings.MaxSize))
}

func refusal(err error) error {
	return &adapter.Failure{Code: "send.refused", Permanent: true, Err: err}
}

// connected gives the connection of a place, and makes it where there is none.
func (s *sender) connected(ctx context.Context, at *place) (*link, error) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.link != nil && !at.link.isBroken() {
		return at.link, nil
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, &adapter.Failure{Code: "send.unreachable", Unreachable: true, Err: err}
	}
	at.link = newLink(conn, s.settings)
	return at.link, nil
}

func (s *sender) dial(ctx context.Context) (net.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, time.Duration(s.settings.ConnectTimeout))
	defer stop()
	conn, err := s.endpoint.Permission.DialContext(ctx, "tcp", s.endpoint.Address, 0)
	if err != nil || !s.settings.TLS {
		return conn, err
	}
	config, err := s.config(ctx)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("secure the connection to %s: %w", s.endpoint.Address, err)
	}
	return secured, nil
}

// config gives the configuration of TLS.
func (s *sender) config(ctx context.Context) (*tls.Config, error) {
	return s.certificates.of(ctx, func(own []tls.Certificate, authorities *x509.CertPool) *tls.Config {
		name := s.settings.ServerName
		if name == "" {
			name, _, _ = net.SplitHostPort(s.endpoint.Address)
		}
		return &tls.Config{Certificates: own, RootCAs: authorities, ServerName: name, MinVersion: tls.VersionTLS12}
	})
}
