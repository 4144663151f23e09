package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-broker/parley/adapters/endpoint"
	"github.com/parley-broker/parley/flow/adapter"
)

// sender publishes messages into a stream.
type sender struct {
	endpoint adapter.Endpoint
	settings sendSettings
	address  address

	mu     sync.Mutex
	conn   *nats.Conn
	stream jetstream.JetStream
}

func newSender(e adapter.Endpoint) (adapter.Sender, error) {
	if err := endpoint.Refuse(check(adapter.Send, e.Address, e.Settings, nil)); err != nil {
		return nil, err
	}
	s := &sender{endpoint: e, settings: sendDefaults()}
	adapter.CheckSettings(e.Settings, &s.settings)
	s.address, _ = readAddress(adapter.Send, e.Address)
	if s.settings.IDPrefix == "" {
		s.settings.IDPrefix = e.Name
	}
	_, err := e.Permission.CheckConnect(s.address.host)
	return s, err
}

// Close ends the connection.
func (s *sender) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.Close()
	}
	return nil
}

// connected gives the connection that there is, or a new one.
func (s *sender) connected(ctx context.Context) (jetstream.JetStream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && s.conn.IsConnected() {
		return s.stream, nil
	}
	if s.conn != nil {
		s.conn.Close()
	}
	var err error
	// The connection outlives this call.
	if s.conn, err = dial(context.WithoutCancel(ctx), s.endpoint, s.address, s.settings.Server); err != nil {
		return nil, err
	}
	s.stream, err = jetstream.New(s.conn, jetstream.WithPublishAsyncTimeout(time.Duration(s.settings.Timeout)))
	return s.stream, err
}

// Send publishes messages one behind the other, and waits until the stream has stored all.
func (s *sender) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	if err := ctx.Err(); err != nil {
		return endpoint.All(len(messages), err)
	}
	stream, err := s.connected(ctx)
	if err != nil {
		return endpoint.All(len(messages), endpoint.Away(err))
	}
	deliveries := make([]adapter.Delivery, len(messages))
	futures := make([]jetstream.PubAckFuture, len(messages))
	for n, m := range messages {
		published, err := s.published(ctx, m)
		if err == nil {
			futures[n], err = stream.PublishMsgAsync(published)
			err = s.failure(published, err)
		}
		deliveries[n].Err = err
	}
	for n := range messages {
		if deliveries[n].Err != nil {
			continue
		}
		select {
		case stored := <-futures[n].Ok():
			detail, err := json.Marshal(map[string]any{
				"stream": stored.Stream, "sequence": stored.Sequence, "subject": futures[n].Msg().Subject, "duplicate": stored.Duplicate,
			})
			if err != nil { // texts and numbers can be encoded
				panic(err)
			}
			deliveries[n].Detail = detail
		case err := <-futures[n].Err():
			deliveries[n].Err = s.failure(futures[n].Msg(), err)
		case <-ctx.Done():
			deliveries[n].Err = ctx.Err()
		}
	}
	return deliveries
}

// published makes what is published of a message.
func (s *sender) published(ctx context.Context, m *adapter.Message) (*nats.Msg, error) {
	body, err := endpoint.Read(ctx, m, s.settings.MaxSize)
	if err != nil {
		return nil, err
	}
	to := s.address.name
	if s.settings.SubjectProperty != "" {
		if to = m.Property(s.settings.SubjectProperty); !subject.MatchString(to) {
			return nil, endpoint.Refused(fmt.Errorf("%q, the value of %s, is no subject", to, s.settings.SubjectProperty))
		}
	}
	published := nats.NewMsg(to)
	published.Data = body
	for header, value := range endpoint.Headers(s.settings.Headers, m) {
		published.Header.Set(header, value)
	}
	if m.ContentType != "" {
		published.Header.Set("Content-Type", m.ContentType)
	}
	published.Header.Set(jetstream.MsgIDHeader, s.settings.IDPrefix+":"+strconv.FormatInt(m.ID, 10))
	return published, nil
}

// failure says what should follow an error.
func (s *sender) failure(m *nats.Msg, err error) error {
	api, isAPI := errors.AsType[*jetstream.APIError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrHeadersNotSupported):
		return endpoint.Refused(fmt.Errorf("the server does not take the message: %w", err))
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return &adapter.Failure{Code: "send.refused", Err: fmt.Errorf("no stream takes the subject %s: %w", m.Subject, err)}
	case isAPI:
		return endpoint.Failed(fmt.Errorf("the stream does not take the message: %w", api))
	case errors.Is(err, jetstream.ErrAsyncPublishTimeout):
		return endpoint.Failed(err)
	default:
		return endpoint.Away(fmt.Errorf("publish to %s: %w", m.Subject, err))
	}
}
