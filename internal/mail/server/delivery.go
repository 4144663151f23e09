package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/mail/send"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

// deliveries is the dispatcher's side of the database.
type deliveries struct {
	pool   *pgxpool.Pool
	holder string
	bodies *bodyCache
}

var _ send.Store = (*deliveries)(nil)

// Claim claims messages, and groups them by their lease.
func (d *deliveries) Claim(ctx context.Context, hops, each int, lease time.Duration, passedBy []string) ([]send.Batch, error) {
	claimed, err := mailstore.Claim(ctx, d.pool, hops, each, lease, d.holder, passedBy)
	if err != nil {
		return nil, fmt.Errorf("claim messages: %w", err)
	}
	var batches []send.Batch
	for _, c := range claimed {
		if len(batches) == 0 || batches[len(batches)-1].Lease != c.Lease {
			batches = append(batches, send.Batch{Lease: c.Lease, Hop: hopOf(c.Lane)})
		}
		last := &batches[len(batches)-1]
		last.Deliveries = append(last.Deliveries, d.delivery(c))
	}
	return batches, nil
}

func (d *deliveries) delivery(c mailstore.Claimed) send.Delivery {
	message := send.Message{
		ID: c.NetworkMessageID, Sender: c.Sender, Return: c.Return, EnvelopeID: c.EnvelopeID, Size: c.Size, Received: c.ReceivedAt,
		EightBit: c.IsEightBit, UTF8: c.HasUTF8Addresses, IsOriginating: c.IsOriginating, Recipients: make([]send.Recipient, len(c.Addresses)),
		Open: func(ctx context.Context) (io.ReadCloser, error) {
			return &sizedBody{ReadCloser: d.open(ctx, c), size: c.Size}, nil
		},
	}
	for i, address := range c.Addresses {
		message.Recipients[i] = send.Recipient{Address: address, Notify: c.Notify[i], Original: c.Originals[i]}
	}
	for i, path := range c.ReturnPaths {
		message.Recipients[i].ReturnPath = path
	}
	return send.Delivery{Item: c.Item, MessageID: c.MessageID, Holder: c.BodyHolder, Ordinals: c.Ordinals, Message: message}
}

// open reads a body: from the claim, from memory, or from the database. A part of it never passes for the whole.
func (d *deliveries) open(ctx context.Context, c mailstore.Claimed) io.ReadCloser {
	if c.Body != nil {
		return io.NopCloser(bytes.NewReader(c.Body))
	}
	if kept := d.bodies.of(c.BodyHolder); kept != nil {
		return io.NopCloser(kept.Reader())
	}
	return &storedBody{ctx: ctx, pool: d.pool, cache: d.bodies, content: c.Content, holder: c.BodyHolder}
}

// Permit gives the part of a batch that may be sent now.
func (d *deliveries) Permit(ctx context.Context, batch send.Batch, ends send.Ends) ([]int64, error) {
	items, messages := make([]int64, len(batch.Deliveries)), make([]int64, len(batch.Deliveries))
	for i, delivery := range batch.Deliveries {
		items[i], messages[i] = delivery.Item, delivery.MessageID
	}
	permitted, err := mailstore.Permit(ctx, d.pool, laneOf(batch.Hop), batch.Lease, items, messages, ends.Host, ends.Source, ends.Remote)
	if err != nil {
		return nil, fmt.Errorf("ask for the rates: %w", err)
	}
	return permitted, nil
}

// Renew keeps leases. It waits for none that the database is busy with: one of them would have all others run out.
func (d *deliveries) Renew(ctx context.Context, leases []int64, lease time.Duration) (renewed, gone []int64, err error) {
	if renewed, gone, err = mailstore.Renew(ctx, d.pool, leases, lease, false); err != nil {
		return nil, nil, fmt.Errorf("renew leases: %w", err)
	}
	return renewed, gone, nil
}

// Record records outcomes, and then reports of hops, in one transaction: what was not tried has to be back in its lane before that waits.
func (d *deliveries) Record(ctx context.Context, outcomes []send.Outcome, hops []send.HopReport) (refused int, err error) {
	kept := d.bodies.kept(holders(outcomes))
	recorded, reported := columns(outcomes), reportsOf(hops)
	recorded.Lanes = reported.Lanes
	var unneeded []int64
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if len(outcomes) > 0 {
			if refused, err = mailstore.RecordOutcomes(ctx, tx, recorded); err != nil {
				return fmt.Errorf("record outcomes: %w", err)
			}
		}
		if len(kept) > 0 {
			if unneeded, err = mailstore.UnneededBodies(ctx, tx, kept); err != nil {
				return fmt.Errorf("ask which bodies are needed: %w", err)
			}
		}
		if len(hops) > 0 {
			if err := mailstore.ReportHops(ctx, tx, reported); err != nil {
				return fmt.Errorf("report next hops: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	d.bodies.drop(unneeded)
	return refused, nil
}

// dropUnneeded drops all bodies that nobody needs, whoever has seen to the last recipients: services, other daemons, operators.
func (d *deliveries) dropUnneeded(ctx context.Context) error {
	kept := d.bodies.kept(nil)
	if len(kept) == 0 {
		return nil
	}
	unneeded, err := mailstore.UnneededBodies(ctx, d.pool, kept)
	if err != nil {
		return fmt.Errorf("ask which bodies are needed: %w", err)
	}
	d.bodies.drop(unneeded)
	return nil
}

// holders gives the messages that hold bodies of which a recipient waits no more.
func holders(outcomes []send.Outcome) map[int64]bool {
	of := make(map[int64]bool)
	for _, outcome := range outcomes {
		for _, result := range outcome.Results {
			if result.Class == send.Delivered || result.Class == send.Failed {
				of[outcome.Delivery.Holder] = true
			}
		}
	}
	return of
}

// reportsOf writes reports of hops as the statement takes them.
func reportsOf(hops []send.HopReport) (reports mailstore.Hops) {
	for _, hop := range hops {
		text := ""
		if hop.Failure != nil {
			text = hop.Failure.Reason()
		}
		reports.Lanes, reports.Errors = append(reports.Lanes, laneOf(hop.Hop)), append(reports.Errors, text)
		reports.Began = append(reports.Began, hop.Began)
	}
	return reports
}

// columns writes outcomes as the statement takes them.
func columns(outcomes []send.Outcome) (o mailstore.Outcomes) {
	for _, outcome := range outcomes {
		if outcome.Results == nil {
			o.ReleasedLeases = append(o.ReleasedLeases, outcome.Lease)
			o.ReleasedItems = append(o.ReleasedItems, outcome.Delivery.Item)
			continue
		}
		for i, result := range outcome.Results {
			o.Leases, o.Items = append(o.Leases, outcome.Lease), append(o.Items, outcome.Delivery.Item)
			o.Messages, o.Ordinals = append(o.Messages, outcome.Delivery.MessageID), append(o.Ordinals, outcome.Delivery.Ordinals[i])
			o.Outcomes, o.Codes = append(o.Outcomes, outcomeOf(result)), append(o.Codes, int32(result.Code))
			o.Statuses, o.Texts = append(o.Statuses, result.Enhanced), append(o.Texts, result.Text)
			o.Hosts, o.ServerIPs = append(o.Hosts, result.Host), append(o.ServerIPs, result.Address)
			o.ConnectMS = append(o.ConnectMS, int32(outcome.Connect.Milliseconds()))
			o.TransferMS = append(o.TransferMS, int32(outcome.Transfer.Milliseconds()))
			o.Addresses = append(o.Addresses, outcome.Delivery.Message.Recipients[i].Address)
		}
	}
	return o
}

func outcomeOf(result send.Result) string {
	switch {
	case result.Class == send.Delivered && result.Duplicate:
		return "DUPLICATE"
	case result.Class == send.Delivered && result.Relayed:
		return "RELAYED"
	case result.Class == send.Delivered:
		return "DELIVERED"
	case result.Class == send.Failed:
		return "FAILED"
	case result.Class == send.Unknown:
		return "UNKNOWN"
	case result.Class == send.Rerouted:
		return "REROUTED"
	default:
		return "DEFERRED"
	}
}
