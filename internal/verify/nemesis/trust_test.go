//go:build unix

package nemesis_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/broker/identity"
)

// trust gives the daemons keys, and lets the databases trust each other's.
type trust struct {
	fingerprints map[string]string // by name of the daemon
	beside       map[string]string // of a daemon that serves the database of another, the name of that
}

func newTrust(testing.TB) *trust {
	return &trust{fingerprints: map[string]string{}, beside: map[string]string{}}
}

// second starts a daemon with a key of its own on a database that another daemon serves: to others both are one peer.
func (r *trust) second(t testing.TB, name, beside string, dsns ...string) *daemon {
	t.Helper()
	r.beside[name] = beside
	return r.daemon(t, name, dsns...)
}

// daemon starts a daemon with a key of its own.
func (r *trust) daemon(t testing.TB, name string, dsns ...string) *daemon {
	t.Helper()
	return r.daemonAt(t, loopback, name, nil, dsns...)
}

// daemonAt starts a daemon on a host, with further flags.
func (r *trust) daemonAt(t testing.TB, at host, name string, flags []string, dsns ...string) *daemon {
	t.Helper()
	folder := t.TempDir()
	r.identify(t, name, folder)
	return newDaemon(t, at, name, dsns, append([]string{"--identity", folder}, flags...)...)
}

// identify makes a key in a folder, which is trusted under a name from then on.
func (r *trust) identify(t testing.TB, name, folder string) *identity.Certificate {
	t.Helper()
	keys, err := identity.OpenFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	certificate, _, err := keys.Create(identity.Config{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	r.fingerprints[name] = certificate.Fingerprint.String()
	return certificate
}

// settle lets a database trust all daemons but its own.
func (r *trust) settle(t testing.TB, conn *pgx.Conn, own string) {
	t.Helper()
	for name, fingerprint := range r.fingerprints {
		if name != own && r.beside[name] == "" {
			must(t, conn, "select parley.trust_peer($1, $2)", fingerprint, name)
		}
	}
	for name, beside := range r.beside {
		if beside != own {
			must(t, conn, "select parley.alter_peer($1, add_fingerprint => $2)", beside, r.fingerprints[name])
		}
	}
}
