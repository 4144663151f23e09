package faultinjection

import (
	"maps"
	"slices"
	"testing"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

func TestACourierInjectsEveryFaultItIsAskedFor(t *testing.T) {
	t.Parallel()
	d := &target{}
	answered := map[Fault]int{}
	courier := NewCourier(d, 0.7, 42)
	courier.OnFaultAnswer = func(fault Fault, _ transport.Batch, _ []transportstore.Result, _ error) { answered[fault]++ }
	for n := range int64(2000) {
		sent := transport.Batch{
			Speaker: transportstore.Speaker{Instance: parley.UUID{1}, Epoch: 5, Term: 5},
			Runs: []transportstore.Run{
				{ConversationID: parley.UUID{2}, FirstSequence: n, Bodies: [][]byte{{1}}},
				{ConversationID: parley.UUID{3}, FirstSequence: n + 10000, Bodies: [][]byte{{2}}},
			},
		}
		results, err := courier.Deliver(t.Context(), sent)
		if err != nil {
			continue
		}
		if len(results) != 2 || results[0].Next != n+1 || results[1].Next != n+10001 {
			t.Fatalf("results %+v for %d", results, n)
		}
	}
	courier.Close(t.Context())
	counts := courier.Counts()
	for _, fault := range Faults() {
		if counts[fault] == 0 {
			t.Errorf("%q was never done: %v", fault, counts)
		}
	}
	if got := slices.Sorted(maps.Keys(answered)); !slices.Equal(got, []Fault{Echo, Forge, Stale}) {
		t.Errorf("answered %v", answered)
	}
	speakers := map[transportstore.Speaker]int{}
	for _, batch := range d.batches {
		speakers[batch.Speaker]++
	}
	if len(speakers) != 4 { // the true one, an old epoch, an old term, another token
		t.Errorf("speakers %v", speakers)
	}
}

func TestACourierRepeatsItselfForASeed(t *testing.T) {
	t.Parallel()
	deeds := func() []string {
		d := &target{}
		courier := NewCourier(d, 0.5, 7, Lose, Mute, Repeat, Shuffle, Truncate, Echo)
		var all []string
		for n := range int64(200) {
			_, err := courier.Deliver(t.Context(), transport.Batch{Runs: []transportstore.Run{{FirstSequence: n}}})
			if err != nil {
				all = append(all, err.Error())
			}
		}
		for _, batch := range d.batches {
			for _, run := range batch.Runs {
				all = append(all, string(rune(run.FirstSequence)))
			}
		}
		return all
	}
	if !slices.Equal(deeds(), deeds()) {
		t.Error("the same seed did other things")
	}
}
