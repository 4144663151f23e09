//go:build unix

package nemesis_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/identity"
)

// trust gives the daemons keys, and lets the databases trust each other's.
type trust struct {
	fingerprints map[string]string // by name of the daemon
}

func newTrust(testing.TB) *trust { return &trust{fingerprints: map[string]string{}} }

// daemon starts a daemon with a key of its own.
func (r *trust) daemon(t testing.TB, name string, dsns ...string) *daemon {
	t.Helper()
	return r.daemonAt(t, loopback, name, dsns...)
}

func (r *trust) daemonAt(t testing.TB, at host, name string, dsns ...string) *daemon {
	t.Helper()
	folder := t.TempDir()
	keys, err := identity.OpenFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	certificate, _, err := keys.Create(identity.Config{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	r.fingerprints[name] = certificate.Fingerprint.String()
	return newDaemon(t, at, name, dsns, "--identity", folder)
}

// settle lets a database trust all daemons but its own.
func (r *trust) settle(t testing.TB, conn *pgx.Conn, own string) {
	t.Helper()
	for name, fingerprint := range r.fingerprints {
		if name != own {
			must(t, conn, "select parley.trust_peer($1, $2)", fingerprint, name)
		}
	}
}
