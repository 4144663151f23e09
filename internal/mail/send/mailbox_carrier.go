package send

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/parley-broker/parley/internal/mail/maildir"
)

// MailboxStore is where mailboxes are (spec section 12.1).
type MailboxStore struct {
	// Network and Address are those of an LMTP server; "" for a store of Maildirs.
	Network, Address string
	// Dial connects to an LMTP server; nil means that of the network.
	Dial func(ctx context.Context, dialer *net.Dialer, network, address string) (net.Conn, error)
	// Open and Path are where Maildirs stand, as in [maildir.Store].
	Open func() (*os.Root, error)
	Path string
	// FullIsPermanent is whether a mailbox that is full fails at once (5.2.2), instead of being tried until the message expires.
	FullIsPermanent bool
	Hello           string
	// Recipients bounds those of one transaction by LMTP; 0 means one: stores write Delivered-To where there is one, and not where there are
	// several.
	Recipients int
	Limits     Limits
	Timeouts   Timeouts
}

// MailboxCarrier delivers into mailbox stores, by LMTP or into Maildirs.
type MailboxCarrier struct {
	// Store is a store by its name.
	Store func(name string) (MailboxStore, bool)
}

var _ Carrier = (*MailboxCarrier)(nil)

// Limits are those of the store.
func (m *MailboxCarrier) Limits(hop Hop) Limits {
	store, _ := m.Store(hop.Connector)
	return store.Limits
}

// Connect opens the store.
func (m *MailboxCarrier) Connect(ctx context.Context, hop Hop) (Way, error) {
	store, known := awaitKnown(ctx, m.Store, hop.Connector)
	switch {
	case !known:
		return nil, &OpenError{Result{Enhanced: "4.3.5", Text: fmt.Sprintf("the mailbox store %s is gone", hop.Connector), HostFailed: true}}
	case store.Address != "":
		opened, err := Open(ctx, Target{
			Host: hop.Connector, Network: store.Network, Address: store.Address, Dial: store.Dial,
			LMTP: true, TLS: TLSPolicy{Mode: TLSOff}, Hello: store.Hello,
			Recipients: cmp.Or(store.Recipients, 1), Timeouts: store.Timeouts,
		})
		if err != nil {
			return nil, err
		}
		return answered{Way: opened, fullIsPermanent: store.FullIsPermanent}, nil
	default:
		return &maildirs{name: hop.Connector, store: maildir.Store{Open: store.Open, Path: store.Path}}, nil
	}
}

// answered understands what mailbox stores answer: that a mailbox has moved, and that one is full.
type answered struct {
	Way
	fullIsPermanent bool
}

// Send sends a message.
func (a answered) Send(ctx context.Context, message Message) []Result {
	results := a.Way.Send(ctx, message)
	for i, result := range results {
		switch {
		case result.Code == 551 || result.Enhanced == "5.1.6" || result.Enhanced == "4.1.6":
			results[i].Class = Rerouted
		case result.Class == Deferred && result.Enhanced == "4.2.2" && a.fullIsPermanent:
			results[i].Class, results[i].Enhanced = Failed, "5.2.2"
		}
	}
	return results
}

// maildirs is the way into a store of Maildirs.
type maildirs struct {
	name     string
	store    maildir.Store
	messages int
}

// Send delivers a message into the mailbox of each recipient.
func (m *maildirs) Send(ctx context.Context, message Message) []Result {
	m.messages++
	results := make([]Result, len(message.Recipients))
	for i, recipient := range message.Recipients {
		results[i] = m.deliver(ctx, message, recipient)
	}
	return results
}

func (m *maildirs) deliver(ctx context.Context, message Message, recipient Recipient) Result {
	if ctx.Err() != nil {
		return Result{Enhanced: "4.3.2", Text: "the mail system is stopping"}
	}
	body, err := message.Open(ctx)
	if err != nil {
		return Result{Enhanced: "4.3.0", Text: oneLine("read the message: " + err.Error()), Host: m.name}
	}
	defer func() { _ = body.Close() }()
	delivered, err := m.store.Deliver(maildir.Delivery{
		ID: message.ID + "/" + recipient.Address, Sender: cmp.Or(recipient.ReturnPath, message.Sender), Recipient: recipient.Address,
		Body: body, Size: message.Size, Confirm: func() error { return message.confirm(ctx) },
	})
	switch {
	case errors.Is(err, maildir.ErrMailbox):
		return Result{Class: Failed, Enhanced: "5.1.3", Text: oneLine(err.Error()), Host: m.name}
	case err != nil:
		return Result{Enhanced: "4.3.0", Text: oneLine(err.Error()), Host: m.name}
	case !delivered:
		return Result{
			Class: Delivered, Enhanced: "2.0.0", Text: "the mailbox has the message from an earlier attempt", Host: m.name,
			Duplicate: true,
		}
	default:
		return Result{Class: Delivered, Enhanced: "2.0.0", Text: "delivered to the mailbox", Host: m.name}
	}
}

// Usable is always so.
func (m *maildirs) Usable() bool { return true }

// Messages is how many were delivered.
func (m *maildirs) Messages() int { return m.messages }

// Offers is whether files take what an extension is for: they take all bytes.
func (m *maildirs) Offers(extension string) bool {
	return extension == "8BITMIME" || extension == "SMTPUTF8"
}

// Ends are nothing: there is no host.
func (m *maildirs) Ends() Ends { return Ends{Host: m.name} }

// Close does nothing: there is nothing open.
func (m *maildirs) Close() {}
