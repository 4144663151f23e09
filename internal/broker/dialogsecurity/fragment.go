package dialogsecurity

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// notStored reports that a fragment is not stored: the answer to the run that stands for its message gives the reason.
const notStored = -1

// AcceptFragment implements [Guard].
func (d *Dialogs) AcceptFragment(ctx context.Context, db Beginner, fragment transportstore.Fragment) (stored int64, err error) {
	a := &arrived{
		run: transportstore.Run{ConversationID: fragment.ConversationID, FirstSequence: fragment.Sequence},
		at:  side{conversation: fragment.ConversationID, isInitiator: !fragment.FromInitiator},
	}
	discarded := func(reason string) (int64, error) {
		var unused transportstore.Result
		d.discard(&a.run, &unused, reason)
		return notStored, nil
	}
	if !isSealed(fragment.Security) {
		open, err := d.refuseDowngraded(ctx, db, []*arrived{a}, make([]transportstore.Result, 1))
		if err != nil {
			return 0, err
		}
		if len(open) == 0 {
			return notStored, nil
		}
		fragment.Security, fragment.SealedAt = nil, time.Time{}
		return transportstore.AcceptFragment(ctx, db, fragment)
	}
	h, err := parseHeader(fragment.Security)
	if err != nil {
		return discarded(err.Error())
	}
	reason, err := d.recognize(ctx, db, h, fragment.FromInitiator, fragment.ToService, a)
	if err != nil {
		return 0, err
	}
	if reason != "" {
		return discarded(reason)
	}
	opened, err := cipherOfFragment(a.agreed.secret, h.salt, &fragment).Open(nil, nonceOf(fragment.Sequence, false), fragment.Data, nil)
	if err != nil {
		return discarded(errTampered.Error())
	}
	fragment.Data, fragment.Security, fragment.SealedAt = opened, nil, h.sealedAt()
	if a.identity != "" {
		fragment.Identity = a.identity + over(fragment.Identity)
	}
	if known, ok := d.bindings.get(a.at); ok && known == a.from {
		return transportstore.AcceptFragment(ctx, db, fragment)
	}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		open, err := d.bind(ctx, tx, []*arrived{a}, make([]transportstore.Result, 1))
		if err != nil {
			return err
		}
		stored = notStored
		if len(open) > 0 {
			stored, err = transportstore.AcceptFragment(ctx, tx, fragment)
		}
		return err
	})
	return stored, err
}
