package receive

import (
	"maps"
	"net/netip"
	"time"
)

// Failures of authentication are counted for the source from which they come, and for the account that they are about. An account is locked
// for sources from which its user has not been in: guessing from many addresses ends there, and does not keep him out. Names that do not
// exist are counted like others, so that nobody learns which do.

const (
	// lockoutAccounts bounds the accounts whose failures are remembered.
	lockoutAccounts = 1 << 16
	// lockoutSources bounds the sources that are remembered of an account from which its user has been in.
	lockoutSources = 16
	// knownSourceTime is how long such a source is remembered.
	knownSourceTime = 30 * 24 * time.Hour
)

// lockout counts failures within the time of a lockout.
type lockout struct {
	failures int
	first    time.Time
	until    time.Time
	// lasts is for how long failures count, as the connector says at which they were counted.
	lasts time.Duration
	// of are the failures of each account, where the lockout is that of a source.
	of map[string]int
}

// isOver reports whether nothing of a lockout counts any more.
func (l *lockout) isOver(lasting time.Duration, now time.Time) bool {
	return now.Sub(l.first) > lasting && !now.Before(l.until)
}

// add counts a failure.
func (l *lockout) add(limits Limits, now time.Time) {
	l.failures++
	l.lasts = max(l.lasts, limits.LockoutTime)
	if l.failures >= limits.LockoutFailures {
		l.until = now.Add(limits.LockoutTime)
	}
}

// failures are those of sources and accounts on this node. Time is passed in.
type failures struct {
	sources  map[netip.Prefix]*lockout
	accounts map[string]*lockout
	// known are sources from which users have been in, and when last.
	known map[string]map[netip.Prefix]time.Time
}

func newFailures() failures {
	return failures{
		sources: map[netip.Prefix]*lockout{}, accounts: map[string]*lockout{}, known: map[string]map[netip.Prefix]time.Time{},
	}
}

// isLockedOut reports whether a source has failed to authenticate too often, as whomever.
func (a *accounts) isLockedOut(source netip.Prefix, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.failures.sources[source]
	return l != nil && now.Before(l.until)
}

// isAccountLocked reports whether an account has failed too often, from wherever, for a source from which its user has not been in.
func (a *accounts) isAccountLocked(user string, source netip.Prefix, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.failures.accounts[user]
	if l == nil || !now.Before(l.until) {
		return false
	}
	at, isKnown := a.failures.known[user][source]
	return !isKnown || now.Sub(at) > knownSourceTime
}

// mayAuthenticate reports whether neither a source nor an account has failed too often. It is asked before a password is verified, which
// may take long, and again when one was right.
func (a *accounts) mayAuthenticate(user string, source netip.Prefix, now time.Time) bool {
	return !a.isLockedOut(source, now) && !a.isAccountLocked(user, source, now)
}

// authFailed counts a failure to authenticate as a user, "" where it is not known as whom. So many of them within the time of a lockout
// lock the source out for that time, and the account.
func (a *accounts) authFailed(limits Limits, source netip.Prefix, user string, now time.Time) {
	if limits.LockoutFailures == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	ofSource := a.failures.sources[source]
	if ofSource == nil || ofSource.isOver(limits.LockoutTime, now) {
		ofSource = &lockout{first: now, of: map[string]int{}}
		a.failures.sources[source] = ofSource
	}
	ofSource.add(limits, now)
	ofSource.of[user]++
	if user == "" {
		return
	}
	ofAccount := a.failures.accounts[user]
	if ofAccount == nil || ofAccount.isOver(limits.LockoutTime, now) {
		if ofAccount == nil && len(a.failures.accounts) >= lockoutAccounts {
			a.failures.makeRoom(now)
		}
		ofAccount = &lockout{first: now}
		a.failures.accounts[user] = ofAccount
	}
	ofAccount.add(limits, now)
}

// makeRoom forgets an account, one that is not locked where there is one among those that are found first.
func (f *failures) makeRoom(now time.Time) {
	victim, seen := "", 0
	for user, l := range f.accounts {
		if victim = user; !now.Before(l.until) {
			break
		}
		seen++
		if seen > 100 {
			break
		}
	}
	delete(f.accounts, victim)
}

// authSucceeded forgives a source the failures as this user, and no others: who guesses another's password does not get more attempts by
// logging in to an account of his own. The source is one of the user from now on.
func (a *accounts) authSucceeded(source netip.Prefix, user string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.failures.sources[source]; l != nil && !now.Before(l.until) {
		l.failures -= l.of[user]
		delete(l.of, user)
		if l.failures == 0 {
			delete(a.failures.sources, source)
		}
	}
	known := a.failures.known[user]
	if known == nil {
		known = map[netip.Prefix]time.Time{}
		a.failures.known[user] = known
	}
	if _, isKnown := known[source]; !isKnown && len(known) >= lockoutSources {
		oldest := source
		for one, at := range known {
			if oldest == source || at.Before(known[oldest]) {
				oldest = one
			}
		}
		delete(known, oldest)
	}
	known[source] = now
}

// sweep forgets what no limit depends on any more.
func (f *failures) sweep(now time.Time) {
	maps.DeleteFunc(f.sources, func(_ netip.Prefix, l *lockout) bool { return l.isOver(l.lasts, now) })
	maps.DeleteFunc(f.accounts, func(_ string, l *lockout) bool { return l.isOver(l.lasts, now) })
	for user, known := range f.known {
		maps.DeleteFunc(known, func(_ netip.Prefix, at time.Time) bool { return now.Sub(at) > knownSourceTime })
		if len(known) == 0 {
			delete(f.known, user)
		}
	}
}

// MayAuthenticate reports whether somebody may try to authenticate as a user from an address, beside SMTP: neither has failed too often.
func (s *Server) MayAuthenticate(ip netip.Addr, user string) bool {
	return s.accounts.mayAuthenticate(user, sourceOf(ip), time.Now())
}

// Authenticated counts an authentication beside SMTP, and reports whether it counts as one: not where other failures have locked the source
// or the account while it was verified.
func (s *Server) Authenticated(ip netip.Addr, user string, isVerified bool) bool {
	source, now := sourceOf(ip), time.Now()
	if isVerified && s.accounts.mayAuthenticate(user, source, now) {
		s.accounts.authSucceeded(source, user, now)
		return true
	}
	s.counters.AuthFailures.Add(1)
	s.accounts.authFailed(DefaultLimits(), source, user, now)
	return false
}
