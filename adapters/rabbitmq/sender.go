package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/parley-broker/parley/adapters/endpoint"
	"github.com/parley-broker/parley/flow/adapter"
)

// sender publishes messages to an exchange.
type sender struct {
	endpoint adapter.Endpoint
	settings sendSettings
	address  address

	mu   sync.Mutex
	link *link
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
	if s.link != nil {
		s.link.close()
	}
	return nil
}

// connected gives the channel that there is, or a new one.
func (s *sender) connected(ctx context.Context) (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != nil && !s.link.channel.IsClosed() {
		return s.link, nil
	}
	if s.link != nil {
		s.link.close()
		s.link = nil
	}
	conn, err := dial(ctx, s.endpoint, s.address, s.settings.Server)
	if err != nil {
		return nil, err
	}
	s.link, err = newLink(conn)
	return s.link, err
}

// Send publishes messages one behind the other, and waits until the broker has confirmed all.
func (s *sender) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	l, err := s.connected(ctx)
	if err != nil {
		return endpoint.All(len(messages), endpoint.Away(err))
	}
	ctx, stop := context.WithTimeout(ctx, time.Duration(s.settings.Timeout))
	defer stop()
	deliveries := make([]adapter.Delivery, len(messages))
	confirms := make([]*amqp.DeferredConfirmation, len(messages))
	for n, m := range messages {
		published, err := s.published(ctx, m)
		if err == nil {
			confirms[n], err = l.channel.PublishWithDeferredConfirmWithContext(ctx, s.address.name, s.routingKey(m), s.settings.Mandatory,
				false, published)
			if err != nil {
				err = s.lost(l, err)
			}
		}
		deliveries[n].Err = err
	}
	for n, m := range messages {
		if deliveries[n].Err == nil {
			deliveries[n] = s.confirmed(ctx, l, confirms[n], m)
		}
	}
	return deliveries
}

func (s *sender) id(m *adapter.Message) string {
	return s.settings.IDPrefix + ":" + strconv.FormatInt(m.ID, 10)
}

func (s *sender) routingKey(m *adapter.Message) string {
	if s.settings.RoutingKeyProperty != "" {
		return m.Property(s.settings.RoutingKeyProperty)
	}
	return s.settings.RoutingKey
}

// published makes what is published of a message.
func (s *sender) published(ctx context.Context, m *adapter.Message) (amqp.Publishing, error) {
	body, err := endpoint.Read(ctx, m, s.settings.MaxSize)
	if err != nil {
		return amqp.Publishing{}, err
	}
	if key := s.routingKey(m); len(key) > 255 {
		return amqp.Publishing{}, endpoint.Refused(fmt.Errorf("the routing key has %d bytes, and AMQP knows 255 at most", len(key)))
	}
	headers := amqp.Table{}
	for header, value := range endpoint.Headers(s.settings.Headers, m) {
		headers[header] = value
	}
	contentType := m.ContentType
	if contentType != "" && m.Charset != "" {
		contentType += "; charset=" + m.Charset
	}
	return amqp.Publishing{
		DeliveryMode: amqp.Persistent, MessageId: s.id(m), Timestamp: m.ReceivedAt, ContentType: contentType, Headers: headers, Body: body,
	}, nil
}

// confirmed waits for the answer to a message.
func (s *sender) confirmed(ctx context.Context, l *link, confirm *amqp.DeferredConfirmation, m *adapter.Message) adapter.Delivery {
	isConfirmed, err := confirm.WaitContext(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return adapter.Delivery{Err: endpoint.Failed(fmt.Errorf("the broker has not confirmed the message: %w", err))}
	case err != nil:
		return adapter.Delivery{Err: s.lost(l, err)}
	}
	if reason := l.returnOf(s.id(m)); reason != "" {
		return adapter.Delivery{Err: &adapter.Failure{Code: "send.refused", Err: fmt.Errorf(
			"no queue takes the message (%s): bind one to the exchange %q for the routing key %q", reason, s.address.name, s.routingKey(m))}}
	}
	if !isConfirmed {
		if l.channel.IsClosed() {
			return adapter.Delivery{Err: s.lost(l, errors.New("the channel was closed before the broker had confirmed the message"))}
		}
		return adapter.Delivery{Err: endpoint.Failed(errors.New("the broker refuses the message for now"))}
	}
	detail, err := json.Marshal(map[string]any{"message_id": s.id(m), "exchange": s.address.name, "routing_key": s.routingKey(m)})
	if err != nil { // texts can be encoded
		panic(err)
	}
	return adapter.Delivery{Detail: detail}
}

// lost is the failure of a message whose channel is closed: because the broker is away, or there is no such exchange.
func (s *sender) lost(l *link, err error) error {
	if reason := l.reason(); reason != nil {
		err = reason
	}
	return endpoint.Away(fmt.Errorf("publish to the exchange %q: %w", s.address.name, err))
}
