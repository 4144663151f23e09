package receive // Sources and time are given, which nobody can from outside.

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

func sourceNumber(n int) netip.Prefix {
	return sourceOf(netip.AddrFrom4([4]byte{192, 0, byte(n >> 8), byte(n)}))
}

// A peer that guesses the password of another gets no more attempts by logging in to an account of its own.
func TestOwnLoginForgivesNoGuessesOfAnother(t *testing.T) {
	t.Parallel()
	a, limits, source, now := newAccounts(), Limits{LockoutFailures: 10, LockoutTime: time.Minute}, sourceNumber(1), time.Unix(1, 0)
	guesses := 0
	for !a.isLockedOut(source, now) && guesses < 100 {
		a.authFailed(limits, source, "victim", now)
		if guesses++; guesses%3 == 0 {
			a.authSucceeded(source, "guesser", now)
		}
	}
	if guesses != 10 {
		t.Errorf("%d guesses were taken", guesses)
	}
	a.authSucceeded(source, "guesser", now)
	a.authSucceeded(source, "victim", now) // of a request that was under way
	if !a.isLockedOut(source, now) {
		t.Error("a login ends a lockout")
	}
	// One's own mistakes are forgiven, and those as nobody are not.
	source = sourceNumber(2)
	for range 9 {
		a.authFailed(limits, source, "ann", now)
	}
	a.authSucceeded(source, "ann", now)
	for n := range 10 {
		if a.isLockedOut(source, now) {
			t.Errorf("locked out after %d failures", n)
		}
		a.authFailed(limits, source, "", now)
	}
	if !a.isLockedOut(source, now) {
		t.Error("failures that name no user do not count")
	}
}

// Guessing from many sources ends at the account, and its user still gets in from where he has been.
func TestAccountIsLockedForSourcesThatItsUserHasNotBeenAt(t *testing.T) {
	t.Parallel()
	a, limits, home, now := newAccounts(), Limits{LockoutFailures: 10, LockoutTime: time.Minute}, sourceNumber(0), time.Unix(1, 0)
	a.authSucceeded(home, "ann", now)
	for n := range 10 {
		if a.isAccountLocked("ann", sourceNumber(100), now) {
			t.Fatalf("the account is locked after %d failures", n)
		}
		a.authFailed(limits, sourceNumber(n+1), "ann", now)
	}
	for _, c := range []struct {
		name, user string
		source     netip.Prefix
		after      time.Duration
		isLocked   bool
	}{
		{"a source like the others", "ann", sourceNumber(100), 0, true},
		{"a source from which somebody guessed", "ann", sourceNumber(1), 59 * time.Second, true},
		{"where the user has been", "ann", home, 0, false},
		{"another account", "bob", sourceNumber(100), 0, false},
		{"later", "ann", sourceNumber(100), time.Minute, false},
	} {
		if got := a.isAccountLocked(c.user, c.source, now.Add(c.after)); got != c.isLocked {
			t.Errorf("%s: locked is %v", c.name, got)
		}
	}
	// An attempt under way when the account is locked does not begin the count anew.
	a.authFailed(limits, sourceNumber(50), "ann", now.Add(59*time.Second))
	if !a.isAccountLocked("ann", sourceNumber(100), now.Add(61*time.Second)) {
		t.Error("a failure ends a lockout")
	}
}

// The memory for names and sources is bounded, whoever comes with however many.
func TestMemoryOfFailuresIsBounded(t *testing.T) {
	t.Parallel()
	a, limits, now := newAccounts(), Limits{LockoutFailures: 2, LockoutTime: time.Minute}, time.Unix(1, 0)
	a.authFailed(limits, sourceNumber(1), "victim", now)
	a.authFailed(limits, sourceNumber(2), "victim", now)
	for n := range lockoutAccounts + 1000 {
		a.authFailed(limits, sourceNumber(n), fmt.Sprintf("nobody%d", n), now)
	}
	if len(a.failures.accounts) > lockoutAccounts || !a.isAccountLocked("victim", sourceNumber(3), now) {
		t.Errorf("%d accounts are remembered, or one that is locked was forgotten for others", len(a.failures.accounts))
	}
	for n := range 100 {
		a.authSucceeded(sourceNumber(n), "ann", now.Add(time.Duration(n)))
	}
	if known := a.failures.known["ann"]; len(known) != lockoutSources || known[sourceNumber(99)].IsZero() || known[sourceNumber(85)].IsZero() {
		t.Errorf("remembered is %v", known)
	}
	later := now.Add(knownSourceTime + time.Hour)
	a.failures.sweep(later)
	if n := len(a.failures.accounts) + len(a.failures.sources) + len(a.failures.known); n != 0 {
		t.Errorf("%d are remembered for ever", n)
	}
}
