package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/operate"
)

// How long a session lives: idle, and at most; and how many there are at once, and connections of each.
const (
	idleMost           = 30 * time.Minute
	ageMost            = 8 * time.Hour
	sessionsMost       = 100
	sessionsOfRoleMost = 10
	connectionsMost    = 2
	sweepInterval      = time.Minute
	idleConnectionMost = time.Minute
)

// The names of the cookie, to which the port is added, and of the token in forms.
const (
	cookiePrefix = "parley_console"
	tokenField   = "csrf_token"
)

// errTooManySessions refuses a login when the console is full.
var errTooManySessions = errors.New("too many people are logged in: wait until one logs out, or a session ends")

// session is one who is logged in.
type session struct {
	// secret is the content of the cookie; token stands in each form.
	secret, token string
	role, target  string
	isReadOnly    bool
	pool          *pgxpool.Pool

	mu          sync.Mutex
	questions   openQuestions
	began, used time.Time
	earlier     operate.Activity // the reading that rates are derived from
	latest      operate.Activity
	readAt      time.Time // the latest, by the clock of the console
	diagnosed   diagnosis
	setAside    setAsideCounts
}

// fits compares the token of a request in constant time.
func (s *session) fits(token string) bool {
	return subtle.ConstantTimeCompare([]byte(s.token), []byte(token)) == 1
}

// sessions are those who are logged in, by the content of their cookie. Nothing of them is on disk: a console that starts again
// asks everybody again.
type sessions struct {
	isSecure bool
	mu       sync.Mutex
	all      map[string]*session
	clock    func() time.Time
}

func newSessions(isSecure bool) *sessions {
	return &sessions{isSecure: isSecure, all: map[string]*session{}, clock: time.Now}
}

// begin makes a session of a role with its connections. It closes the pool when it cannot. A role that has too many loses the one that
// it has not used for longest, so that nobody keeps the others out with one password.
func (s *sessions) begin(role, target string, readOnly bool, pool *pgxpool.Pool) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.of(role, target); len(own) >= sessionsOfRoleMost {
		oldest := slices.MinFunc(own, func(a, b *session) int { return a.lastUsed().Compare(b.lastUsed()) })
		delete(s.all, oldest.secret)
		go oldest.pool.Close()
	}
	if len(s.all) >= sessionsMost {
		pool.Close()
		return nil, errTooManySessions
	}
	now := s.clock()
	made := &session{
		secret: rand.Text() + rand.Text(), token: rand.Text(), role: role, target: target, isReadOnly: readOnly,
		pool: pool, began: now, used: now,
	}
	s.all[made.secret] = made
	return made, nil
}

// of gives the sessions of a role in a database; the lock is held.
func (s *sessions) of(role, target string) (own []*session) {
	for _, one := range s.all {
		if one.role == role && one.target == target {
			own = append(own, one)
		}
	}
	return own
}

// cookieName gives the name of the cookie of the console that a browser has asked.
func cookieName(request *http.Request, isSecure bool) string {
	name := cookiePrefix
	if _, port, err := net.SplitHostPort(request.Host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err == nil {
			name += "_" + port
		}
	}
	if isSecure {
		return "__Host-" + name
	}
	return name
}

// find gives the session of a request, nil when it has none that still lives.
func (s *sessions) find(request *http.Request) *session {
	cookie, err := request.Cookie(cookieName(request, s.isSecure))
	if err != nil {
		return nil
	}
	s.mu.Lock()
	found := s.all[cookie.Value]
	s.mu.Unlock()
	if found == nil {
		return nil
	}
	if now := s.clock(); !found.use(now, request.Header.Get("X-Parley-Live") == "") {
		s.end(found)
		return nil
	}
	return found
}

func (s *session) lastUsed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// use reports whether the session still lives. A page that refreshes itself keeps no session alive: its user may have left.
func (s *session) use(now time.Time, isPerson bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.used) > idleMost || now.Sub(s.began) > ageMost {
		return false
	}
	if isPerson {
		s.used = now
	}
	return true
}

// end forgets a session and closes its connections.
func (s *sessions) end(ended *session) {
	s.mu.Lock()
	delete(s.all, ended.secret)
	s.mu.Unlock()
	go ended.pool.Close() // it waits for statements that are under way
}

// sweep ends sessions whose time is over, until ctx ends.
func (s *sessions) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.endOld()
		}
	}
}

func (s *sessions) endOld() {
	s.mu.Lock()
	var old []*session
	for _, one := range s.all {
		if !one.use(s.clock(), false) {
			old = append(old, one)
		}
	}
	s.mu.Unlock()
	for _, one := range old {
		s.end(one)
	}
}

func (s *sessions) closeAll() {
	s.mu.Lock()
	all := s.all
	s.all = map[string]*session{}
	s.mu.Unlock()
	for _, one := range all {
		one.pool.Close()
	}
}
