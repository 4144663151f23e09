package reliability_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const poll = 2 * time.Millisecond

// running is a statement under way on a session.
type running[T any] struct {
	s    *session
	b    *fixture
	done chan struct{}
	out  T
	err  error
}

// start runs work on a session in the background. Nothing else may use the session until result.
func start[T any](b *fixture, s *session, work func() (T, error)) *running[T] {
	r := &running[T]{s: s, b: b, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.out, r.err = work()
	}()
	return r
}

// startTry is start for statements without a result.
func startTry(b *fixture, s *session, work func() error) *running[struct{}] {
	return start(b, s, func() (struct{}, error) { return struct{}{}, work() })
}

// awaitBlocked waits until the statement waits for a lock, and fails if it ends instead.
func (r *running[T]) awaitBlocked() {
	r.s.t.Helper()
	r.b.await(r.s.t, func() bool {
		select {
		case <-r.done:
			r.s.t.Fatalf("the statement did not wait: result %v, error %v", r.out, r.err)
		default:
		}
		return r.b.isBlocked(r.s.t, r.s.pid)
	})
}

// result waits for the end of the statement.
func (r *running[T]) result() (T, error) {
	<-r.done
	return r.out, r.err
}

// must is result for a statement that is to succeed.
func (r *running[T]) must() T {
	r.s.t.Helper()
	out, err := r.result()
	if err != nil {
		r.s.t.Fatal(err)
	}
	return out
}

func (b *fixture) isBlocked(t testing.TB, pid uint32) bool {
	t.Helper()
	blocked, err := tryAsk[bool](b.admin, "select cardinality(pg_blocking_pids($1::int)) > 0", int(pid))
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	return blocked
}

// await waits until something holds, at most as long as a statement may take.
func (*fixture) await(t testing.TB, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
		pause(poll)
	}
}

func pause(d time.Duration) { <-time.After(d) }

func (r *running[T]) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
