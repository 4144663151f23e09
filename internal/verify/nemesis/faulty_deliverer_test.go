//go:build unix

package nemesis_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/broker/transport"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	"github.com/parley-broker/parley/internal/verify/checker"
)

// errLost is the caller's error for a batch, or an answer, that was lost.
var errLost = errors.New("lost on the way")

// faultyDeliverer is a way to a database that does what no byte proxy below TLS can: it repeats batches, loses them or their answers, keeps
// them for later, cuts them up, turns their runs round, and speaks in the name of terms that are over. It copies batches that it keeps.
type faultyDeliverer struct {
	transport.Deliverer
	t testing.TB

	mu     sync.Mutex
	random *rand.Rand
	honest bool
	held   []transport.Batch
	did    map[string]int
	// acknowledged is the number that the database has acknowledged; keeps T1.
	acknowledged map[checker.Direction]int64
	// newest is the newest speaker that the database has listened to; what is older must change nothing; keeps T3.
	newest transportstore.Speaker
}

func newFaultyDeliverer(t testing.TB, seed uint64, inner transport.Deliverer) *faultyDeliverer {
	t.Helper()
	return &faultyDeliverer{
		Deliverer: inner, t: t, random: rand.New(rand.NewPCG(seed, 77)), did: map[string]int{}, acknowledged: map[checker.Direction]int64{},
	}
}

// roll gives a number below n.
func (e *faultyDeliverer) roll(n int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.random.IntN(n)
}

func (e *faultyDeliverer) count(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.did[what]++
}

// reform makes it inject no more faults.
func (e *faultyDeliverer) reform() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.honest, e.held = true, nil
}

func (e *faultyDeliverer) isHonest() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.honest
}

// Deliver delivers, or does worse.
func (e *faultyDeliverer) Deliver(ctx context.Context, batch transport.Batch) ([]transportstore.Result, error) {
	if e.isHonest() {
		return e.pass(ctx, batch)
	}
	for e.roll(4) == 0 {
		e.repeatOld(ctx)
	}
	if e.roll(8) == 0 {
		e.impersonate(ctx, batch)
	}
	switch e.roll(8) {
	case 0:
		e.count("batches repeated at once")
		if _, err := e.pass(ctx, batch); err != nil {
			return nil, err
		}
		return e.pass(ctx, batch)
	case 1:
		e.count("answers lost")
		if _, err := e.pass(ctx, batch); err != nil {
			return nil, err
		}
		e.hold(batch)
		return nil, errLost
	case 2:
		e.count("batches kept for later")
		e.hold(batch)
		return nil, errLost
	case 3:
		e.count("batches lost")
		return nil, errLost
	case 4:
		e.count("batches cut up and turned round")
		return e.passInPieces(ctx, batch)
	}
	if e.roll(3) == 0 {
		e.hold(batch)
	}
	return e.pass(ctx, batch)
}

// DeliverFragment delivers a fragment, twice, or not.
func (e *faultyDeliverer) DeliverFragment(ctx context.Context, fragment transportstore.Fragment, passage transport.Passage) (int64, error) {
	if !e.isHonest() {
		switch e.roll(6) {
		case 0:
			e.count("fragments lost")
			return 0, errLost
		case 1:
			e.count("fragments repeated")
			if _, err := e.Deliverer.DeliverFragment(ctx, fragment, passage); err != nil {
				return 0, err
			}
		case 2:
			e.count("answers to fragments lost")
			if _, err := e.Deliverer.DeliverFragment(ctx, fragment, passage); err != nil {
				return 0, err
			}
			return 0, errLost
		}
	}
	return e.Deliverer.DeliverFragment(ctx, fragment, passage)
}

// pass delivers honestly and checks the answer.
func (e *faultyDeliverer) pass(ctx context.Context, batch transport.Batch) ([]transportstore.Result, error) {
	e.mu.Lock()
	before := maps.Clone(e.acknowledged)
	e.mu.Unlock()
	results, err := e.Deliverer.Deliver(ctx, batch)
	if err != nil {
		return nil, err
	}
	if len(results) != len(batch.Runs) {
		e.t.Errorf("%d results answer %d runs", len(results), len(batch.Runs))
		return nil, errLost
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, result := range results {
		if batch.Runs[i].FirstSequence == transportstore.Unsequenced {
			continue
		}
		d := direction(batch.Runs[i])
		switch {
		case result.Outcome == transportstore.Accepted:
			// It may be less than is known already: a conversation that is over answers a repetition with that alone.
			e.acknowledged[d] = max(e.acknowledged[d], result.Next)
		case result.Outcome == transportstore.Expected && result.Next < before[d] && !e.honest:
			e.t.Errorf("T4: the number that %v has to go on with fell from %d to %d", d, before[d], result.Next)
		}
	}
	if newer(batch.Speaker, e.newest) {
		e.newest = batch.Speaker
	}
	return results, nil
}

// passInPieces delivers each run by itself, in any order.
func (e *faultyDeliverer) passInPieces(ctx context.Context, batch transport.Batch) ([]transportstore.Result, error) {
	results := make([]transportstore.Result, len(batch.Runs))
	e.mu.Lock()
	order := e.random.Perm(len(batch.Runs))
	e.mu.Unlock()
	for _, i := range order {
		piece := batch
		piece.Runs = batch.Runs[i : i+1]
		got, err := e.pass(ctx, piece)
		if err != nil {
			return nil, err
		}
		results[i] = got[0]
	}
	return results, nil
}

// repeatOld delivers a batch of former times again; its answer is dropped.
func (e *faultyDeliverer) repeatOld(ctx context.Context) {
	e.mu.Lock()
	if len(e.held) == 0 {
		e.mu.Unlock()
		return
	}
	i := e.random.IntN(len(e.held))
	batch := e.held[i]
	if e.random.IntN(2) == 0 {
		e.held = slices.Delete(e.held, i, i+1)
	}
	isOver := newer(e.newest, batch.Speaker)
	e.did["old batches repeated"]++
	e.mu.Unlock()
	if isOver {
		e.wantSuperseded(ctx, batch)
		return
	}
	_, _ = e.pass(ctx, batch)
}

// impersonate sends other things in the name of a term that is over.
func (e *faultyDeliverer) impersonate(ctx context.Context, batch transport.Batch) {
	e.mu.Lock()
	known := e.newest.Instance == batch.Speaker.Instance
	forged := clone(batch)
	forged.Speaker = e.newest
	if e.random.IntN(2) == 0 {
		forged.Speaker.Epoch--
	} else {
		forged.Speaker.Term--
	}
	e.mu.Unlock()
	if !known {
		return
	}
	for i := range forged.Runs {
		for j := range forged.Runs[i].Bodies {
			forged.Runs[i].Bodies[j] = []byte("intruder|1|forged")
		}
	}
	e.count("batches of a term that is over")
	e.wantSuperseded(ctx, forged)
}

func (e *faultyDeliverer) wantSuperseded(ctx context.Context, batch transport.Batch) {
	results, err := e.Deliverer.Deliver(ctx, batch)
	if err != nil {
		return
	}
	for _, result := range results {
		if result.Outcome != transportstore.Superseded {
			e.t.Errorf("T3: a run in the name of epoch %d term %d was %s (%s)", batch.Speaker.Epoch, batch.Speaker.Term, result.Outcome, result.Description)
		}
	}
}

// hold keeps a copy of a batch for later.
func (e *faultyDeliverer) hold(batch transport.Batch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.held) < 200 {
		e.held = append(e.held, clone(batch))
	}
}

func clone(batch transport.Batch) transport.Batch {
	batch.Runs = slices.Clone(batch.Runs)
	for i, run := range batch.Runs {
		batch.Runs[i].Bodies = make([][]byte, len(run.Bodies))
		for j, body := range run.Bodies {
			batch.Runs[i].Bodies[j] = bytes.Clone(body)
		}
		batch.Runs[i].Security = bytes.Clone(run.Security)
	}
	return batch
}

// newer reports whether a speaker makes another one silent.
func newer(a, b transportstore.Speaker) bool {
	return a.Epoch > b.Epoch || a.Epoch == b.Epoch && a.Term > b.Term
}

func direction(run transportstore.Run) checker.Direction {
	return checker.Direction{Dialog: run.ConversationID.String(), FromInitiator: run.FromInitiator}
}

// marks gives the numbers that were acknowledged.
func (e *faultyDeliverer) marks() (marks []checker.Mark) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for d, next := range e.acknowledged {
		marks = append(marks, checker.Mark{Direction: d, Next: next})
	}
	return marks
}
