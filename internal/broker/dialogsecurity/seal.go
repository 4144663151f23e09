package dialogsecurity

import (
	"context"
	"fmt"

	"github.com/parley-broker/parley"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

// Seal implements [Guard].
func (d *Dialogs) Seal(
	ctx context.Context, db parley.DB, speaker transportstore.Speaker, runs []transportstore.Run,
) ([]transportstore.Run, []Held, error) {
	d.notice(speaker)
	if err := d.tidy(ctx, db); err != nil {
		return nil, nil, err
	}
	concerns := func(run *transportstore.Run) bool {
		if run.FromInitiator {
			return run.IsBound || run.IsEncrypted && !d.isLinkEncrypted
		}
		// Another daemon may have let in a dialog just now, so the side that answers always asks.
		return run.IsEncrypted
	}
	plans, err := d.plansFor(ctx, db, runs, concerns)
	if err != nil {
		return nil, nil, err
	}
	// No other call has this salt, so no key is used twice: not for a run that is sent again, nor for a number that was given
	// again after the database had lost it. Its time is that of this transmission, however long the messages have waited.
	salt := newSalt(d.clock())
	sealed, held := make([]transportstore.Run, 0, len(runs)), []Held(nil)
	for i := range runs {
		run := &runs[i]
		if !concerns(run) {
			sealed = append(sealed, unsealed(*run))
			continue
		}
		agreed, status, err := d.agreementFor(ctx, db, run, plans)
		switch {
		case err != nil:
			return nil, nil, err
		case status != "":
			held = append(held, Held{EndpointID: run.EndpointID, FirstSequence: run.FirstSequence, Result: holding(run, status)})
		case agreed == nil:
			sealed = append(sealed, unsealed(*run))
		default:
			var digest []byte
			if run.Size > 0 {
				if digest, err = truststore.DigestBody(ctx, db, run.EndpointID, run.FirstSequence); err != nil {
					return nil, nil, err
				}
			}
			d.counts.sealed.Add(1)
			sealed = append(sealed, sealRun(agreed, salt, speaker, *run, digest))
		}
	}
	return sealed, held, nil
}

// plansFor reports how each of the runs that it concerns is to be sealed; what was once recorded of a dialog never changes.
func (d *Dialogs) plansFor(
	ctx context.Context, db parley.DB, runs []transportstore.Run, concerns func(*transportstore.Run) bool,
) (map[int64]truststore.DialogPlan, error) {
	var plans map[int64]truststore.DialogPlan
	var unknown []int64
	for i := range runs {
		id := runs[i].EndpointID
		if !concerns(&runs[i]) {
			continue
		}
		if plans == nil {
			plans = map[int64]truststore.DialogPlan{}
		}
		if _, ok := plans[id]; ok {
			continue
		}
		plan, ok := d.plans.get(id)
		if !ok {
			plan.EndpointID = id
			plan.Status = "9736: the conversation is no longer here."
			unknown = append(unknown, id)
		}
		plans[id] = plan
	}
	if len(unknown) == 0 {
		return plans, nil
	}
	found, err := truststore.PlanDialogs(ctx, db, unknown, d.isLinkEncrypted)
	if err != nil {
		return nil, err
	}
	for _, plan := range found {
		if plan.IsRecorded || plan.Mode == truststore.Unsecured {
			d.plans.put(plan.EndpointID, plan)
		}
		plans[plan.EndpointID] = plan
	}
	return plans, nil
}

// agreementFor gives the agreement under which a run is sealed, nil when it is to stay in clear, or a status why it cannot leave.
func (d *Dialogs) agreementFor(
	ctx context.Context, db parley.DB, run *transportstore.Run, plans map[int64]truststore.DialogPlan,
) (agreed *agreement, status string, err error) {
	plan := plans[run.EndpointID]
	if plan.Status != "" {
		return nil, plan.Status, nil
	}
	if plan.Mode == truststore.Unsecured {
		return nil, "", nil
	}
	if !run.FromInitiator && plan.Mode == truststore.AnonymousSecurity {
		return d.agreementOfReply(ctx, db, plan)
	}
	receiver, err := d.certificateOf(ctx, db, plan.FarPrincipal, false)
	if err != nil || receiver.status != "" {
		return nil, receiver.status, err
	}
	signer := heldCertificate{}
	if plan.Mode == truststore.FullSecurity {
		if signer, err = d.certificateOf(ctx, db, plan.OwnPrincipal, true); err != nil || signer.status != "" {
			return nil, signer.status, err
		}
	}
	if !plan.IsRecorded {
		if plan, status, err = d.secure(ctx, db, plan); err != nil || status != "" {
			return nil, status, err
		}
		plans[run.EndpointID] = plan
	}
	key := pair{receiver: string(receiver.certificate.Fingerprint[:]), keyID: string(plan.KeyID)}
	if plan.Mode == truststore.FullSecurity {
		key.signer = string(signer.certificate.Fingerprint[:])
	}
	if made, ok := d.made.get(key); ok && made.isYoungerThan(agreementAge) {
		return made.value, "", nil
	}
	if plan.Mode == truststore.FullSecurity {
		agreed, err = agree(newSecret(), receiver.certificate, &signer.certificate, signer.keys)
	} else {
		var secret string
		if secret, err = d.secretOf(ctx, db, plan.KeyID); err != nil {
			return reasonOrError(err)
		}
		agreed, err = agree(secret, receiver.certificate, nil, keyPair{})
	}
	if err != nil {
		return nil, "", err
	}
	d.made.put(key, now(agreed))
	d.sent.put(string(agreed.head), agreed)
	return agreed, "", nil
}

// agreementOfReply is that of the target of an anonymous dialog: the secret of the initiator.
func (d *Dialogs) agreementOfReply(ctx context.Context, db parley.DB, plan truststore.DialogPlan) (*agreement, string, error) {
	key := pair{keyID: string(plan.KeyID)}
	if made, ok := d.made.get(key); ok {
		return made.value, "", nil
	}
	secret, err := d.secretOf(ctx, db, plan.KeyID)
	if err != nil {
		return reasonOrError(err)
	}
	agreed := known(secret)
	d.made.put(key, now(agreed))
	d.sent.put(string(agreed.head), agreed)
	return agreed, "", nil
}

func reasonOrError(err error) (*agreement, string, error) {
	if isReason(err) {
		return nil, err.Error(), nil
	}
	return nil, "", err
}

// secure records how a dialog is secured before its first message leaves. Another daemon may have been faster.
func (d *Dialogs) secure(ctx context.Context, db parley.DB, plan truststore.DialogPlan) (truststore.DialogPlan, string, error) {
	if plan.Mode == truststore.AnonymousSecurity {
		secret, status, err := d.newAnonymousSecret(ctx, db, plan.FarPrincipal)
		if err != nil || status != "" {
			return plan, status, err
		}
		plan.KeyID = keyIDOf(secret)
	}
	recorded, ok, err := truststore.SecureDialog(ctx, db, plan)
	if err != nil {
		return plan, "", err
	}
	if !ok {
		return plan, "9736: the conversation is no longer here.", nil
	}
	d.plans.put(recorded.EndpointID, recorded)
	return recorded, "", nil
}

// newAnonymousSecret gives the secret for new anonymous dialogs with a role; it is stored before it is used.
func (d *Dialogs) newAnonymousSecret(ctx context.Context, db parley.DB, principal uint32) (secret, status string, err error) {
	d.mu.Lock()
	current := d.anonymous[principal]
	d.mu.Unlock()
	if current.isYoungerThan(agreementAge) {
		return current.value, "", nil
	}
	secret = newSecret()
	if err := d.keepSecret(ctx, db, secret); err != nil {
		if isReason(err) {
			return "", err.Error(), nil
		}
		return "", "", err
	}
	d.secrets.put(string(keyIDOf(secret)), secret)
	d.mu.Lock()
	d.anonymous[principal] = now(secret)
	d.mu.Unlock()
	return secret, "", nil
}

// SealFragment implements [Guard].
func (d *Dialogs) SealFragment(run transportstore.Run, fragment transportstore.Fragment) (transportstore.Fragment, error) {
	if !isSealed(run.Security) {
		fragment.Security = run.Security
		return fragment, nil
	}
	h, err := parseHeader(run.Security)
	if err != nil {
		return fragment, fmt.Errorf("seal a fragment: %w", err)
	}
	agreed, ok := d.sent.get(string(h.agreement))
	if !ok {
		return fragment, fmt.Errorf("seal a fragment: the run of the message was sealed too long ago")
	}
	salt := newSalt(d.clock())
	sealed := fragment
	sealed.Security = append(append(make([]byte, 0, len(h.agreement)+saltSize), h.agreement...), salt...)
	sealed.Data = cipherOfFragment(agreed.secret, salt, &sealed).Seal(nil, nonceOf(fragment.Sequence, false), fragment.Data, nil)
	return sealed, nil
}
