package service

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// run is messages that go by one statement: of one key in a simple queue, or of one type on a conversation.
type run struct {
	name   string // the key, or the type
	bodies [][]byte
}

// appended adds a message to the last run, or begins another one.
func appended(runs []run, name string, body []byte) []run {
	if last := len(runs) - 1; last >= 0 && runs[last].name == name {
		runs[last].bodies = append(runs[last].bodies, body)
		return runs
	}
	return append(runs, run{name, [][]byte{body}})
}

// sendAll sends messages, those of a key in their order.
func (s *sender) sendAll(ctx context.Context, tx pgx.Tx, messages []ready) error {
	if s.at.isSimple {
		return s.putAll(ctx, tx, messages)
	}
	demands := map[string]string{}
	types := make([]string, len(messages))
	for i, m := range messages {
		if types[i] = s.settings.MessageTypes[m.Type]; types[i] == "" {
			types[i] = s.settings.MessageType
		}
		if err := validate(ctx, tx, types[i], m.body, demands); err != nil {
			return err
		}
	}
	if s.settings.Conversation != perMessage {
		return s.sendOnKept(ctx, tx, messages, types)
	}
	for i, m := range messages {
		_, err := parley.SendAndEnd(ctx, tx, s.settings.FromService, s.at.name, types[i], m.body, s.options()...)
		if err != nil {
			return err
		}
	}
	return nil
}

// putAll puts messages into a simple queue, in the order of all.
func (s *sender) putAll(ctx context.Context, tx pgx.Tx, messages []ready) error {
	var runs []run
	for _, m := range messages {
		runs = appended(runs, s.key(m), m.body)
	}
	for _, r := range runs {
		options := []parley.PutOption{parley.WithPriority(s.settings.Priority)}
		if r.name != "" {
			options = append(options, parley.WithKey(r.name))
		}
		if err := parley.PutBatch(ctx, tx, s.at.name, r.bodies, options...); err != nil {
			return err
		}
	}
	return nil
}

// key gives the key of a message: that of the setting, or that of the order of the port.
func (s *sender) key(m ready) string {
	if s.settings.Key != "" {
		return m.Property(s.settings.Key)
	}
	return m.OrderKey
}

// sendOnKept sends messages on the conversations of their keys.
func (s *sender) sendOnKept(ctx context.Context, tx pgx.Tx, messages []ready, types []string) error {
	var keys []string
	byKey := map[string][]run{}
	for i, m := range messages {
		key := ""
		if s.settings.Conversation == perKey {
			key = s.key(m)
		}
		if byKey[key] == nil {
			keys = append(keys, key)
		}
		byKey[key] = appended(byKey[key], types[i], m.body)
	}
	for _, key := range keys {
		handle, err := s.conversation(ctx, tx, key)
		if err != nil {
			return err
		}
		for _, r := range byKey[key] {
			if err := parley.SendBatch(ctx, tx, handle, r.name, r.bodies); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sender) options() []parley.DialogOption {
	options := []parley.DialogOption{parley.OnContract(s.settings.Contract)}
	if s.settings.BrokerInstance != "" {
		options = append(options, parley.ToBrokerInstance(s.settings.BrokerInstance))
	}
	return options
}
