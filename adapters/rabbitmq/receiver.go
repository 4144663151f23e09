package rabbitmq

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/parley-broker/parley/adapters/endpoint"
	"github.com/parley-broker/parley/flow/adapter"
)

// receiver takes the messages of a queue in.
type receiver struct {
	endpoint adapter.Endpoint
	settings receiveSettings
	address  address
}

func newReceiver(e adapter.Endpoint) (adapter.Receiver, error) {
	if err := endpoint.Refuse(check(adapter.Receive, e.Address, e.Settings, nil)); err != nil {
		return nil, err
	}
	r := &receiver{endpoint: e, settings: receiveDefaults()}
	adapter.CheckSettings(e.Settings, &r.settings)
	r.address, _ = readAddress(adapter.Receive, e.Address)
	_, err := e.Permission.CheckConnect(r.address.host)
	return r, err
}

// Run consumes until ctx ends. Messages are acknowledged when they are in the message box; those that are not come again.
func (r *receiver) Run(ctx context.Context, in adapter.Intake) error {
	if err := in.Await(ctx); err != nil {
		return endpoint.Ended(ctx, err)
	}
	conn, err := dial(ctx, r.endpoint, r.address, r.settings.Server)
	if err != nil {
		return endpoint.Ended(ctx, err)
	}
	defer func() { _ = conn.Close() }()
	channel, err := conn.Channel()
	if err == nil {
		err = channel.Qos(2*r.settings.BatchCount, 0, false)
	}
	if err != nil {
		return endpoint.Ended(ctx, fmt.Errorf("open a channel: %w", err))
	}
	deliveries, err := channel.Consume(r.address.name, "", false, false, false, false, nil)
	if err != nil {
		return endpoint.Ended(ctx, fmt.Errorf("consume the queue %s: %w", r.address.name, err))
	}
	lost := make(chan struct{})
	closed := channel.NotifyClose(make(chan *amqp.Error, 1))
	var reason *amqp.Error
	go func() {
		reason = <-closed
		close(lost)
	}()
	for {
		batch, err := r.next(ctx, deliveries)
		if err == nil {
			err = endpoint.Take(ctx, r.endpoint, in, r.inputs(batch), lost)
		}
		if err == nil {
			// Those before it are acknowledged with it: this channel has no other consumer.
			err = channel.Ack(batch[len(batch)-1].DeliveryTag, true)
		}
		if errors.Is(err, endpoint.ErrLost) {
			<-lost
			if reason != nil {
				err = fmt.Errorf("RabbitMQ has closed the channel: %w", reason)
			}
		}
		if err != nil {
			return endpoint.Ended(ctx, err)
		}
	}
}

// next waits for a message, and gives it with those that have come behind it.
func (r *receiver) next(ctx context.Context, deliveries <-chan amqp.Delivery) (batch []amqp.Delivery, err error) {
	size := int64(0)
	for len(batch) < r.settings.BatchCount && size < r.settings.BatchBytes {
		var d amqp.Delivery
		var isOpen bool
		if len(batch) == 0 {
			select {
			case d, isOpen = <-deliveries:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		} else {
			select {
			case d, isOpen = <-deliveries:
			default:
				return batch, nil
			}
		}
		if !isOpen {
			return nil, endpoint.ErrLost
		}
		batch, size = append(batch, d), size+int64(len(d.Body))
	}
	return batch, nil
}

// inputs makes inputs of messages.
func (r *receiver) inputs(batch []amqp.Delivery) []adapter.Input {
	inputs := make([]adapter.Input, len(batch))
	for n, d := range batch {
		inputs[n] = adapter.Input{
			Key: d.MessageId, Body: d.Body, Size: int64(len(d.Body)), ContentType: d.ContentType,
			Promoted: endpoint.Promote(r.settings.Promoted, func(header string) (string, bool) { return headerOf(d, header) }),
		}
		if len(d.MessageId) > 1024 {
			inputs[n].Key = ""
		}
	}
	return inputs
}

// headerOf gives a header, or a property of AMQP by its name.
func headerOf(d amqp.Delivery, name string) (string, bool) {
	if value, found := d.Headers[name]; found {
		return fmt.Sprint(value), true
	}
	value := map[string]string{
		"message-id": d.MessageId, "correlation-id": d.CorrelationId, "reply-to": d.ReplyTo, "type": d.Type, "app-id": d.AppId,
		"user-id": d.UserId, "routing-key": d.RoutingKey, "exchange": d.Exchange,
	}[name]
	return value, value != ""
}
