package trust

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/broker/identity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

// entry is a key in the list of one database.
type entry struct {
	database int
	truststore.PeerKey
}

// check returns why the database does not trust the key now; nil when it does.
func (e entry) check(now time.Time) *RefusedError {
	switch {
	case e.IsRevoked:
		return refuse(NotPermitted, "peer %q was revoked", e.Peer)
	case e.NotBefore != nil && now.Before(*e.NotBefore):
		return refuse(NotYetValid, "the key of peer %q is not trusted before %s", e.Peer, e.NotBefore.Format(time.RFC3339))
	case e.NotAfter != nil && now.After(*e.NotAfter):
		return refuse(Expired, "the key of peer %q has expired at %s", e.Peer, e.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// list is a copy of the lists of all databases.
type list struct {
	keys map[string][]entry // by fingerprint
	// residents are the peers that are known to listen at an address, each as database and name.
	residents map[string]map[resident]bool
}

type resident struct {
	database int
	peer     string
}

func newList(keys [][]truststore.PeerKey) *list {
	l := &list{keys: map[string][]entry{}, residents: map[string]map[resident]bool{}}
	for database, of := range keys {
		for _, key := range of {
			l.keys[key.Fingerprint] = append(l.keys[key.Fingerprint], entry{database, key})
			if key.Address == nil || key.IsRevoked {
				continue
			}
			address := normal(*key.Address)
			if l.residents[address] == nil {
				l.residents[address] = map[resident]bool{}
			}
			l.residents[address][resident{database, key.Peer}] = true
		}
	}
	return l
}

// normal gives an address in the one way in which addresses are compared: host:port in lower case.
func normal(address string) string { return strings.TrimPrefix(strings.ToLower(address), "tcp://") }

// trusts reports whether one of the databases trusts a key: nil when one does, otherwise why not. The address is where it answers;
// "" for a caller. Known is false when the key is in no list.
func (l *list) trusts(f identity.Fingerprint, address string, now time.Time) (known bool, r *RefusedError) {
	entries := l.keys[f.String()]
	if len(entries) == 0 {
		return false, refuse(Unknown, "no database here trusts the key %s", f)
	}
	residents := l.residents[normal(address)]
	for _, e := range entries {
		refusal := e.check(now)
		if refusal == nil && address != "" && len(residents) > 0 && !residents[resident{e.database, e.Peer}] {
			refusal = refuse(WrongPeer, "peer %q answers at %s, where another one lives: parley.alter_peer changes the address", e.Peer, address)
		}
		if refusal == nil {
			return true, nil
		}
		// A revocation takes precedence over an expiry.
		if r == nil || refusal.Number == NotPermitted {
			r = refusal
		}
	}
	return true, r
}

// load reads the lists of all databases. The list of one that cannot be asked stays as it was.
func (t *Trust) load(ctx context.Context) error {
	t.loading.Lock()
	defer t.loading.Unlock()
	t.mu.Lock()
	recent := t.list != nil && time.Since(t.triedAt) < reloadAtMost
	t.mu.Unlock()
	if recent {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	var failures []error
	for i, d := range t.databases {
		keys, err := truststore.ReadPeerKeys(ctx, d.DB)
		if err != nil {
			failures = append(failures, fmt.Errorf("database %s: %w", d.Name, err))
			continue
		}
		t.keys[i] = append([]truststore.PeerKey{}, keys...)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list, t.triedAt = newList(t.keys), time.Now()
	return errors.Join(failures...)
}
