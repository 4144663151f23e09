package console

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// How many logins may fail from one address before it has to wait, and how long; logins under way at once.
const (
	failuresMost  = 10
	failurePause  = time.Minute
	addressesMost = 10_000
	loginsAtOnce  = 4
)

// attempts counts logins that failed, by address.
type attempts struct {
	mu     sync.Mutex
	failed map[string]failures
	places chan struct{}
	clock  func() time.Time
}

type failures struct {
	count int
	last  time.Time
}

func newAttempts() *attempts {
	return &attempts{failed: map[string]failures{}, places: make(chan struct{}, loginsAtOnce), clock: time.Now}
}

// mayTry reports whether an address may try again.
func (a *attempts) mayTry(address string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.failed[address]
	return f.count < failuresMost || a.clock().Sub(f.last) > failurePause
}

// fail counts a failure. When too many addresses fail, those whose pause is over are forgotten, and then all.
func (a *attempts) fail(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock()
	if len(a.failed) >= addressesMost {
		for one, f := range a.failed {
			if now.Sub(f.last) > failurePause {
				delete(a.failed, one)
			}
		}
		if len(a.failed) >= addressesMost {
			clear(a.failed)
		}
	}
	f := a.failed[address]
	if now.Sub(f.last) > failurePause {
		f.count = 0
	}
	a.failed[address] = failures{count: f.count + 1, last: now}
}

func (a *attempts) succeed(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.failed, address)
}

// keyUsed answers an address whose key serves no more.
const keyUsed = "This address has been used, or is of a console that has ended. Log in as a role."

// loginForm is the content of the page of the login.
type loginForm struct {
	Targets []Target
	Role    string
	Target  string
	Next    string
	Problem string
}

func (c *Console) showLogin(w http.ResponseWriter, request *http.Request) {
	if c.sessions.find(request) != nil {
		http.Redirect(w, request, "/", http.StatusSeeOther)
		return
	}
	if key := request.URL.Query().Get("key"); key != "" {
		c.enterByKey(w, request, key)
		return
	}
	form := loginForm{Targets: c.config.Targets, Next: ownPath(request.URL.Query().Get("next"))}
	c.pages.render(w, http.StatusOK, "login", c.frame(nil, request, "Log in"), form)
}

// enterByKey lets in who has the address that the console printed when it started, once.
func (c *Console) enterByKey(w http.ResponseWriter, request *http.Request, key string) {
	if !c.takeKey(key) {
		c.attempts.fail(addressOf(request))
		form := loginForm{Targets: c.config.Targets, Problem: keyUsed}
		c.pages.render(w, http.StatusForbidden, "login", c.frame(nil, request, "Log in"), form)
		return
	}
	target := c.config.Targets[0]
	c.enter(w, request, target, loginForm{Targets: c.config.Targets, Role: target.Config.User}, func(*pgx.ConnConfig) {})
}

func (c *Console) takeKey(key string) bool {
	c.sessions.mu.Lock()
	defer c.sessions.mu.Unlock()
	if c.config.Key == "" || subtle.ConstantTimeCompare([]byte(c.config.Key), []byte(key)) != 1 {
		return false
	}
	c.config.Key = ""
	return true
}

func (c *Console) login(w http.ResponseWriter, request *http.Request) {
	form := loginForm{
		Targets: c.config.Targets, Role: request.PostFormValue("role"), Target: request.PostFormValue("target"),
		Next: ownPath(request.PostFormValue("next")),
	}
	target, ok := c.target(form.Target)
	password := request.PostFormValue("password")
	switch {
	case !ok:
		form.Problem = "There is no such database here."
	case form.Role == "" || password == "":
		form.Problem = "Name a role and its password."
	}
	if form.Problem != "" {
		c.pages.render(w, http.StatusUnprocessableEntity, "login", c.frame(nil, request, "Log in"), form)
		return
	}
	c.enter(w, request, target, form, asRole(form.Role, password))
}

// enter connects and begins a session, or shows the login again with the reason.
func (c *Console) enter(w http.ResponseWriter, request *http.Request, target Target, form loginForm, prepare func(*pgx.ConnConfig)) {
	address := addressOf(request)
	refuse := func(status int, problem string, err error) {
		c.config.Logger.Warn("a login was refused", "role", form.Role, "database", target.Name, "address", address, "error", err)
		form.Problem = problem
		c.pages.render(w, status, "login", c.frame(nil, request, "Log in"), form)
	}
	if !c.attempts.mayTry(address) {
		refuse(http.StatusTooManyRequests, "Too many logins have failed from this address. Try again in a minute.", nil)
		return
	}
	select {
	case c.attempts.places <- struct{}{}:
		defer func() { <-c.attempts.places }()
	case <-request.Context().Done():
		return
	}
	pool, err := connect(request.Context(), target, prepare)
	if err != nil {
		c.attempts.fail(address)
		status, problem := refusal(err)
		refuse(status, problem, err)
		return
	}
	c.attempts.succeed(address)
	var role string
	if err := pool.QueryRow(request.Context(), "select session_user::text").Scan(&role); err != nil {
		pool.Close()
		refuse(http.StatusBadGateway, "The database does not answer.", err)
		return
	}
	began, err := c.sessions.begin(role, target.Name, c.config.ReadOnly, pool)
	if err != nil {
		refuse(http.StatusServiceUnavailable, err.Error(), err)
		return
	}
	c.config.Logger.Info("a user logged in", "role", role, "database", target.Name, "address", address)
	http.SetCookie(w, c.cookie(began.secret, 0))
	http.Redirect(w, request, cmp.Or(form.Next, "/"), http.StatusSeeOther)
}

// refusal says why a login failed, and no more than its user may know.
func refusal(err error) (status int, problem string) {
	switch code := pgdb.SQLState(err); {
	case code == "28P01" || code == "28000":
		return http.StatusForbidden, "PostgreSQL does not accept this role with this password."
	case code != "" && code[:2] == "53":
		return http.StatusServiceUnavailable, "PostgreSQL has no connection left."
	case code == "42501" || code == "3D000":
		return http.StatusForbidden, "This role may not use this database."
	case errors.Is(err, parley.ErrNotInstalled):
		return http.StatusForbidden, "This database has no schema of Parley: run parley install."
	case errors.Is(err, parley.ErrUntrustedSchema), errors.Is(err, parley.ErrUpgradeNeeded), errors.Is(err, parley.ErrReleaseTooOld):
		return http.StatusConflict, err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, "The database does not answer."
	case trustsEverybody(err):
		return http.StatusForbidden, "This server asks for no password, so the console lets nobody in by this form. " +
			"Use the address that parley console prints, or give the server a rule with scram-sha-256."
	}
	return http.StatusBadGateway, "There is no connection to the database; the log of the console has the reason."
}

func (c *Console) logout(w http.ResponseWriter, request *http.Request) {
	if found := c.sessions.find(request); found != nil && found.fits(request.PostFormValue(tokenField)) {
		c.sessions.end(found)
		c.config.Logger.Info("a user logged out", "role", found.role, "database", found.target)
	}
	http.SetCookie(w, c.cookie("", -1))
	http.Redirect(w, request, "/login", http.StatusSeeOther)
}

func (c *Console) cookie(secret string, maxAge int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure is off where the console is reached without TLS, which is from this machine alone
		Name: cookieName, Value: secret, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: c.config.Secure,
		SameSite: http.SameSiteStrictMode,
	}
}

func (c *Console) target(name string) (Target, bool) {
	for _, target := range c.config.Targets {
		if target.Name == name || name == "" && len(c.config.Targets) == 1 {
			return target, true
		}
	}
	return Target{}, false
}

// addressOf is the address that a request comes from, without its port. A header that names another is not believed.
func addressOf(request *http.Request) string {
	host, _, err := net.SplitHostPort(request.RemoteAddr)
	if err != nil {
		return request.RemoteAddr
	}
	return host
}

// trustsEverybody reports whether a server let somebody in without asking for a password, which the driver refuses to go on with.
func trustsEverybody(err error) bool {
	return pgdb.SQLState(err) == "" && strings.Contains(err.Error(), "require_auth")
}
