package builds_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// steps of a script, of both sessions together.
const steps = 60

// lockTimeout is the result of a statement whose wait for the other session was ended.
const lockTimeout = "SQLSTATE 55P03"

// pairs numbers the pairs of services of the scripts.
var pairs atomic.Int64

// deeds counts what scripts have done, so that a test that does nothing is seen.
type deeds struct {
	Steps, Received, Refused, Ended, GivenBack, Crashes, Stumbles, Restarts, Waits int
}

func (d *deeds) add(o deeds) {
	d.Steps, d.Received, d.Refused = d.Steps+o.Steps, d.Received+o.Received, d.Refused+o.Refused
	d.Ended, d.GivenBack, d.Crashes = d.Ended+o.Ended, d.GivenBack+o.GivenBack, d.Crashes+o.Crashes
	d.Stumbles, d.Restarts, d.Waits = d.Stumbles+o.Stumbles, d.Restarts+o.Restarts, d.Waits+o.Waits
}

// script is one play of what a seed says.
type script struct {
	t          *testing.T
	random     *rand.Rand
	worlds     [2]*world
	isOneBuild bool // in both worlds
	names      [2]string
	savepoints [2]int
	labels     [2][]string // of the sides that each session has seen
	begun      int         // conversations
	bodies     int
	deeds      deeds
	log        []string
	// isWaitOfBefore says that only the build before has waited for a session, which has no turn: its transaction is aborted, and the script
	// cannot go on.
	isWaitOfBefore bool
}

// An action is a step of one session. It gives what the session sees of it, in words that two builds share.
type action struct {
	name string
	play func(w *world) string
}

func newScript(t *testing.T, worlds [2]*world, seed uint64) *script {
	t.Helper()
	s := &script{t: t, random: rand.New(rand.NewPCG(seed, 0)), worlds: worlds, isOneBuild: worlds[0].server == nil}
	pair := pairs.Add(1)
	s.names = [2]string{fmt.Sprint("asks ", pair), fmt.Sprint("answers ", pair)}
	isCounting, isRetained, isPreferred := s.chance(2), s.chance(4), s.chance(4)
	s.together(func(_ int, w *world) {
		w.forget(s.names)
		for _, name := range s.names {
			w.admin("select parley.create_queue($1, poison_message_handling => $2, retention => $3)", name, isCounting, isRetained)
			w.admin("select parley.create_service($1, $1, array['//test/Work'])", name)
		}
		if isPreferred {
			w.admin("select parley.create_broker_priority($1, local_service_name => $1, priority_level => 8)", s.names[0])
		}
	})
	return s
}

// chance is true once in so many times.
func (s *script) chance(of int) bool { return s.random.IntN(of) == 0 }

// play makes the steps and gives the first difference, "" where there is none.
func (s *script) play() string {
	for range steps {
		i := s.random.IntN(2)
		var a action
		if s.worlds[0].sessions[i].PgConn().TxStatus() == 'E' {
			a = s.getOut(i)
		} else {
			// Now and then: a look costs as much as a step.
			if len(s.labels[i]) == 0 || s.chance(2) {
				var difference string
				if s.labels[i], difference = s.look(i); difference != "" {
					return difference
				}
			}
			a = s.draw(i, s.labels[i])
		}
		difference := s.both(i, a)
		if difference != "" && s.isWaitOfBefore {
			s.deeds.Waits++
			return s.abandon()
		} else if difference != "" {
			return difference
		}
		s.deeds.Steps++
	}
	return s.finish()
}

// look compares what a session sees, and gives the sides that it sees.
func (s *script) look(i int) (labels []string, difference string) {
	var texts [2]string
	var seen [2][]string
	s.together(func(n int, w *world) { texts[n], seen[n] = w.shown(i) })
	if texts[0] != texts[1] {
		return nil, s.differs(fmt.Sprintf("session %d looks", i), texts)
	}
	return seen[0], ""
}

// together does the same in both worlds at once: most of the time of a script is that of the server, or a wait.
func (s *script) together(do func(n int, w *world)) {
	s.t.Helper()
	var both sync.WaitGroup
	for n, w := range s.worlds {
		both.Go(func() { do(n, w) })
	}
	both.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// both plays a step in both worlds.
func (s *script) both(i int, a action) (difference string) {
	var texts [2]string
	s.together(func(n int, w *world) { texts[n] = a.play(w) })
	s.log = append(s.log, fmt.Sprintf("session %d: %s: %s", i, a.name, sqltest.Clip(texts[1])))
	if texts[0] != texts[1] {
		s.isWaitOfBefore = texts[0] == lockTimeout && !s.isOneBuild
		return s.differs(fmt.Sprintf("session %d: %s", i, a.name), texts)
	}
	if before, now := s.worlds[0].sessions[i].PgConn().TxStatus(), s.worlds[1].sessions[i].PgConn().TxStatus(); before != now {
		return s.differs(a.name, [2]string{"transaction " + string(before), "transaction " + string(now)})
	}
	if strings.HasPrefix(texts[0], "SQLSTATE") {
		s.deeds.Refused++
	}
	return ""
}

// abandon ends a script in the middle.
func (s *script) abandon() (difference string) {
	for _, w := range s.worlds {
		for i := range w.sessions {
			w.exec(i, "rollback")
		}
	}
	return ""
}

func (s *script) differs(where string, texts [2]string) string {
	return fmt.Sprintf(
		"%s\n%s:\n%s\n%s:\n%s\nafter:\n%s", where, s.worlds[0].name, differing(texts[0], texts[1]), s.worlds[1].name,
		differing(texts[1], texts[0]), strings.Join(s.log[max(0, len(s.log)-60):], "\n"),
	)
}

// differing gives the lines of a text from the first to the last that another text does not have at their place.
func differing(text, other string) string {
	lines, others := strings.Split(text, "\n"), strings.Split(other, "\n")
	for len(lines) > 0 && len(others) > 0 && lines[0] == others[0] {
		lines, others = lines[1:], others[1:]
	}
	for len(lines) > 0 && len(others) > 0 && lines[len(lines)-1] == others[len(others)-1] {
		lines, others = lines[:len(lines)-1], others[:len(others)-1]
	}
	return strings.Join(lines, "\n")
}

// getOut ends what has failed.
func (s *script) getOut(i int) action {
	if s.savepoints[i] > 0 && s.chance(2) {
		return s.goBack(i)
	}
	return s.rollBack(i)
}

func (s *script) goBack(i int) action {
	n := s.random.IntN(s.savepoints[i])
	s.savepoints[i] = n + 1
	s.deeds.GivenBack++
	return s.statement(i, fmt.Sprint("rollback to savepoint s", n))
}

func (s *script) rollBack(i int) action {
	s.savepoints[i] = 0
	return s.statement(i, "rollback")
}

// statement is a step that is a statement without arguments that differ from build to build.
func (s *script) statement(i int, text string, arguments ...any) action {
	return action{name: fmt.Sprint(text, " ", arguments), play: func(w *world) string { return w.run(i, text, arguments...) }}
}

// finish ends what is open, receives and ends all that is there, drops the services, and compares what is left.
func (s *script) finish() string {
	for i := range 2 {
		if s.worlds[0].sessions[i].PgConn().TxStatus() != 'I' {
			if difference := s.both(i, s.rollBack(i)); difference != "" {
				return difference
			}
		}
	}
	labels, difference := s.look(0)
	if difference != "" {
		return difference
	}
	for _, label := range labels {
		if difference := s.both(0, s.end(0, label, "select parley.end_conversation($1::uuid)")); difference != "" {
			return difference
		}
	}
	if _, difference := s.look(1); difference != "" {
		return difference
	}
	for _, name := range s.names {
		for _, text := range []string{"select parley.drop_service($1)", "select parley.drop_queue($1) is null"} {
			if difference := s.both(0, s.statement(0, text, name)); difference != "" {
				return difference
			}
		}
	}
	return ""
}
