package dialogsecurity

import (
	"slices"
	"strconv"
	"strings"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// transmissionFailed is the number of a reason without one: an error while transmitting.
const transmissionFailed = 9736

// Verify implements [Guard]. A forwarder could lose a message by saying that it was accepted, and end a conversation by saying that it
// was refused. A delay needs no signature: a forwarder can delay in any case.
func (d *Dialogs) Verify(
	_ transportstore.Speaker, runs []transportstore.Run, results []transportstore.Result,
) ([]transportstore.Result, int) {
	verified, isCopy, forged := results, false, 0
	for i := range min(len(runs), len(results)) {
		run, result := &runs[i], &results[i]
		if !isSealed(run.Security) || d.isGenuine(run, result) {
			continue
		}
		if !isCopy {
			verified, isCopy = slices.Clone(results), true
		}
		verified[i] = delaying(run, result)
		if isDelaying(result.Outcome) {
			continue
		}
		forged++
		d.counts.forged.Add(1)
		d.log.complain(unsigned, run.ConversationID, string(result.Outcome))
	}
	return verified, forged
}

func (d *Dialogs) isGenuine(run *transportstore.Run, result *transportstore.Result) bool {
	h, err := parseHeader(run.Security)
	if err != nil || len(result.Security) == 0 {
		return false
	}
	agreed, ok := d.sent.get(string(h.agreement))
	return ok && isSignedBy(agreed, h.salt, run, result)
}

func isDelaying(outcome transportstore.Outcome) bool {
	return outcome == transportstore.Held || outcome == transportstore.Unroutable || outcome == transportstore.Superseded
}

// delaying is the rest of a result that nobody has signed: a delay, and the reason that it gives. Its author is not known.
func delaying(run *transportstore.Run, result *transportstore.Result) transportstore.Result {
	if isDelaying(result.Outcome) {
		return transportstore.Result{
			Outcome: result.Outcome, Next: run.FirstSequence, ErrorNumber: result.ErrorNumber, Description: result.Description,
		}
	}
	return holding(run, "9757: the answer was not signed by the other side, and was not believed.")
}

// holding is the result for a run that cannot go on now. A reason begins with its number, as transmission_status has it.
func holding(run *transportstore.Run, reason string) transportstore.Result {
	number := int32(transmissionFailed)
	if digits, _, ok := strings.Cut(reason, ":"); ok {
		if n, err := strconv.ParseInt(digits, 10, 32); err == nil {
			number = int32(n)
		}
	}
	return transportstore.Result{Outcome: transportstore.Held, Next: run.FirstSequence, ErrorNumber: number, Description: reason}
}
