package checker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/verify/checker"
)

// code stands for that of the error with which lost history ends a dialog.
const code = -8470

// observed is the good history, with all that can be seen of it.
func observed() checker.History {
	h := good()
	h.EndsReceived = append(h.EndsReceived, checker.EndReceived{Direction: back, Kind: checker.EndError, Text: "why", Code: 1, Seq: 2})
	h.Prefixes = []checker.Prefix{{Direction: there, Stream: "a", Received: 1, Sent: 2}}
	h.Undone = []checker.Undone{{Direction: there, Hash: "never"}}
	h.PutBack = []checker.Received{{Direction: there, Stream: "a", N: 1, Hash: "one"}}
	h.Acknowledged = []checker.Mark{{Direction: there, Next: 2}}
	h.Forgotten = []checker.Mark{{Direction: there, Next: 2}}
	h.Expects = []checker.Mark{{Direction: there, Next: 3}}
	h.Survived = []checker.Sent{{Direction: there, Stream: "a", N: 2}}
	h.SurvivedReceipts = []checker.Received{{Direction: there, Stream: "a", N: 1}}
	h.Outcasts = []checker.Outcast{{Direction: there, Stream: "copy", Invariant: "F3"}, {Direction: there, Stream: "old", Invariant: "F4"}}
	h.Healed, h.Quiet, h.QuietMax = time.Second, 2*time.Second, 30*time.Second
	return h
}

// torn is a history in which the initiator's database went back behind its second message, and both sides received the error.
func torn() checker.History {
	h := checker.History{
		Sent: []checker.Sent{
			{Direction: there, Stream: "a", N: 1, Hash: "one"},
			{Direction: checker.Direction{Dialog: "other", FromInitiator: true}, Stream: "a", N: 1, Hash: "first"},
		},
		Received: []checker.Received{
			{Direction: there, Stream: "a", N: 1, Hash: "one", Seq: 1},
			{Direction: there, Stream: "a", N: 2, Hash: "two", Seq: 2},
			{Direction: checker.Direction{Dialog: "other", FromInitiator: true}, Stream: "a", N: 1, Hash: "first", Seq: 1},
		},
		EndsReceived: []checker.EndReceived{
			{Direction: there, Kind: checker.EndError, Code: code, Seq: 3},
			{Direction: back, Kind: checker.EndError, Code: code, Seq: 1},
		},
	}
	h.LostHistory = []int32{code}
	h.Untouched = []string{"other"}
	return h
}

func TestGoodObservationsHaveNoViolation(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]checker.History{"Observed": observed(), "Torn": torn()} {
		if got := checker.Check(h); len(got) != 0 {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestASideThatNeverKnewOfADialogGetsNoEnd(t *testing.T) {
	t.Parallel()
	h := torn()
	h.Sent = h.Sent[1:]
	h.EndsReceived = h.EndsReceived[:1]
	if got := checker.Check(h); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestBadObservationIsFlagged(t *testing.T) {
	t.Parallel()
	received := func(stream, hash string) checker.Received {
		return checker.Received{Direction: there, Stream: stream, N: 1, Hash: hash, Seq: 9}
	}
	for name, c := range map[string]struct {
		from  func() checker.History
		spoil func(*checker.History)
		want  string
	}{
		"ReceivedBeforeItWasSent":     {observed, func(h *checker.History) { h.Prefixes[0].Received = 3 }, "S6"},
		"RolledBackAndReceived":       {observed, func(h *checker.History) { h.Undone[0].Hash = "two" }, "S7"},
		"PutBackAndLost":              {observed, func(h *checker.History) { h.PutBack[0].Stream, h.Ended = "d", nil }, "S8"},
		"EndNeverReported":            {observed, func(h *checker.History) { h.EndsReceived = nil; h.Ended = h.Ended[:1] }, "S11"},
		"AcknowledgedAndNotThere":     {observed, func(h *checker.History) { h.Acknowledged[0].Next = 4 }, "T1"},
		"ForgottenTooEarly":           {observed, func(h *checker.History) { h.Forgotten[0].Next = 4 }, "T2"},
		"CommittedAndGone":            {observed, func(h *checker.History) { h.Survived[0].N = 3 }, "F1"},
		"ReceiptCommittedAndGone":     {observed, func(h *checker.History) { h.SurvivedReceipts[0].N = 3 }, "F1"},
		"ErrorThatNobodyAskedFor":     {torn, func(h *checker.History) { h.EndsReceived[0].Code = -8462 }, "F2"},
		"OneSideNotInformed":          {torn, func(h *checker.History) { h.EndsReceived = h.EndsReceived[:1] }, "F2"},
		"NoSideInformedOfAnotherBody": {torn, func(h *checker.History) { h.EndsReceived, h.Received[0].Hash = nil, "eins" }, "F2"},
		"EndedForNothing":             {torn, func(h *checker.History) { h.Untouched[0] = there.Dialog }, "F2"},
		"LostHistoryWhereNoneWasLost": {torn, func(h *checker.History) { h.LostHistory, h.Received = nil, h.Received[:1]; h.Sent = h.Sent[:1] }, "S11"},
		"EndedAsIfNothingWereWrong": {torn, func(h *checker.History) {
			h.Ended = []checker.Ended{{Direction: there}, {Direction: back}}
			h.EndsReceived = []checker.EndReceived{{Direction: there, Seq: 3}}
		}, "F2"},
		"TwiceThoughTorn": {torn, func(h *checker.History) {
			h.Received = append(h.Received, checker.Received{Direction: there, Stream: "a", N: 2, Hash: "two", Seq: 3})
		}, "S3"},
		"TakenFromACopy":        {observed, func(h *checker.History) { h.Waiting = append(h.Waiting, received("copy", "c")) }, "F3"},
		"TakenFromAnOldPrimary": {observed, func(h *checker.History) { h.Received = append(h.Received, received("old", "o")) }, "F4"},
		"NeverQuiet":            {observed, func(h *checker.History) { h.Quiet = 0 }, "L1"},
		"QuietTooLate":          {observed, func(h *checker.History) { h.Quiet = time.Minute }, "L1"},
		"SomethingLeft":         {observed, func(h *checker.History) { h.Left = []string{"an endpoint"} }, "L1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := c.from()
			c.spoil(&h)
			got := checker.Check(h)
			if !slices.ContainsFunc(got, func(v checker.Violation) bool { return v.Invariant == c.want }) {
				t.Errorf("flagged %v, want %s", got, c.want)
			}
		})
	}
}

func TestRepetitionThatChangesSomethingIsFlagged(t *testing.T) {
	t.Parallel()
	if got := checker.SameOutcome(good(), good()); len(got) != 0 {
		t.Errorf("got %v for the same run twice", got)
	}
	for name, spoil := range map[string]func(*checker.History){
		"More":      func(h *checker.History) { h.Received = append(h.Received, h.Received[0]) },
		"Less":      func(h *checker.History) { h.Received = h.Received[1:] },
		"Otherwise": func(h *checker.History) { h.Received[0].Seq, h.Received[1].Seq = 2, 1 },
		"Nothing":   func(h *checker.History) { h.Received = nil },
	} {
		h := good()
		spoil(&h)
		if got := checker.SameOutcome(good(), h); len(got) == 0 || got[0].Invariant != "T5" {
			t.Errorf("%s: flagged %v, want T5", name, got)
		}
	}
}
