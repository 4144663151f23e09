package parley

import (
	"context"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// dialog holds the arguments of BEGIN DIALOG that may be left out; nil is the broker's default.
type dialog struct {
	contract       *string
	brokerInstance *string
	lifetime       *int32
	encryption     bool
	conversation   UUID
	group          UUID
	key            *string
	deliverAt      *time.Time
	allowsUnknown  *bool
}

// DialogOption changes how [BeginDialog] begins a dialog.
type DialogOption func(*dialog)

// OnContract names the contract; without it the contract is DEFAULT.
func OnContract(name string) DialogOption {
	return func(d *dialog) { d.contract = &name }
}

// ToBrokerInstance names the broker instance that holds the target service: its id, or [CurrentDatabase].
// Without it any instance may take the dialog.
func ToBrokerInstance(id string) DialogOption {
	return func(d *dialog) { d.brokerInstance = &id }
}

// CurrentDatabase, for [ToBrokerInstance], is the database that begins the dialog.
const CurrentDatabase = "CURRENT DATABASE"

// WithLifetime ends the dialog with an error on both sides when it is still open after so long, in whole seconds
// (rounded up). Without it the dialog lives for 68 years.
func WithLifetime(lifetime time.Duration) DialogOption {
	return func(d *dialog) { d.lifetime = new(pgdb.Seconds(lifetime)) }
}

// WithoutEncryption allows messages of the dialog to leave the database unencrypted.
func WithoutEncryption() DialogOption {
	return func(d *dialog) { d.encryption = false }
}

// RelatedTo puts the dialog into the conversation group of another conversation of the same service.
func RelatedTo(handle UUID) DialogOption {
	return func(d *dialog) { d.conversation = handle }
}

// InGroup puts the dialog into a conversation group, which is created when it does not exist.
func InGroup(group UUID) DialogOption {
	return func(d *dialog) { d.group = group }
}

// BegunOnce gives a dialog a deduplication key, of 1 to 256 characters: when the service has begun one with the same key before, no
// longer ago than its DeduplicationSeconds, none is begun and nothing is sent, and the handle of the first is returned.
func BegunOnce(key string) DialogOption {
	return func(d *dialog) { d.key = &key }
}

// FirstMessageAt has [BeginAndSend] and [SendAndEnd] send their message not before a time, by the clock of the database, as
// [SentAt] does.
func FirstMessageAt(due time.Time) DialogOption {
	return func(d *dialog) { d.deliverAt = &due }
}

// ToUnknownTarget begins the dialog even where nothing leads to its target: what is sent waits until something does. Without it such a
// dialog is refused, unless the setting parley.allow_unknown_targets is on.
func ToUnknownTarget() DialogOption {
	return func(d *dialog) { d.allowsUnknown = new(true) }
}

func dialogOf(options []DialogOption) dialog {
	d := dialog{encryption: true}
	for _, option := range options {
		option(&d)
	}
	return d
}

// BeginDialog begins a dialog from a service of this database to a service that may be anywhere, and returns the
// handle of its conversation. Nothing is sent yet, and whether a target in another database exists is not checked.
//
// Errors: an [Error] with number 8423 when the service fromService is unknown, 8425 when the contract is; 9750, 9785, 9795 or 9796 when
// nothing could lead to the target (see [ToUnknownTarget]).
func BeginDialog(ctx context.Context, db DB, fromService, toService string, options ...DialogOption) (UUID, error) {
	d := dialogOf(options)
	var handle UUID
	err := db.QueryRow(ctx, `
		select parley.begin_dialog(
			from_service => $1, to_service => $2, contract => coalesce($3, 'DEFAULT'), broker_instance => $4,
			lifetime => coalesce($5, 2147483647), encryption => $6, related_conversation => $7, related_conversation_group => $8,
			deduplication_key => $9, allow_unknown_target => $10
		)`, fromService, toService, d.contract, d.brokerInstance, d.lifetime, d.encryption, d.conversation, d.group, d.key,
		d.allowsUnknown).Scan(&handle)
	if err != nil {
		return UUID{}, pgdb.StatementError(err, "begin dialog from "+fromService+" to "+toService)
	}
	return handle, nil
}

// BeginDialogOnce begins a dialog as [BeginDialog] does with [BegunOnce], and reports whether one was begun with the same deduplication
// key before: then it gives the handle of that one.
//
// Errors: as [BeginDialog], and 8402 for a key that is empty or too long.
func BeginDialogOnce(
	ctx context.Context, db DB, fromService, toService, deduplicationKey string, options ...DialogOption,
) (handle UUID, isDuplicate bool, err error) {
	d := dialogOf(options)
	err = db.QueryRow(ctx, `
		select s.conversation_handle, s.is_duplicate
		from parley.begin_dialog_once(
			from_service => $1, to_service => $2, deduplication_key => $3, contract => coalesce($4, 'DEFAULT'), broker_instance => $5,
			lifetime => coalesce($6, 2147483647), encryption => $7, related_conversation => $8, related_conversation_group => $9,
			allow_unknown_target => $10
		) as s`, fromService, toService, deduplicationKey, d.contract, d.brokerInstance, d.lifetime, d.encryption, d.conversation, d.group,
		d.allowsUnknown).Scan(&handle, &isDuplicate)
	if err != nil {
		return UUID{}, false, pgdb.StatementError(err, "begin dialog from "+fromService+" to "+toService)
	}
	return handle, isDuplicate, nil
}
