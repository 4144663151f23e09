package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/console"
	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/internal/postgres/postgrestest"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
)

func TestServerChecksThePasswordOfALogin(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, postgres.Config{TCP: true, Settings: map[string]string{"fsync": "off", "shared_buffers": "32MB"}})
	if err := server.EnsureDatabase(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	owner, err := pgx.Connect(t.Context(), server.DSN("shop"))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	if err := schema.Install(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Exec(t.Context(), "create role clerk login password 'secret word'"); err != nil {
		t.Fatal(err)
	}
	dsn, err := server.TCPDSN("shop")
	if err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	base := serve(t, console.CheckedAgain(console.Config{Targets: []console.Target{{Name: "shop", Config: config}}}, time.Millisecond))
	v := newVisitor(t, base)
	enterAs := func(role, password string) int {
		status, _ := v.post("/login", url.Values{"role": {role}, "password": {password}, "next": {"/queues"}})
		return status
	}
	for _, wrong := range [][2]string{{"clerk", "wrong"}, {"nobody", "secret word"}, {config.User, "wrong"}} {
		if status := enterAs(wrong[0], wrong[1]); status != http.StatusForbidden {
			t.Errorf("%v was answered with %d", wrong, status)
		}
	}
	if status := enterAs("clerk", ""); status != http.StatusUnprocessableEntity {
		t.Errorf("no password was answered with %d", status)
	}
	if status, _ := v.get("/queues"); status != http.StatusSeeOther {
		t.Errorf("without a login a page was answered with %d", status)
	}
	if status := enterAs("clerk", "secret word"); status != http.StatusSeeOther {
		t.Fatalf("the right password was answered with %d", status)
	}
	if status, body := v.get("/queues"); status != http.StatusOK || !strings.Contains(body, "as clerk") {
		t.Errorf("after the login a page was answered with %d: %s", status, body)
	}
	// A session ends with the password that began it.
	if _, err := owner.Exec(t.Context(), "alter role clerk password 'another word'"); err != nil {
		t.Fatal(err)
	}
	parleytest.Until(t, "the session ends", func() bool {
		status, _ := v.get("/queues")
		return status == http.StatusSeeOther
	})
	if status := enterAs("clerk", "secret word"); status != http.StatusForbidden {
		t.Errorf("the old password was answered with %d", status)
	}
	other := newVisitor(t, base)
	for range 12 {
		other.post("/login", url.Values{"role": {"clerk"}, "password": {"wrong"}})
	}
	if status, _ := other.post("/login", url.Values{"role": {"clerk"}, "password": {"secret word"}}); status != http.StatusTooManyRequests {
		t.Errorf("after many failures a login was answered with %d", status)
	}
}

// The socket of the tests' server asks nobody for a password: then the form would let in everybody as every role.
func TestServerThatAsksForNoPasswordLetsNobodyInByTheForm(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	one := target(t, pool, "")
	v := newVisitor(t, serve(t, console.Config{Targets: []console.Target{one}}))
	status, body := v.post("/login", url.Values{"role": {one.Config.User}, "password": {"anything"}})
	if status != http.StatusForbidden || !strings.Contains(body, "asks for no password") {
		t.Errorf("the login was answered with %d: %s", status, body)
	}
	if status, _ := v.get("/"); status != http.StatusSeeOther {
		t.Errorf("a page was answered with %d", status)
	}
}

func TestConsoleForOtherMachinesNeedsACertificateOrAProxy(t *testing.T) {
	t.Parallel()
	for address, isRefused := range map[string]bool{
		"127.0.0.1:0": false, "[::1]:0": false, "localhost:0": false, "0.0.0.0:0": true, ":7440": true, "db1.example.com:7440": true, "7440": true,
	} {
		listening := console.Listening{Address: address}
		if err := listening.Validate(); (err != nil) != isRefused {
			t.Errorf("%s: %v", address, err)
		}
	}
	behind := console.Listening{Address: ":7440", IsBehindProxy: true}
	if err := behind.Validate(); err != nil || !behind.IsSecure() {
		t.Errorf("behind a proxy: %v", err)
	}
}

// Poolers take few parameters of a connection, and give each transaction another session.
func TestConsoleWorksBehindAPoolerAndWhateverARoleHasAsItsDefaults(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	exec(t, pool, "create function public.lower(text) returns text language sql as $$ select 'another' $$")
	exec(t, pool, "do $$ begin execute format('alter database %I set search_path = public, pg_catalog', current_database()); "+
		"execute format('alter database %I set datestyle = \"German\"', current_database()); end $$")
	config, err := pgx.ParseConfig(parleytest.PgBouncer(t, pool))
	if err != nil {
		t.Fatal(err)
	}
	v := newVisitor(t, serve(t, console.Config{Targets: []console.Target{{Name: "shop", Config: config}}, Key: "opensesame"}))
	if status, body := v.get("/login?key=opensesame"); status != http.StatusSeeOther {
		t.Fatalf("behind a pooler the key was answered with %d: %s", status, body)
	}
	for _, path := range []string{"/", "/queues", "/delayed", "/failed?error=x"} {
		if status, body := v.get(path); status != http.StatusOK || strings.Contains(body, "another") {
			t.Errorf("%s was answered with %d: %s", path, status, body)
		}
	}
	if _, body := v.get("/delayed"); !strings.Contains(body, "202") || strings.Contains(body, ".202") {
		t.Errorf("times are not written as everywhere: %s", body)
	}
}

// A form of an earlier session ends no session, and does not hide this one from its user either.
func TestLogoutWithATokenThatDoesNotFitLeavesTheSession(t *testing.T) {
	t.Parallel()
	v := enter(t, parleytest.Database(t), "", false)
	for _, kind := range []string{"application/x-www-form-urlencoded", "text/plain"} {
		if status, _ := v.post("/logout", url.Values{"csrf_token": {"stale"}}, "Content-Type", kind); status != http.StatusSeeOther {
			t.Errorf("it was answered with %d", status)
		}
		if status, _ := v.get("/actions"); status != http.StatusOK {
			t.Errorf("a page was answered with %d", status)
		}
	}
}
