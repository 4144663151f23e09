package reliability_test

import (
	"testing"
)

// Nothing of it may be seen; keeps S1 to S5, S7, S8, S11.
func TestTransactionThatIsCutOffAfterAnyStatementLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, steps := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newPlays(t, newFixture(t))
			for done := 1; done <= len(steps); done++ {
				for how, cut := range cuts {
					p := l.newPlay(t)
					before := l.contents()
					p.run(t, steps[:done])
					cut(t, l.fixture, p.s)
					l.awaitGone(t, p.s.pid)
					if after := l.contents(); after != before {
						t.Errorf("%s after %d of %d steps: there is\n%s\nbefore there was\n%s", how, done, len(steps), after, before)
					}
				}
			}
			p := l.newPlay(t)
			p.run(t, steps)
			p.s.commit()
			l.finish(t)
		})
	}
}

// The client does not learn whether the transaction was committed; the ledger knows.
func TestCommitWithoutAnAnswerLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for name, steps := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newPlays(t, newFixture(t))
			for range 5 {
				p := l.newPlay(t)
				p.run(t, steps)
				p.s.commitAndCut()
				l.awaitGone(t, p.s.pid)
			}
			l.finish(t)
		})
	}
}

// A statement that waits for a lock is cut off; keeps S8.
func TestStatementThatIsCutOffWhileItWaitsLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hold, wait func(*play, *session) error
	}{
		"Receive": {
			func(_ *play, s *session) error { return s.try("select parley.receive('target_queue', top => 1)") },
			func(p *play, s *session) error {
				return s.try("select parley.receive('target_queue', conversation_handle => $1)", p.head)
			},
		},
		"Send": {
			func(p *play, s *session) error { return s.tryEnd(p.initiator) },
			func(p *play, s *session) error { return s.trySend(p.initiator, "x") },
		},
		"End": {
			func(p *play, s *session) error { return s.trySend(p.initiator, "x") },
			func(p *play, s *session) error { return s.tryEnd(p.initiator) },
		},
		"Timer": {
			func(p *play, s *session) error { return s.tryEnd(p.target) },
			func(p *play, s *session) error {
				return s.try("select parley.begin_conversation_timer($1::uuid, 0)", p.target)
			},
		},
		"Move": {
			func(p *play, s *session) error { return s.tryEnd(p.target) },
			func(p *play, s *session) error { return s.try(move, p.target, p.group) },
		},
		"Begin": {
			func(p *play, s *session) error { return s.tryEnd(p.target) },
			func(p *play, s *session) error {
				return s.try("select parley.begin_dialog('target', 'initiator', related_conversation => $1::uuid)", p.target)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newPlays(t, newFixture(t))
			p := l.newPlay(t)
			before := l.contents()
			holder, waiter := l.session(t), l.session(t)
			holder.begin()
			if err := c.hold(p, holder); err != nil {
				t.Fatal(err)
			}
			waiter.begin()
			waiting := startTry(l.fixture, waiter, func() error { return c.wait(p, waiter) })
			waiting.awaitBlocked()
			l.admin.exec("select pg_terminate_backend($1)", int(waiter.pid))
			if _, err := waiting.result(); code(err) != "57P01" {
				t.Errorf("got %v, want the end of the session", err)
			}
			holder.rollback()
			if after := l.contents(); after != before {
				t.Errorf("there is\n%s\nbefore there was\n%s", after, before)
			}
			l.finish(t)
		})
	}
}
