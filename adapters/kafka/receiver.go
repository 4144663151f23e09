package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/parley-broker/parley/adapters/endpoint"
	"github.com/parley-broker/parley/flow/adapter"
)

// receiver takes the records of a topic in.
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
	r.address, _ = readAddress(e.Address)
	for _, broker := range r.address.brokers {
		if _, err := e.Permission.CheckConnect(broker); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Run takes in until ctx ends. The offsets of records are committed when they are in the message box.
func (r *receiver) Run(ctx context.Context, in adapter.Intake) error {
	made, err := options(ctx, r.endpoint, r.address, r.settings.Server)
	if err != nil {
		return err
	}
	start := kgo.NewOffset().AtStart()
	if r.settings.Start == latest {
		start = kgo.NewOffset().AtEnd()
	}
	client, err := kgo.NewClient(append(made,
		kgo.ConsumeTopics(r.address.topic), kgo.ConsumerGroup(r.settings.Group), kgo.ConsumeResetOffset(start), kgo.DisableAutoCommit(),
		// A partition goes to another node when what was polled is committed. Records of transactions that were rolled back are not read.
		kgo.BlockRebalanceOnPoll(), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)...)
	if err != nil {
		return fmt.Errorf("make a client of Kafka: %w", err)
	}
	defer client.CloseAllowingRebalance()
	if err := r.reach(ctx, client); err != nil {
		return endpoint.Ended(ctx, err)
	}
	for {
		if err := in.Await(ctx); err != nil {
			return endpoint.Ended(ctx, err)
		}
		err := r.turn(ctx, in, client)
		client.AllowRebalance()
		if err != nil || ctx.Err() != nil {
			return endpoint.Ended(ctx, err)
		}
	}
}

// idle is how long nothing comes before the brokers are asked whether they are there.
const idle = 10 * time.Second

// reach requires that a broker can be reached and takes the login. The client itself tries for ever, and reports nothing.
func (r *receiver) reach(ctx context.Context, client *kgo.Client) error {
	ctx, stop := context.WithTimeout(ctx, time.Duration(r.settings.Timeout))
	defer stop()
	if err := client.Ping(ctx); err != nil {
		return fmt.Errorf("reach Kafka at %s: %w", strings.Join(r.address.brokers, ", "), err)
	}
	return nil
}

// turn takes in what was fetched.
func (r *receiver) turn(ctx context.Context, in adapter.Intake, client *kgo.Client) error {
	polling, stop := context.WithTimeout(ctx, idle)
	fetched := client.PollRecords(polling, r.settings.BatchCount)
	stop()
	var errs []error
	fetched.EachError(func(topic string, partition int32, err error) {
		if !errors.Is(err, context.DeadlineExceeded) || polling.Err() == nil {
			errs = append(errs, fmt.Errorf("read partition %d of %s: %w", partition, topic, err))
		}
	})
	records := fetched.Records()
	if len(records) == 0 {
		if len(errs) == 0 && ctx.Err() == nil {
			client.AllowRebalance()
			return r.reach(ctx, client)
		}
		return errors.Join(errs...)
	}
	inputs := make([]adapter.Input, len(records))
	for n, record := range records {
		inputs[n] = r.input(record)
	}
	// A client that is kicked out of its group finds that out when it commits: then others take the same records, and find their keys.
	if err := endpoint.Take(ctx, r.endpoint, in, inputs, nil); err != nil {
		return err
	}
	if err := client.CommitRecords(ctx, records...); err != nil {
		return fmt.Errorf("commit what was read: %w", err)
	}
	return errors.Join(errs...)
}

func (r *receiver) input(record *kgo.Record) adapter.Input {
	header := func(name string) (string, bool) {
		for _, h := range record.Headers {
			if h.Key == name {
				return string(h.Value), true
			}
		}
		return "", false
	}
	input := adapter.Input{
		// Offsets of a topic that is made anew begin at 0 again: the time tells its records from those of the old one.
		Key: record.Topic + ":" + strconv.Itoa(int(record.Partition)) + ":" + strconv.FormatInt(record.Offset, 10) + ":" +
			strconv.FormatInt(record.Timestamp.UnixMilli(), 10),
		Body: record.Value, Size: int64(len(record.Value)), Promoted: endpoint.Promote(r.settings.Promoted, header),
	}
	input.ContentType, _ = header("content-type")
	if r.settings.KeyProperty != "" && record.Key != nil {
		if input.Promoted == nil {
			input.Promoted = map[string]any{}
		}
		input.Promoted[r.settings.KeyProperty] = string(record.Key)
	}
	if record.Value == nil {
		input.Failure = &adapter.Failure{Code: "receive.empty", Err: errors.New("the record has no value: it says that its key is gone")}
	}
	return input
}
