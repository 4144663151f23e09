package parley

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// pooled holds the arguments of get_conversation that may be left out; nil is the broker's default.
type pooled struct {
	dialog

	key           *string
	conversations *int32
	maxAge        *int32
	maxMessages   *int32
}

// PoolOption changes which conversation [GetConversation] gives.
type PoolOption func(*pooled)

// ForKey gives the conversation of a key: what is sent with the same key is received in order.
func ForKey(key string) PoolOption {
	return func(p *pooled) { p.key = &key }
}

// PoolDialog gives conversations that were begun with these options: [OnContract], [ToBrokerInstance] or [WithoutEncryption]. Others are
// refused.
func PoolDialog(options ...DialogOption) PoolOption {
	return func(p *pooled) {
		for _, option := range options {
			option(&p.dialog)
		}
	}
}

// OverConversations spreads sessions that give no key over so many conversations, 1 to 1,000; without it they are 8.
func OverConversations(conversations int32) PoolOption {
	return func(p *pooled) { p.conversations = &conversations }
}

// ReplacedAfter replaces a conversation by another one when it is so old, in whole seconds (rounded up), or when the far side has
// received so many messages from it. Without it these are an hour and 100,000; zero keeps the one or the other.
func ReplacedAfter(age time.Duration, messages int32) PoolOption {
	return func(p *pooled) {
		if age != 0 {
			p.maxAge = new(pgdb.Seconds(age))
		}
		if messages != 0 {
			p.maxMessages = &messages
		}
	}
}

func newPooled(options []PoolOption) (pooled, error) {
	p := pooled{dialog: dialog{encryption: true}}
	for _, option := range options {
		option(&p)
	}
	if p.lifetime != nil || p.conversation != (UUID{}) || p.group != (UUID{}) {
		return p, fmt.Errorf("conversations that are used again have neither a lifetime nor a relation to others")
	}
	if p.allowsUnknown != nil {
		return p, fmt.Errorf("conversations that are used again go to unknown targets by the setting parley.allow_unknown_targets")
	}
	return p, nil
}

// GetConversation returns the handle of an open conversation between two services, which may have been used before, and begins one
// when there is none. It is good for the transaction, and a minute longer: ask again in each transaction, and do not end it, as
// others have it too.
//
// Errors: as [BeginDialog].
func GetConversation(ctx context.Context, db DB, fromService, toService string, options ...PoolOption) (UUID, error) {
	p, err := newPooled(options)
	if err != nil {
		return UUID{}, fmt.Errorf("get a conversation from %s to %s: %w", fromService, toService, err)
	}
	var handle UUID
	err = db.QueryRow(ctx, `
		select parley.get_conversation(
			from_service => $1, to_service => $2, contract => coalesce($3, 'DEFAULT'), broker_instance => $4, encryption => $5, key => $6,
			conversations => coalesce($7, 8), max_age => coalesce($8, 3600), max_messages => coalesce($9, 100000)
		)`, fromService, toService, p.contract, p.brokerInstance, p.encryption, p.key, p.conversations, p.maxAge, p.maxMessages).Scan(&handle)
	if err != nil {
		return UUID{}, pgdb.StatementError(err, "get a conversation from "+fromService+" to "+toService)
	}
	return handle, nil
}

// WarmConversations begins the conversations that [GetConversation] returns without a key, before they are needed. It returns how
// many it has begun; those that were there are left alone.
//
// Errors: as [BeginDialog].
func WarmConversations(ctx context.Context, db DB, fromService, toService string, options ...PoolOption) (int, error) {
	p, err := newPooled(options)
	if err == nil && p.key != nil {
		err = fmt.Errorf("those with a key are begun when they are needed")
	}
	if err != nil {
		return 0, fmt.Errorf("warm conversations from %s to %s: %w", fromService, toService, err)
	}
	var begun int
	err = db.QueryRow(ctx, `
		select parley.warm_conversations(
			from_service => $1, to_service => $2, contract => coalesce($3, 'DEFAULT'), broker_instance => $4, encryption => $5,
			conversations => coalesce($6, 8), max_age => coalesce($7, 3600), max_messages => coalesce($8, 100000)
		)`, fromService, toService, p.contract, p.brokerInstance, p.encryption, p.conversations, p.maxAge, p.maxMessages).Scan(&begun)
	if err != nil {
		return 0, pgdb.StatementError(err, "warm conversations from "+fromService+" to "+toService)
	}
	return begun, nil
}
