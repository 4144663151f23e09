package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/parley-broker/parley/adapters/endpoint"
	"github.com/parley-broker/parley/flow/adapter"
)

// sender produces records.
type sender struct {
	settings sendSettings
	address  address
	client   *kgo.Client
}

// room is for the key of a record, its headers, and the frame around them, in bytes.
const room = 64 << 10

func newSender(e adapter.Endpoint) (adapter.Sender, error) {
	if err := endpoint.Refuse(check(adapter.Send, e.Address, e.Settings, nil)); err != nil {
		return nil, err
	}
	s := &sender{settings: sendDefaults()}
	adapter.CheckSettings(e.Settings, &s.settings)
	if s.settings.IDPrefix == "" {
		s.settings.IDPrefix = e.Name
	}
	s.address, _ = readAddress(e.Address)
	for _, broker := range s.address.brokers {
		if _, err := e.Permission.CheckConnect(broker); err != nil {
			return nil, err
		}
	}
	made, err := options(context.Background(), e, s.address, s.settings.Server)
	if err != nil {
		return nil, err
	}
	s.client, err = kgo.NewClient(append(made,
		kgo.DefaultProduceTopic(s.address.topic), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordDeliveryTimeout(time.Duration(s.settings.Timeout)),
		kgo.ProducerBatchMaxBytes(int32(s.settings.MaxSize+room)),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
	)...)
	if err != nil {
		return nil, fmt.Errorf("make a client of Kafka: %w", err)
	}
	return s, nil
}

// Close ends the connections.
func (s *sender) Close() error {
	s.client.Close()
	return nil
}

// Send produces messages, and waits until the replicas in sync have all.
func (s *sender) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	deliveries := make([]adapter.Delivery, len(messages))
	var records []*kgo.Record
	of := map[*kgo.Record]int{}
	for n, m := range messages {
		record, err := s.record(ctx, m)
		if err != nil {
			deliveries[n].Err = err
			continue
		}
		records, of[record] = append(records, record), n
	}
	for _, result := range s.client.ProduceSync(ctx, records...) {
		d := &deliveries[of[result.Record]]
		if d.Err = failure(ctx, s.address.topic, result.Err); d.Err != nil {
			continue
		}
		detail, err := json.Marshal(map[string]any{
			"topic": result.Record.Topic, "partition": result.Record.Partition, "offset": result.Record.Offset,
		})
		if err != nil { // texts and numbers can be encoded
			panic(err)
		}
		d.Detail = detail
	}
	return deliveries
}

// record makes a record of a message. Messages of one order key go to one partition, in their order.
func (s *sender) record(ctx context.Context, m *adapter.Message) (*kgo.Record, error) {
	body, err := endpoint.Read(ctx, m, s.settings.MaxSize)
	if err != nil {
		return nil, err
	}
	record := &kgo.Record{Topic: s.address.topic, Value: body, Timestamp: m.ReceivedAt}
	key := m.OrderKey
	if s.settings.KeyProperty != "" {
		key = m.Property(s.settings.KeyProperty)
	}
	if key != "" {
		record.Key = []byte(key)
	}
	add := func(name, value string) {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	for header, value := range endpoint.Headers(s.settings.Headers, m) {
		add(header, value)
	}
	if m.ContentType != "" {
		add("content-type", m.ContentType)
	}
	add("parley-message-id", s.settings.IDPrefix+":"+strconv.FormatInt(m.ID, 10))
	return record, nil
}

// failure says what should follow an error.
func failure(ctx context.Context, topic string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the message is not produced: %w", errors.Join(ctx.Err(), err))
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge), errors.Is(err, kerr.InvalidRecord):
		return endpoint.Refused(fmt.Errorf("the topic %s does not take the message: %w", topic, err))
	default: // brokers that are away, no such topic, no right to it
		return endpoint.Away(fmt.Errorf("produce to the topic %s: %w", topic, err))
	}
}
