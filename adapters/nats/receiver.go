package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-broker/parley/adapters/endpoint"
	"github.com/parley-broker/parley/flow/adapter"
)

// receiver takes the messages of a stream in.
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

// wait is how long the stream is asked for messages before the location is asked whether it takes some still.
const wait = time.Second

// Run takes in until ctx ends. Messages are acknowledged when they are in the message box; those that are not come again.
func (r *receiver) Run(ctx context.Context, in adapter.Intake) error {
	if err := in.Await(ctx); err != nil {
		return endpoint.Ended(ctx, err)
	}
	conn, err := dial(ctx, r.endpoint, r.address, r.settings.Server)
	if err != nil {
		return endpoint.Ended(ctx, err)
	}
	defer conn.Close()
	lost := make(chan struct{})
	conn.SetClosedHandler(func(*nats.Conn) { close(lost) })
	consumer, err := r.consumer(ctx, conn)
	for err == nil {
		err = r.turn(ctx, in, consumer, lost)
	}
	return endpoint.Ended(ctx, err)
}

// consumer finds the consumer of the location, and makes it where there is none.
func (r *receiver) consumer(ctx context.Context, conn *nats.Conn) (jetstream.Consumer, error) {
	ctx, stop := context.WithTimeout(ctx, time.Duration(r.settings.Timeout))
	defer stop()
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("begin JetStream: %w", err)
	}
	consumer, err := js.Consumer(ctx, r.address.name, r.settings.Consumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		consumer, err = js.CreateConsumer(ctx, r.address.name, jetstream.ConsumerConfig{
			Durable: r.settings.Consumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Duration(r.settings.AckWait),
			FilterSubject: r.settings.Subject, MaxDeliver: -1,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("find the consumer %s of the stream %s: %w", r.settings.Consumer, r.address.name, err)
	}
	if policy := consumer.CachedInfo().Config.AckPolicy; policy != jetstream.AckExplicitPolicy {
		return nil, fmt.Errorf("the consumer %s acknowledges as %v: let it be explicit, so that no message is lost",
			r.settings.Consumer, policy)
	}
	return consumer, nil
}

// turn takes what the stream has in.
func (r *receiver) turn(ctx context.Context, in adapter.Intake, consumer jetstream.Consumer, lost <-chan struct{}) error {
	if err := in.Await(ctx); err != nil {
		return err
	}
	fetched, err := consumer.Fetch(r.settings.BatchCount, jetstream.FetchMaxWait(wait))
	if err != nil {
		return fmt.Errorf("fetch messages: %w", err)
	}
	var messages []jetstream.Msg
	for m := range fetched.Messages() {
		messages = append(messages, m)
	}
	if err := fetched.Error(); err != nil && len(messages) == 0 && !errors.Is(err, nats.ErrTimeout) {
		return fmt.Errorf("fetch messages: %w", err)
	}
	for len(messages) > 0 && err == nil {
		var inputs []adapter.Input
		inputs, err = r.inputs(messages)
		if err == nil {
			err = endpoint.Take(ctx, r.endpoint, in, inputs, lost)
		}
		for _, m := range messages[:len(inputs)] {
			if err != nil {
				_ = m.Nak() // it comes again at once, to whom is there
			} else if ackErr := m.Ack(); ackErr != nil {
				return fmt.Errorf("acknowledge a message: %w", ackErr)
			}
		}
		messages = messages[len(inputs):]
	}
	for _, m := range messages {
		_ = m.Nak()
	}
	return err
}

// inputs makes inputs of as many messages as go into one transaction.
func (r *receiver) inputs(messages []jetstream.Msg) (inputs []adapter.Input, err error) {
	size := 0
	for _, m := range messages {
		if size += len(m.Data()); len(inputs) > 0 && size > r.settings.BatchBytes {
			break
		}
		at, err := m.Metadata()
		if err != nil {
			return nil, fmt.Errorf("find the number of a message: %w", err)
		}
		inputs = append(inputs, adapter.Input{
			// A stream that is made anew counts from 1 again: the time tells its messages from those of the old one.
			Key:  at.Stream + ":" + strconv.FormatUint(at.Sequence.Stream, 10) + ":" + strconv.FormatInt(at.Timestamp.UnixNano(), 10),
			Body: m.Data(), Size: int64(len(m.Data())), ContentType: m.Headers().Get("Content-Type"),
			Promoted: endpoint.Promote(r.settings.Promoted, func(header string) (string, bool) {
				if header == "subject" {
					return m.Subject(), true
				}
				values := m.Headers().Values(header)
				if len(values) == 0 {
					return "", false
				}
				return values[0], true
			}),
		})
	}
	return inputs, nil
}
