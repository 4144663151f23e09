package server

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/receive"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

const (
	// directoryMemory is how long an answer of the directory is kept: a change of it counts that much later at most.
	directoryMemory = 5 * time.Second
	// directoryEntries bounds how many are kept.
	directoryEntries = 10_000
)

// directory asks the database about recipients and senders of ours, and keeps for some seconds what holds for everybody.
type directory struct {
	pool *pgxpool.Pool

	mu    sync.Mutex
	known map[string]knownRecipient
}

type knownRecipient struct {
	check mailstore.RecipientCheck
	until time.Time
}

// Recipient gives nil for a recipient whom the directory takes.
func (d *directory) Recipient(ctx context.Context, asked receive.RecipientQuery) (*receive.Reply, error) {
	recipient, now := asked.Recipient.String(), time.Now()
	d.mu.Lock()
	kept, isKnown := d.known[recipient]
	d.mu.Unlock()
	if isKnown && now.Before(kept.until) {
		return refusalOf(kept.check), nil
	}
	check, err := mailstore.CheckRecipient(ctx, d.pool, recipient, asked.Sender.String(), asked.IsOriginating, asked.Size)
	if err != nil {
		return nil, err
	}
	if check.IsForAll {
		d.mu.Lock()
		if d.known == nil || len(d.known) >= directoryEntries {
			d.known = make(map[string]knownRecipient)
		}
		d.known[recipient] = knownRecipient{check, now.Add(directoryMemory)}
		d.mu.Unlock()
	}
	return refusalOf(check), nil
}

// Sender gives the limits of a sender of ours.
func (d *directory) Sender(ctx context.Context, sender message.Address) (bytes int64, recipients int, err error) {
	return mailstore.CheckSender(ctx, d.pool, sender.String())
}

// forget is called when the configuration has changed, and the directory with it.
func (d *directory) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = nil
}

// refusalOf is the reply with the status of a refusal, or nil.
func refusalOf(check mailstore.RecipientCheck) *receive.Reply {
	switch check.Status {
	case "":
		return nil
	case "5.1.1":
		return receive.NewReply(550, 1, 1, check.Reason)
	case "5.2.3":
		return receive.NewReply(552, 2, 3, check.Reason)
	default:
		return receive.NewReply(550, 7, 1, check.Reason)
	}
}
