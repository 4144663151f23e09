package checker_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/verify/checker"
)

var (
	there = checker.Direction{Dialog: "d", FromInitiator: true}
	back  = checker.Direction{Dialog: "d"}
)

// good is a history of two messages there and one back, and both ends.
func good() checker.History {
	return checker.History{
		Sent: []checker.Sent{
			{Direction: there, Stream: "a", N: 1, Hash: "one", Begun: 10, Committed: 20},
			{Direction: there, Stream: "a", N: 2, Hash: "two", Begun: 30, Committed: 40},
			{Direction: there, Stream: "b", N: 1, Hash: "three", Begun: 15, Committed: 50},
			{Direction: back, Stream: "c", N: 1, Hash: "four"},
		},
		Received: []checker.Received{
			{Direction: there, Stream: "a", N: 1, Hash: "one", Seq: 1},
			{Direction: there, Stream: "b", N: 1, Hash: "three", Seq: 2},
			{Direction: there, Stream: "a", N: 2, Hash: "two", Seq: 3},
			{Direction: back, Stream: "c", N: 1, Hash: "four", Seq: 1},
		},
		Ended:        []checker.Ended{{Direction: there}, {Direction: back, Kind: checker.EndError, Text: "why"}},
		EndsReceived: []checker.EndReceived{{Direction: there, Seq: 4}},
	}
}

func TestGoodHistoryHasNoViolation(t *testing.T) {
	t.Parallel()
	if got := checker.Check(good()); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestWhatIsSentToASideThatEndsMayVanish(t *testing.T) {
	t.Parallel()
	h := checker.History{
		Sent:  []checker.Sent{{Direction: there, Stream: "a", N: 1}},
		Ended: []checker.Ended{{Direction: back}},
	}
	if got := checker.Check(h); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestWhatIsSentBeforeAnErrorMayVanish(t *testing.T) {
	t.Parallel()
	h := checker.History{
		Sent:  []checker.Sent{{Direction: there, Stream: "a", N: 1}},
		Ended: []checker.Ended{{Direction: there, Kind: checker.EndError, Text: "why"}},
	}
	if got := checker.Check(h); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	h.Ended[0].Kind, h.Ended[0].Text = checker.EndDialog, ""
	if got := checker.Check(h); len(got) != 1 || got[0].Invariant != "S2" {
		t.Errorf("before an end without an error: got %v", got)
	}
}

func TestWhatWaitsIsNotLost(t *testing.T) {
	t.Parallel()
	h := checker.History{
		Sent:    []checker.Sent{{Direction: there, Stream: "a", N: 1, Hash: "one"}},
		Waiting: []checker.Received{{Direction: there, Stream: "a", N: 1, Hash: "one"}},
	}
	if got := checker.Check(h); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestErrorMayOvertake(t *testing.T) {
	t.Parallel()
	h := checker.History{
		Sent:         []checker.Sent{{Direction: there, Stream: "a", N: 1}},
		Received:     []checker.Received{{Direction: there, Stream: "a", N: 1, Seq: 2}},
		Ended:        []checker.Ended{{Direction: there, Kind: checker.EndError, Text: "why"}},
		EndsReceived: []checker.EndReceived{{Direction: there, Kind: checker.EndError, Text: "why", Seq: 1}},
	}
	if got := checker.Check(h); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// A checker that has never flagged anything proves nothing.
func TestBadHistoryIsFlagged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*checker.History)
		want  []string
	}{
		"Phantom": {func(h *checker.History) {
			h.Received = append(h.Received, checker.Received{Direction: back, Stream: "c", N: 2, Seq: 2})
		}, []string{"S1"}},
		"PhantomInTheQueue": {func(h *checker.History) {
			h.Waiting = append(h.Waiting, checker.Received{Direction: back, Stream: "x", N: 1})
		}, []string{"S1"}},
		"ReceivedFromARolledBackSender": {func(h *checker.History) { h.Sent = h.Sent[:3] }, []string{"S1"}},
		"Loss": {func(h *checker.History) {
			h.Received = h.Received[:3]
			h.Ended, h.EndsReceived = nil, nil
		}, []string{"S2"}},
		"LossInTheMiddle": {func(h *checker.History) {
			h.Received = slices.Delete(h.Received, 0, 1)
			h.Ended, h.EndsReceived = nil, nil
		}, []string{"S2", "S4"}},
		"Duplicate": {func(h *checker.History) {
			h.Received = append(h.Received, checker.Received{Direction: back, Stream: "c", N: 1, Hash: "four", Seq: 2})
		}, []string{"S3", "S4"}},
		"ReceivedAndStillWaiting": {func(h *checker.History) {
			h.Waiting = append(h.Waiting, checker.Received{Direction: back, Stream: "c", N: 1, Hash: "four"})
		}, []string{"S3"}},
		"Order":        {func(h *checker.History) { h.Received[0].Seq, h.Received[2].Seq = 3, 1 }, []string{"S4", "S19"}},
		"Body":         {func(h *checker.History) { h.Received[1].Hash = "tree" }, []string{"S5"}},
		"SwappedBody":  {func(h *checker.History) { h.Received[0].Hash, h.Received[1].Hash = "three", "one" }, []string{"S5"}},
		"OtherDialog":  {func(h *checker.History) { h.Received[3].Dialog = "e" }, []string{"S1"}},
		"AfterTheEnd":  {func(h *checker.History) { h.EndsReceived[0].Seq = 0 }, []string{"S11"}},
		"EndTwice":     {func(h *checker.History) { h.EndsReceived = append(h.EndsReceived, h.EndsReceived[0]) }, []string{"S11"}},
		"EndedTwice":   {func(h *checker.History) { h.Ended = append(h.Ended, h.Ended[0]) }, []string{"S11"}},
		"EndOfNobody":  {func(h *checker.History) { h.Ended = h.Ended[1:] }, []string{"S11"}},
		"EndOvertakes": {func(h *checker.History) { h.Received = slices.Delete(h.Received, 2, 3) }, []string{"S11"}},
		"EndWithoutItsError": {func(h *checker.History) {
			h.EndsReceived = append(h.EndsReceived, checker.EndReceived{Direction: back, Seq: 2})
		}, []string{"S12"}},
		"EndWithAnotherError": {func(h *checker.History) {
			h.EndsReceived = append(h.EndsReceived, checker.EndReceived{Direction: back, Kind: checker.EndError, Text: "because", Seq: 2})
		}, []string{"S12"}},
		"CommitOrder": {func(h *checker.History) { h.Sent[2].Begun, h.Sent[2].Committed, h.Received[0].Seq = 21, 25, 9 }, []string{"S4", "S11", "S19"}},
		"CommitOrderOfStreams": {func(h *checker.History) {
			h.Sent[2].Begun, h.Sent[2].Committed = 41, 50
		}, []string{"S19"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := good()
			c.spoil(&h)
			var got []string
			for _, v := range checker.Check(h) {
				got = append(got, v.Invariant)
				t.Log(v)
			}
			slices.Sort(got)
			got = slices.Compact(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("flagged %v, want %v", got, c.want)
			}
		})
	}
}
