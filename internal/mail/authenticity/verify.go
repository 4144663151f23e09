package authenticity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"blitiri.com.ar/go/spf"
	"github.com/emersion/go-msgauth/authres"
	"github.com/emersion/go-msgauth/dkim"
	"github.com/emersion/go-msgauth/dmarc"
	"golang.org/x/net/publicsuffix"

	"github.com/parley-broker/parley/internal/mail/message"
)

// Resolver asks DNS. A *net.Resolver is one.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
	LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
	LookupAddr(ctx context.Context, addr string) ([]string, error)
}

// Verifier verifies messages. Its fields are set before it is used.
type Verifier struct {
	Resolver Resolver
	// Timeout bounds what DNS may take for one message: 20 s where it is zero.
	Timeout time.Duration
}

// signaturesMax is how many signatures of a message are verified. Others are passed over.
const signaturesMax = 5

// Verify verifies a message.
func (v *Verifier) Verify(ctx context.Context, m Message) (verdict Verdict) {
	ctx, cancel := context.WithTimeout(ctx, v.timeout())
	defer cancel()
	sender, signatures := &authres.SPFResult{Value: authres.ResultNone}, []*authres.DKIMResult(nil)
	var results []authres.Result
	switch {
	case m.Checks.SPF == Off:
	case m.SPF != nil:
		sender = m.SPF.result
	default:
		sender = v.verifySPF(ctx, m)
	}
	if m.Checks.SPF != Off {
		results = append(results, sender)
	}
	if m.Checks.DKIM != Off {
		signatures = v.verifyDKIM(ctx, m)
		for _, signature := range signatures {
			results = append(results, signature)
		}
		if len(signatures) == 0 {
			results = append(results, &authres.DKIMResult{Value: authres.ResultNone})
		}
	}
	policy := &authres.DMARCResult{Value: authres.ResultNone}
	if m.Checks.DMARC != Off {
		verdict, policy = v.verifyDMARC(ctx, m, sender, signatures)
		results = append(results, policy)
	}
	verdict.Field = message.NewField(message.ResultsField, formatted(m.Identity, results))
	verdict.Results = summary(sender, signatures, policy)
	return verdict
}

// formatted is the value of the header field. The library puts a blank behind each result, which is to part it from properties, also
// where there are none.
func formatted(identity string, results []authres.Result) string {
	if len(results) == 0 {
		return authres.Format(identity, nil)
	}
	var value strings.Builder
	value.WriteString(identity)
	for _, result := range results {
		value.WriteString(strings.TrimRight(authres.Format("", []authres.Result{result}), " "))
	}
	return value.String()
}

// VerifySender verifies by SPF whether a peer may use a sender.
func (v *Verifier) VerifySender(ctx context.Context, m Message) SenderVerdict {
	ctx, cancel := context.WithTimeout(ctx, v.timeout())
	defer cancel()
	result := v.verifySPF(ctx, m)
	isEnforced := m.Checks.SPF == Enforce
	return SenderVerdict{
		IsRefused: isEnforced && result.Value == authres.ResultFail, IsDeferred: isEnforced && result.Value == authres.ResultTempError,
		result: result,
	}
}

func (v *Verifier) timeout() time.Duration {
	if v.Timeout == 0 {
		return 20 * time.Second
	}
	return v.Timeout
}

// summary gives the results as the store keeps them.
func summary(sender *authres.SPFResult, signatures []*authres.DKIMResult, policy *authres.DMARCResult) json.RawMessage {
	type signature struct {
		Result string `json:"result"`
		Domain string `json:"domain,omitempty"`
	}
	text := struct {
		SPF   string      `json:"spf"`
		DKIM  []signature `json:"dkim"`
		DMARC string      `json:"dmarc"`
		From  string      `json:"from,omitempty"`
	}{SPF: string(sender.Value), DKIM: []signature{}, DMARC: string(policy.Value), From: clean(policy.From)}
	for _, s := range signatures {
		text.DKIM = append(text.DKIM, signature{string(s.Value), clean(s.Domain)})
	}
	encoded, err := json.Marshal(text)
	if err != nil { // there is nothing in it that cannot be encoded
		return nil
	}
	return encoded
}

// clean gives text that a database takes.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

func (v *Verifier) verifySPF(ctx context.Context, m Message) *authres.SPFResult {
	sender := m.Sender
	if sender == "" {
		sender = "postmaster@" + m.Helo
	}
	result := &authres.SPFResult{From: clean(m.Sender), Helo: clean(m.Helo)}
	found, err := spf.CheckHostWithSender(net.IP(m.Peer.AsSlice()), m.Helo, sender, spf.WithContext(ctx), spf.WithResolver(v.Resolver))
	result.Value = authres.ResultValue(found)
	if err != nil && found != spf.Pass && found != spf.None {
		result.Reason = oneLine(err)
	}
	return result
}

// oneLine gives an error as a reason.
func oneLine(err error) string {
	text := strings.Join(strings.Fields(clean(err.Error())), " ")
	return text[:min(len(text), 120)]
}

func (v *Verifier) verifyDKIM(ctx context.Context, m Message) (results []*authres.DKIMResult) {
	if _, isSigned := m.Header.Get("DKIM-Signature"); !isSigned {
		return nil
	}
	verifications, err := dkim.VerifyWithOptions(io.MultiReader(bytes.NewReader(m.Header.Bytes()), m.Body()), &dkim.VerifyOptions{
		LookupTXT:        func(name string) ([]string, error) { return v.Resolver.LookupTXT(ctx, name) },
		MaxVerifications: signaturesMax,
	})
	if err != nil && !errors.Is(err, dkim.ErrTooManySignatures) {
		return []*authres.DKIMResult{{Value: authres.ResultTempError, Reason: oneLine(err)}}
	}
	for _, verification := range verifications {
		result := &authres.DKIMResult{Value: authres.ResultPass, Domain: clean(verification.Domain), Identifier: clean(verification.Identifier)}
		switch err := verification.Err; {
		case err == nil:
		case dkim.IsTempFail(err):
			result.Value, result.Reason = authres.ResultTempError, oneLine(err)
		case dkim.IsPermFail(err):
			result.Value, result.Reason = authres.ResultPermError, oneLine(err)
		default:
			result.Value, result.Reason = authres.ResultFail, oneLine(err)
		}
		results = append(results, result)
	}
	return results
}

// verifyDMARC asks what the domain of the author says of messages for which it does not stand (RFC 7489).
func (v *Verifier) verifyDMARC(
	ctx context.Context, m Message, sender *authres.SPFResult, signatures []*authres.DKIMResult,
) (verdict Verdict, result *authres.DMARCResult) {
	domains, isClear := authorDomains(m.Header)
	if !isClear {
		result = &authres.DMARCResult{Value: authres.ResultPermError, Reason: "no single From"}
		return m.Checks.verdict(dmarc.PolicyReject, "the message has not one author"), result
	}
	result = &authres.DMARCResult{Value: authres.ResultNone}
	for _, domain := range domains { // several authors of several domains: each of these may object
		of, policy := v.evaluate(ctx, m, domain, sender, signatures)
		if result = of; policy != "" {
			verdict = m.Checks.verdict(policy, "the DMARC policy of "+domain+" is "+string(policy))
		}
		if of.Value == authres.ResultTempError && m.Checks.DMARC == Enforce {
			verdict = Verdict{IsDeferred: true, Reason: "DNS does not say whether " + domain + " stands for this message, try again later"}
		}
		if of.Value != authres.ResultPass {
			return verdict, result
		}
	}
	return verdict, result
}

// verdict follows a policy.
func (c Checks) verdict(policy dmarc.Policy, reason string) Verdict {
	switch {
	case c.DMARC != Enforce:
		return Verdict{}
	case policy == dmarc.PolicyReject:
		return Verdict{IsRefused: true, Reason: reason}
	case policy == dmarc.PolicyQuarantine:
		return Verdict{Quarantine: reason}
	}
	return Verdict{}
}

// authorDomains gives the domains of the authors. It is not clear who they are where there is not one From, or it cannot be read.
func authorDomains(header message.Header) (domains []string, isClear bool) {
	fields := header.All("From")
	if len(fields) != 1 {
		return nil, false
	}
	read := message.ParseMailboxes(fields[0].Value())
	if len(read.Unread) > 0 || read.IsOdd && len(read.List) > 1 {
		return nil, false
	}
	for _, one := range read.List {
		domain, err := message.CanonicalDomain(one.Address.Domain)
		if err != nil {
			return nil, false
		}
		domains = append(domains, domain)
	}
	return domains, len(domains) > 0
}

// domainOf gives the text behind the last @, or false where there is none.
func domainOf(address string) (domain string, hasDomain bool) {
	i := strings.LastIndexByte(address, '@')
	return address[i+1:], i >= 0
}

// evaluate applies the record of one domain. The policy is nothing where the domain stands for the message, or says nothing.
func (v *Verifier) evaluate(
	ctx context.Context, m Message, domain string, sender *authres.SPFResult, signatures []*authres.DKIMResult,
) (result *authres.DMARCResult, policy dmarc.Policy) {
	result = &authres.DMARCResult{Value: authres.ResultNone, From: clean(domain)}
	record, isOrganization, err := v.record(ctx, domain)
	switch {
	case errors.Is(err, dmarc.ErrNoPolicy):
		return result, ""
	case dmarc.IsTempFail(err):
		result.Value = authres.ResultTempError
		return result, ""
	case err != nil:
		result.Value, result.Reason = authres.ResultPermError, oneLine(err)
		return result, ""
	}
	isTemporary := sender.Value == authres.ResultTempError
	senderDomain, hasDomain := domainOf(m.Sender)
	if !hasDomain {
		senderDomain = m.Helo
	}
	if sender.Value == authres.ResultPass && isAligned(senderDomain, domain, record.SPFAlignment) {
		result.Value = authres.ResultPass
	}
	for _, signature := range signatures {
		if signature.Value == authres.ResultPass && isAligned(signature.Domain, domain, record.DKIMAlignment) {
			result.Value = authres.ResultPass
		}
		isTemporary = isTemporary || signature.Value == authres.ResultTempError
	}
	if result.Value == authres.ResultPass {
		return result, ""
	}
	policy = record.Policy
	if isOrganization && record.SubdomainPolicy != "" {
		policy = record.SubdomainPolicy
	}
	if isTemporary && policy != dmarc.PolicyNone {
		result.Value = authres.ResultTempError
		return result, ""
	}
	result.Value = authres.ResultFail
	return result, sampled(record.Percent, policy, rand.IntN(100))
}

// record gives the record of a domain, or that of its organization.
func (v *Verifier) record(ctx context.Context, domain string) (record *dmarc.Record, isOrganization bool, err error) {
	options := &dmarc.LookupOptions{LookupTXT: func(name string) ([]string, error) { return v.lookupPolicy(ctx, name) }}
	record, err = dmarc.LookupWithOptions(domain, options)
	organization := organizationOf(domain)
	if errors.Is(err, dmarc.ErrNoPolicy) && organization != domain {
		record, err = dmarc.LookupWithOptions(organization, options)
		return record, true, err
	}
	return record, false, err
}

// sampled gives the policy for one message where the record asks for it to be applied to a share of them: others get the next milder one.
// Which message is among them says a number that is drawn from 0 to 99.
func sampled(percent *int, policy dmarc.Policy, drawn int) dmarc.Policy {
	switch {
	case percent == nil || drawn < *percent:
		return policy
	case policy == dmarc.PolicyReject:
		return dmarc.PolicyQuarantine
	}
	return dmarc.PolicyNone
}

func isAligned(authenticated, author string, mode dmarc.AlignmentMode) bool {
	authenticated = strings.ToLower(strings.TrimSuffix(authenticated, "."))
	if authenticated == "" {
		return false
	}
	if mode == dmarc.AlignmentStrict {
		return authenticated == author
	}
	return organizationOf(authenticated) == organizationOf(author)
}

// organizationOf gives the domain that an organization has registered.
func organizationOf(domain string) string {
	organization, err := publicsuffix.EffectiveTLDPlusOne(domain)
	if err != nil {
		return domain
	}
	return organization
}
