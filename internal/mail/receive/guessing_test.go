package receive_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// login tries a password from an address and gives the reply.
func (f *fixture) login(source, user, password string) string {
	f.t.Helper()
	c := f.dialFrom(source)
	c.expect("220 ")
	c.say("EHLO client.example.net", "250")
	c.send("AUTH PLAIN " + encoded("\x00"+user+"\x00"+password) + "\r\n")
	defer func() { _ = c.conn.Close() }()
	return c.reply()
}

// Ten guesses are all, with logins of the guesser in between and from however many addresses; the user gets in from where he has been.
func TestGuessingAPasswordEndsWithALockout(t *testing.T) {
	t.Parallel()
	connector := submission()
	connector.Limits.ConnectionsPerSource = 0
	f := start(t, nil, connector)
	const guesser, other, home = "127.0.0.2", "127.0.0.3", "127.0.0.4"
	if got := f.login(home, "bob", "pass=,word"); !strings.HasPrefix(got, "235") {
		t.Fatalf("a login: %q", got)
	}
	guesses := 0
	for ; guesses < 30; guesses++ {
		if guesses%3 == 2 {
			f.login(guesser, "ann", "secret")
		}
		if got := f.login(guesser, "bob", "guess"); !strings.HasPrefix(got, "535 5.7.8") {
			if !strings.HasPrefix(got, "454 4.7.0") {
				t.Errorf("the reply to a guess is %q", got)
			}
			break
		}
	}
	if want := receive.DefaultLimits().LockoutFailures; guesses != want {
		t.Errorf("%d guesses were taken, not %d", guesses, want)
	}
	for _, c := range []struct{ name, source, user, password, want string }{
		{"the guesser as himself", guesser, "ann", "secret", "454 4.7.0"},
		{"the right password from another source", other, "bob", "pass=,word", "454 4.7.0"},
		{"another user from there", other, "ann", "secret", "235"},
		{"the user from where he has been", home, "bob", "pass=,word", "235"},
	} {
		if got := f.login(c.source, c.user, c.password); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// Guesses that are under way when others lock the account, on as many connections as one likes, are answered like wrong ones.
func TestGuessUnderWayIsNoneMoreWhenTheAccountIsLocked(t *testing.T) {
	t.Parallel()
	connector := submission()
	connector.Limits.ConnectionsPerSource = 0
	f := start(t, nil, connector)
	const guesser, other = "127.0.0.5", "127.0.0.6"
	lock := func() {
		for range receive.DefaultLimits().LockoutFailures {
			f.login(other, "bob", "guess")
		}
	}
	c := f.dialFrom(guesser)
	c.expect("220 ")
	c.say("EHLO client.example.net", "250")
	if got := c.scramDialogWith("SCRAM-SHA-256", "bob", "pass=,word", nil, lock); !strings.HasPrefix(got, "535 5.7.8") {
		t.Errorf("by SCRAM: %q", got)
	}
	// The same beside SMTP.
	for _, c := range []struct {
		source string
		want   bool
	}{{guesser, false}, {other, false}} {
		if got := f.server.Authenticated(netip.MustParseAddr(c.source), "bob", true); got != c.want {
			t.Errorf("over HTTP from %s: %v", c.source, got)
		}
	}
	if !f.server.Authenticated(netip.MustParseAddr(guesser), "ann", true) {
		t.Error("another user is locked out")
	}
}
