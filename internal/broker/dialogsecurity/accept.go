package dialogsecurity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

// arrived is a run on its way into the database.
type arrived struct {
	index    int // among the runs of the arrival
	run      transportstore.Run
	identity string
	at       side

	// Of a run that was sealed: its signer, and what its result is signed with.
	from   binding
	agreed *agreement
	salt   []byte
	// isBound: the database is known to have it so.
	isBound bool
	// isDoubtful marks a run in clear that continues a dialog which was not seen before: it may have been secured since.
	isDoubtful bool
	// digest is that of a large body, whose fragments are in the database.
	digest []byte
}

// mayBegin marks a first message.
func (a *arrived) mayBegin() bool { return a.run.FromInitiator && a.run.FirstSequence == 0 }

// maybeReplayed is the number of a first message that was sealed too long ago, or by a clock that is wrong.
const maybeReplayed = 28066

// errSecuredMeanwhile reports that a dialog was secured between the check of a run in clear and its acceptance.
var errSecuredMeanwhile = errors.New("a message came in clear for a dialog that is being secured")

// Accept implements [Guard].
func (d *Dialogs) Accept(ctx context.Context, db Beginner, arrival transportstore.Arrival) ([]transportstore.Result, error) {
	if err := d.tidy(ctx, db); err != nil {
		return nil, err
	}
	results, err := d.accept(ctx, db, arrival)
	if errors.Is(err, errSecuredMeanwhile) {
		// Now it is seen before it is accepted.
		results, err = d.accept(ctx, db, arrival)
	}
	return results, err
}

func (d *Dialogs) accept(ctx context.Context, db Beginner, arrival transportstore.Arrival) ([]transportstore.Result, error) {
	results := make([]transportstore.Result, len(arrival.Runs))
	open, err := d.openAll(ctx, db, arrival, results)
	if err != nil {
		return nil, err
	}
	if open, err = d.refuseDowngraded(ctx, db, open, results); err != nil {
		return nil, err
	}
	// Runs in clear, and runs known to come from the other side, need no transaction of ours around.
	isSettled := func(a *arrived) bool { return a.agreed == nil && !a.isDoubtful || a.isBound && a.run.Size == 0 }
	give := func(db parley.DB, open []*arrived) ([]transportstore.Result, error) {
		given := transportstore.Arrival{Speaker: arrival.Speaker}
		for _, a := range open {
			given.Runs, given.Identities = append(given.Runs, a.run), append(given.Identities, a.identity)
		}
		if len(open) == 0 {
			return nil, nil
		}
		return transportstore.AcceptArrival(ctx, db, given)
	}
	var taken []transportstore.Result
	if !slices.ContainsFunc(open, func(a *arrived) bool { return !isSettled(a) }) {
		taken, err = give(db, open)
	} else {
		err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) (err error) {
			if open, err = d.bind(ctx, tx, open, results); err != nil {
				return err
			}
			if open, err = d.refuseMixed(ctx, tx, open, results); err != nil {
				return err
			}
			if taken, err = give(tx, open); err != nil {
				return err
			}
			return d.confirmClear(ctx, tx, open, taken)
		})
	}
	if err != nil {
		return nil, err
	}
	if len(taken) != len(open) {
		return nil, fmt.Errorf("accept messages: %d results for %d runs", len(taken), len(open))
	}
	for i, a := range open {
		if taken[i].Outcome == transportstore.Accepted {
			// Its endpoint is there now, so nobody can take its place any more.
			d.bindings.put(a.at, a.from)
		}
		if a.agreed != nil && taken[i].ErrorNumber == maybeReplayed {
			d.counts.corrupted.Add(1)
			d.log.complain(undelivered, a.run.ConversationID, "28066: the first message was sealed too long ago, or by a wrong clock")
		} else if a.agreed != nil {
			d.counts.opened.Add(1)
			taken[i].Security = sign(a.agreed, a.salt, &arrival.Runs[a.index], &taken[i])
		}
		results[a.index] = taken[i]
	}
	return results, nil
}

// discard answers a run that cannot be opened. The answer cannot be taken for an acknowledgement (spec 6.10).
func (d *Dialogs) discard(run *transportstore.Run, result *transportstore.Result, reason string) {
	d.counts.corrupted.Add(1)
	d.log.complain(undelivered, run.ConversationID, reason)
	*result = holding(run, reason)
	result.Description = "The other side has discarded the message. " + reason
}

// refuse discards some of what was opened, and returns the rest.
func (d *Dialogs) refuse(open []*arrived, refused map[*arrived]bool, results []transportstore.Result, reason string) []*arrived {
	return slices.DeleteFunc(open, func(a *arrived) bool {
		if refused[a] {
			d.discard(&a.run, &results[a.index], reason)
		}
		return refused[a]
	})
}

// openAll opens what is sealed; results has the reason for each of the others.
func (d *Dialogs) openAll(
	ctx context.Context, db parley.DB, arrival transportstore.Arrival, results []transportstore.Result,
) ([]*arrived, error) {
	open := make([]*arrived, 0, len(arrival.Runs))
	for i, run := range arrival.Runs {
		a := &arrived{index: i, run: run, at: side{conversation: run.ConversationID, isInitiator: !run.FromInitiator}}
		if i < len(arrival.Identities) {
			a.identity = arrival.Identities[i]
		}
		var reason string
		var err error
		switch {
		case isSealed(run.Security):
			reason, err = d.open(ctx, db, arrival.Speaker, a)
		case run.IsEncrypted && !d.isLinkEncrypted:
			reason = "9727: it is of a dialog that is to be encrypted, and came in clear."
		}
		if err != nil {
			return nil, err
		}
		if reason != "" {
			d.discard(&run, &results[i], reason)
			continue
		}
		open = append(open, a)
	}
	return open, nil
}

// open opens a run in place, or returns why it cannot be opened.
func (d *Dialogs) open(ctx context.Context, db parley.DB, speaker transportstore.Speaker, a *arrived) (reason string, err error) {
	h, malformed := parseHeader(a.run.Security)
	if reason = reasonOf(malformed); reason != "" {
		return reason, nil
	}
	if reason, err = d.recognize(ctx, db, h, a.run.FromInitiator, a.run.ToService, a); reason != "" || err != nil {
		return reason, err
	}
	var tampered error
	a.run, a.digest, tampered = openRun(a.agreed, h, speaker, a.run)
	if reason = reasonOf(tampered); reason != "" {
		return reason, nil
	}
	a.salt = h.salt
	known, ok := d.bindings.get(a.at)
	// The database binds a message that may begin a dialog each time: a dialog that is known here may be over there, and forgotten.
	a.isBound = ok && known == a.from && !a.mayBegin()
	return "", nil
}

// reasonOf gives why something cannot be opened, "" when it can.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// recognize finds out under which agreement something was sealed, and by whom.
func (d *Dialogs) recognize(ctx context.Context, db parley.DB, h header, fromInitiator bool, service string, a *arrived) (string, error) {
	switch {
	case h.kind == kindKnown && fromInitiator, h.kind == kindAnonymous && !fromInitiator:
		return errMalformedHeader.Error(), nil
	case h.kind == kindKnown:
		secret, err := d.secretOf(ctx, db, h.keyID)
		if err != nil {
			_, reason, err := reasonOrError(err)
			return reason, err
		}
		a.agreed, a.from = &agreement{secret: secret}, binding{mode: truststore.AnonymousSecurity, keyID: string(h.keyID)}
		return "", nil
	}
	judgement, err := d.judge(ctx, db, h, service)
	if err != nil || judgement.Status != "" {
		return judgement.Status, err
	}
	agreed, ok := d.opened.get(string(h.agreement))
	if !ok {
		var reason string
		if agreed, reason = d.openAgreement(h, judgement); reason != "" {
			return reason, nil
		}
		d.opened.put(string(agreed.head), agreed)
	}
	a.agreed = agreed
	if h.kind == kindFull {
		a.from = binding{mode: truststore.FullSecurity, principal: judgement.SignerPrincipal}
		a.identity = truststore.CertificateIdentity(h.signer) + over(a.identity)
		return "", nil
	}
	a.from = binding{mode: truststore.AnonymousSecurity, keyID: string(keyIDOf(agreed.secret))}
	return "", nil
}

// judge asks what counts of the certificates that a header names, and believes it for a second.
func (d *Dialogs) judge(ctx context.Context, db parley.DB, h header, service string) (truststore.JudgedCertificates, error) {
	key := judged{signer: string(h.signer), receiver: string(h.receiver), service: service}
	if answer, ok := d.judgements.get(key); ok && answer.isYoungerThan(belief) {
		return answer.value, nil
	}
	answer, err := truststore.JudgeCertificates(ctx, db, h.signer, h.receiver, service)
	if err != nil {
		return answer, err
	}
	d.judgements.put(key, now(answer))
	return answer, nil
}

// openAgreement opens an agreement that was not seen before, with the private key of its receiver.
func (d *Dialogs) openAgreement(h header, judgement truststore.JudgedCertificates) (*agreement, string) {
	keys, err := openKeyPair(d.keys, [fingerprintSize]byte(h.receiver), judgement.PrivateKey)
	if err != nil {
		return nil, err.Error()
	}
	var signer *Certificate
	if h.kind == kindFull {
		certificate, err := ParseCertificate(judgement.SignerCertificate)
		if err != nil || !bytes.Equal(certificate.Fingerprint[:], h.signer) {
			return nil, errMalformedCertificate.Error()
		}
		signer = &certificate
	}
	agreed, err := openAgreement(h, signer, keys)
	if err != nil {
		return nil, err.Error()
	}
	return agreed, ""
}

// refuseDowngraded takes out what came in clear for a dialog that is secured.
func (d *Dialogs) refuseDowngraded(
	ctx context.Context, db parley.DB, open []*arrived, results []transportstore.Result,
) ([]*arrived, error) {
	var unknown []*arrived
	var conversations []parley.UUID
	var isInitiators []bool
	isDowngraded := map[*arrived]bool{}
	for _, a := range open {
		if a.agreed != nil {
			continue
		}
		if from, ok := d.bindings.get(a.at); ok {
			isDowngraded[a] = from.mode != ""
			continue
		}
		unknown = append(unknown, a)
		conversations, isInitiators = append(conversations, a.at.conversation), append(isInitiators, a.at.isInitiator)
	}
	if len(unknown) > 0 {
		answers, err := truststore.FindDowngraded(ctx, db, conversations, isInitiators)
		if err != nil {
			return nil, err
		}
		for i, a := range unknown {
			isDowngraded[a] = answers[i]
			a.isDoubtful = a.run.FirstSequence > 0 || a.run.Probe != nil
		}
	}
	return d.refuse(open, isDowngraded, results, "9727: it came in clear for a dialog that is secured."), nil
}

// confirmClear makes sure, once runs in clear are accepted, that no dialog of theirs is secured. The key that makes a dialog secured is
// committed with its first message, and these runs were accepted behind that.
func (d *Dialogs) confirmClear(ctx context.Context, tx pgx.Tx, open []*arrived, taken []transportstore.Result) error {
	var conversations []parley.UUID
	var isInitiators []bool
	for i, a := range open {
		if a.isDoubtful && i < len(taken) {
			conversations, isInitiators = append(conversations, a.at.conversation), append(isInitiators, a.at.isInitiator)
		}
	}
	if len(conversations) == 0 {
		return nil
	}
	answers, err := truststore.FindDowngraded(ctx, tx, conversations, isInitiators)
	if err != nil {
		return err
	}
	if slices.Contains(answers, true) {
		return errSecuredMeanwhile
	}
	return nil
}

// bind finds out in the database whether runs come from the other side of their dialogs, in the transaction that takes them in.
func (d *Dialogs) bind(ctx context.Context, tx pgx.Tx, open []*arrived, results []transportstore.Result) ([]*arrived, error) {
	var asked []*arrived
	for _, a := range open {
		if a.agreed != nil && !a.isBound {
			asked = append(asked, a)
		}
	}
	// In one order everywhere, so that two batches do not wait for each other.
	slices.SortStableFunc(asked, func(a, b *arrived) int { return bytes.Compare(a.at.conversation[:], b.at.conversation[:]) })
	bindings := make([]truststore.DialogBinding, len(asked))
	kept := map[string]bool{}
	for i, a := range asked {
		bindings[i] = truststore.DialogBinding{
			ConversationID: a.at.conversation, IsInitiator: a.at.isInitiator, Mode: a.from.mode, FarPrincipal: a.from.principal,
		}
		if a.from.keyID != "" {
			bindings[i].KeyID = []byte(a.from.keyID)
		}
		if a.from.keyID != "" && !a.at.isInitiator && !kept[a.from.keyID] {
			kept[a.from.keyID] = true
			if err := d.keepSecret(ctx, tx, a.agreed.secret); err != nil {
				return nil, err
			}
		}
	}
	answers, err := truststore.BindDialogs(ctx, tx, bindings)
	if err != nil {
		return nil, err
	}
	isForeign := map[*arrived]bool{}
	for i, a := range asked {
		isForeign[a] = !answers[i]
	}
	return d.refuse(open, isForeign, results, "28056: it was sealed by somebody who is not the other side of the dialog."), nil
}

// refuseMixed takes out large messages of which some part is not the sender's. The parts are thrown away, and sent again.
func (d *Dialogs) refuseMixed(ctx context.Context, tx pgx.Tx, open []*arrived, results []transportstore.Result) ([]*arrived, error) {
	isMixed := map[*arrived]bool{}
	for _, a := range open {
		if a.agreed == nil || a.run.Size == 0 {
			continue
		}
		isWhole, err := truststore.VerifyFragments(ctx, tx, a.at.conversation, !a.at.isInitiator, a.run.FirstSequence, a.run.Size, a.digest)
		if err != nil {
			return nil, err
		}
		isMixed[a] = !isWhole
	}
	return d.refuse(open, isMixed, results, "9736: a part of the message was changed on its way."), nil
}

// over adds the peer of the link to the signer of a run: both have to be trusted.
func over(identity string) string {
	if !strings.HasPrefix(identity, "peer:") {
		return ""
	}
	return " over " + identity
}
