package pgdb

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// The time-out of a role may cut off the statement that lifts it: it is sent again, a bounded number of times; other errors are passed on.
func TestASessionIsPreparedAgainWhereTheServerCutThatOff(t *testing.T) {
	t.Parallel()
	cutOff := &pgconn.PgError{Code: "57014", Message: "canceling statement due to statement timeout"}
	refused := errors.New("refused")
	for _, c := range []struct {
		errs  []error
		want  error
		calls int
	}{
		{nil, nil, 1}, {[]error{cutOff, cutOff}, nil, 3}, {[]error{cutOff, refused}, refused, 2},
	} {
		calls := 0
		err := untilNotCutOff(t.Context(), func() error {
			calls++
			if calls <= len(c.errs) {
				return c.errs[calls-1]
			}
			return nil
		})
		if !errors.Is(err, c.want) || calls != c.calls {
			t.Errorf("after %v: %d calls, %v", c.errs, calls, err)
		}
	}
	calls := 0
	always := func() error { calls++; return cutOff }
	if err := untilNotCutOff(t.Context(), always); calls != preparations || !errors.Is(err, cutOff) || !strings.Contains(err.Error(), "statement_timeout that") {
		t.Errorf("%d calls, %v", calls, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if calls = 0; untilNotCutOff(over, always) == nil || calls != 1 {
		t.Errorf("%d calls after the end", calls)
	}
}
