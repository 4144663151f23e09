package console

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/parleytest"
)

// nowhereConsole is a console whose database cannot be reached.
func nowhereConsole(t *testing.T, config Config) *Console {
	t.Helper()
	target, err := pgx.ParseConfig("postgres://keeper:swordfish@127.0.0.1:1/vault?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	config.Targets = []Target{{Name: "shop", Config: target}}
	made, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestEachAnswerForbidsWhatBrowsersWouldAllow(t *testing.T) {
	t.Parallel()
	wanted := map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
			"form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		"Strict-Transport-Security": "max-age=31536000",
	}
	served := nowhereConsole(t, Config{Secure: true})
	for _, path := range []string{"/", "/login", "/nothing", "/queues/x/figures"} {
		answer := httptest.NewRecorder()
		served.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		got := maps.Clone(wanted)
		for name := range got {
			got[name] = answer.Header().Get(name)
		}
		if !maps.Equal(got, wanted) {
			t.Errorf("%s has %v", path, got)
		}
	}
}

// A script, a form of another site and a connection without TLS do not get the cookie.
func TestCookieIsForTheConsoleAlone(t *testing.T) {
	t.Parallel()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	for _, isSecure := range []bool{false, true} {
		made := nowhereConsole(t, Config{Secure: isSecure}).cookie(request, "x", 0)
		if !made.HttpOnly || made.SameSite != http.SameSiteStrictMode || made.Secure != isSecure || made.Domain != "" || made.Path != "/" {
			t.Errorf("the cookie is %v", made)
		}
	}
}

// A client that writes a header of its own is no other address: the bound of logins is by address.
func TestAddressOfALoginIsTheOneThatAProxyHasSeen(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		behindProxy bool
		header      []string
		wanted      string
	}{
		{false, []string{"192.0.2.7"}, "198.51.100.1"},
		{true, []string{"192.0.2.7, 192.0.2.8"}, "192.0.2.8"},
		{true, []string{"192.0.2.7", "192.0.2.9"}, "192.0.2.9"},
		{true, nil, "198.51.100.1"},
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/login", nil)
		request.RemoteAddr, request.Header = "198.51.100.1:4711", http.Header{"X-Forwarded-For": one.header}
		if got := nowhereConsole(t, Config{IsBehindProxy: one.behindProxy}).addressOf(request); got != one.wanted {
			t.Errorf("of %v it is %s", one, got)
		}
	}
}

// The errors of a connection name the role and the host, which a role that is logged in need not know.
func TestPageWithoutADatabaseSaysNothingOfItsConnection(t *testing.T) {
	t.Parallel()
	s := &session{pool: nowhere(t)}
	err := s.read(t.Context(), func(context.Context, pgx.Tx) error { return nil })
	status, shown := describe(err)
	if all := shown.Title + shown.Text + shown.Detail + shown.Hint; status != http.StatusBadGateway || strings.Contains(all, "nobody") ||
		strings.Contains(all, "127.0.0.1") {
		t.Errorf("%v is shown as %d: %v", err, status, shown)
	}
}

func TestLoginEndsTheSessionBeforeIt(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	served, err := New(Config{Targets: []Target{{Name: "shop", Config: pool.Config().ConnConfig}}, Key: "opensesame"})
	if err != nil {
		t.Fatal(err)
	}
	earlier, err := served.sessions.begin("r", "shop", false, nowhere(t))
	if err != nil {
		t.Fatal(err)
	}
	// A page that asks to log in is not answered while the session lives, so the form is sent without it.
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/login", nil)
	request.AddCookie(served.cookie(request, earlier.secret, 0))
	if !served.enter(httptest.NewRecorder(), request, served.config.Targets[0], loginForm{}, func(*pgx.ConnConfig) {}) {
		t.Fatal("nobody was let in")
	}
	defer served.sessions.closeAll()
	if served.sessions.find(request) != nil {
		t.Error("the session before lives")
	}
}

// The server ends a statement, also where the console is gone and cancels nothing.
func TestServerEndsAStatementOfAPage(t *testing.T) {
	t.Parallel()
	s := &session{pool: parleytest.Database(t)}
	var ended error
	_ = s.read(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		_, ended = tx.Exec(context.WithoutCancel(ctx), "select pg_sleep(20)")
		return ended
	})
	if status, _ := describe(ended); pgdb.SQLState(ended) != "57014" || status != http.StatusGatewayTimeout {
		t.Errorf("it ended with %d: %v", status, ended)
	}
}

// A program that sends headers without end, or none, holds no connection.
func TestHeadersAreBoundedInSizeAndTime(t *testing.T) {
	t.Parallel()
	served := nowhereConsole(t, Config{})
	listening := Listening{Address: "127.0.0.1:0"}
	listener, err := listening.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- served.Serve(ctx, listener, nil) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/login", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Long", strings.Repeat("x", 4*headerBytesMost))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("long headers were answered with %d", answer.StatusCode)
	}
	slow, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := slow.Write([]byte("GET /login HTTP/1.1\r\n")); err != nil {
		t.Fatal(err)
	}
	_ = slow.SetReadDeadline(time.Now().Add(4 * headerTimeout))
	rest := make([]byte, 1)
	if _, err := slow.Read(rest); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a request without an end holds its connection")
	}
}
