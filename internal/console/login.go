package console

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// roleBytesMost is how long the name of a role is in PostgreSQL, which would cut a longer one.
const roleBytesMost = 63

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
		form := loginForm{Targets: c.config.Targets, Problem: keyUsed}
		c.pages.render(w, http.StatusForbidden, "login", c.frame(nil, request, "Log in"), form)
		return
	}
	target := c.config.Targets[0]
	if !c.enter(w, request, target, loginForm{Targets: c.config.Targets}, func(*pgx.ConnConfig) {}) {
		c.giveKeyBack(key)
	}
}

func (c *Console) giveKeyBack(key string) {
	c.sessions.mu.Lock()
	defer c.sessions.mu.Unlock()
	c.config.Key = key
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
	if err := parseForm(request); err != nil {
		status, shown := describe(err)
		form := loginForm{Targets: c.config.Targets, Problem: shown.Text}
		c.pages.render(w, status, "login", c.frame(nil, request, "Log in"), form)
		return
	}
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
	case len(form.Role) > roleBytesMost || strings.Contains(form.Role+password, "\x00"):
		form.Role, form.Problem = "", "A role has a name of at most 63 bytes, and no zero byte is in it or in a password."
	}
	if form.Problem != "" {
		c.pages.render(w, http.StatusUnprocessableEntity, "login", c.frame(nil, request, "Log in"), form)
		return
	}
	counted := target.Name + "/" + form.Role
	if !c.mayLogIn(request, counted) {
		form.Problem = "Too many logins have failed. Try again in a minute."
		c.pages.render(w, http.StatusTooManyRequests, "login", c.frame(nil, request, "Log in"), form)
		return
	}
	if c.enter(w, request, target, form, asRole(form.Role, password)) {
		c.attempts.succeed(c.addressOf(request), counted)
	}
}

// mayLogIn counts an attempt, or refuses it.
func (c *Console) mayLogIn(request *http.Request, role string) bool {
	if c.attempts.begin(c.addressOf(request), role) {
		return true
	}
	c.config.Logger.Warn("a login has to wait", "role", role, "address", c.addressOf(request))
	return false
}

// enter connects and begins a session, or shows the login again with the reason.
func (c *Console) enter(
	w http.ResponseWriter, request *http.Request, target Target, form loginForm, prepare func(*pgx.ConnConfig),
) (entered bool) {
	address := c.addressOf(request)
	refuse := func(status int, problem string, err error) bool {
		c.config.Logger.Warn("a login was refused", "role", form.Role, "database", target.Name, "address", address, "error", err)
		form.Problem = problem
		c.pages.render(w, status, "login", c.frame(nil, request, "Log in"), form)
		return false
	}
	select {
	case c.attempts.places <- struct{}{}:
		defer func() { <-c.attempts.places }()
	case <-request.Context().Done():
		return false
	}
	pool, err := connect(request.Context(), target, c.config.recheckInterval, prepare)
	if err != nil {
		status, problem := refusal(err)
		return refuse(status, problem, err)
	}
	var role string
	if err := pool.QueryRow(request.Context(), "select session_user::text").Scan(&role); err != nil {
		pool.Close()
		return refuse(http.StatusBadGateway, "The database does not answer.", err)
	}
	if earlier := c.sessions.find(request); earlier != nil {
		c.sessions.end(earlier)
	}
	began, err := c.sessions.begin(role, target.Name, c.config.ReadOnly, pool)
	if err != nil {
		return refuse(http.StatusServiceUnavailable, err.Error(), err)
	}
	c.config.Logger.Info("a user logged in", "role", role, "database", target.Name, "address", address)
	http.SetCookie(w, c.cookie(request, began.secret, 0))
	http.Redirect(w, request, cmp.Or(form.Next, "/"), http.StatusSeeOther)
	return true
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
	_ = parseForm(request) // without a form there is no token, and nobody is logged out
	if found := c.sessions.find(request); found != nil {
		if !found.fits(request.PostFormValue(tokenField)) {
			// Without its cookie the session would live on, and nobody could end it.
			http.Redirect(w, request, "/", http.StatusSeeOther)
			return
		}
		c.sessions.end(found)
		c.config.Logger.Info("a user logged out", "role", found.role, "database", found.target)
	}
	http.SetCookie(w, c.cookie(request, "", -1))
	http.Redirect(w, request, "/login", http.StatusSeeOther)
}

// cookie is named for the port of the console, so that two consoles of one host do not end each other's sessions: browsers keep cookies
// by host alone. By TLS its prefix has the browser refuse one that another name of the domain sets.
func (c *Console) cookie(request *http.Request, secret string, maxAge int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure is off where the console is reached without TLS, which is from this machine alone
		Name: cookieName(request, c.config.Secure), Value: secret, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: c.config.Secure,
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

// trustsEverybody reports whether a server let somebody in without asking for a password, which the driver refuses to go on with.
func trustsEverybody(err error) bool {
	return pgdb.SQLState(err) == "" && strings.Contains(err.Error(), "require_auth")
}
