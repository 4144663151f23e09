package trust_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/sqltest"
)

// offer is the statement of a broker about itself when it is paired with.
func offer(t *testing.T, name, address string, instances []string, shown, sent [][]byte) string {
	t.Helper()
	fingerprints := []string{}
	for _, c := range shown {
		sum := sha256.Sum256(c)
		fingerprints = append(fingerprints, hex.EncodeToString(sum[:]))
	}
	certificates := []string{}
	for _, c := range sent {
		certificates = append(certificates, base64.StdEncoding.EncodeToString(c))
	}
	databases := []map[string]any{{"instance": nil, "services": []string{}, "certificates": certificates}}
	for _, instance := range instances {
		databases = append(databases, map[string]any{"instance": instance, "services": []string{}})
	}
	offered := map[string]any{"name": name, "dialog_certificates": fingerprints, "databases": databases}
	if address != "" {
		offered["address"] = address
	}
	text, err := json.Marshal(offered)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const pairPeer = "select parley.pair_peer($1, '\\x3000', null, null, $2::jsonb, role => $3)"

// A pairing that is over is over in each of its steps, whichever way it has ended.
func TestPairingThatIsOverTrustsNobody(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{
		"closed":            "select parley.close_pairing($1::text::uuid)",
		"expired":           "update parley._p_pairing set expires_at = now() where pairing_id = $1::text::uuid",
		"five wrong proofs": "select parley._p_record_pairing_failure($1::text::uuid) from generate_series(1, 5)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewBroker(t)
			invitation := newInvitation(b)
			sqltest.Equal(b.Session, false, "select parley._p_find_invitation($1::text::uuid) is null", invitation)
			window := sqltest.Value[string](b.Session, "select parley.open_pairing()::text")
			const ask = "select parley._p_request_pairing($1, '\\x3000', '{}', 'code', 'remote')::text"
			request := sqltest.Value[string](b.Session, ask, sqltest.OneKey)
			b.Exec("select parley.confirm_pairing($1::text::uuid)", request)
			sqltest.Equal(b.Session, "CONFIRMED", "select parley._p_pairing_request_state($1::text::uuid)", request)
			for _, pairing := range []string{invitation, window} {
				b.Exec(end, pairing)
			}
			sqltest.Equal(b.Session, true, "select parley._p_find_invitation($1::text::uuid) is null", invitation)
			sqltest.Equal(b.Session, true, "select ("+strings.TrimPrefix(redeem, "select ")+") is null", invitation, sqltest.OneKey, "late")
			sqltest.Equal(b.Session, true, "select ("+strings.TrimPrefix(ask, "select ")+") is null", sqltest.AnotherKey)
			sqltest.Equal(b.Session, "GONE", "select parley._p_pairing_request_state($1::text::uuid)", request)
			sqltest.Equal(b.Session, true,
				"select parley._p_complete_pairing($1::text::uuid, now() - interval '1 hour', now() + interval '1 year', '{\"name\": \"late\"}') is null", request)
			sqltest.Equal(b.Session, 0, "select count(*)::int from parley.peers")
		})
	}
}

// A request that people have refused, or that is done, is confirmed by nobody.
func TestRequestIsConfirmedWhileItWaits(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.open_pairing()")
	request := sqltest.Value[string](b.Session, "select parley._p_request_pairing($1, '\\x3000', '{}', 'code', 'remote')::text", sqltest.OneKey)
	b.Exec("select parley.refuse_pairing($1::text::uuid)", request)
	b.Refuses(15151, "select parley.confirm_pairing($1::text::uuid)", request)
	const complete = "select parley._p_complete_pairing($1::text::uuid, now() - interval '1 hour', now() + interval '1 year', '{\"name\": \"peer\"}')"
	sqltest.Equal(b.Session, true, "select ("+strings.TrimPrefix(complete, "select ")+") is null", request)
	request = sqltest.Value[string](b.Session, "select parley._p_request_pairing($1, '\\x3000', '{}', 'code', 'remote')::text", sqltest.OneKey)
	b.Exec("select parley.confirm_pairing($1::text::uuid)", request)
	sqltest.Equal(b.Session, "peer", complete, request)
	b.Exec("select parley.refuse_pairing($1::text::uuid)", request)
	sqltest.Equal(b.Session, "DONE", "select parley._p_pairing_request_state($1::text::uuid)", request)
}

// A pairing may take the name, the broker instance or the address of no other peer; what a revoked peer had is free.
func TestPairingTakesNothingOfAnotherPeer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		change            string // of the peer that there is
		address, instance string // that the other one claims
		number            int    // 0: it is paired with
		peer              string // as which
	}{
		{"its broker instance", "", "", secondBroker, 2714, ""},
		{"a broker instance that it has spoken for", "select parley._p_refusal_of_speaker(array['peer:" + sqltest.OneKey + "'], '" + thirdBroker + "', 1)", "", thirdBroker, 2714, ""},
		{"its address", "", "tcp://one.test:4022", "", 2714, ""},
		{"its name", "", "", "", 0, "one d4d4d4d4"},
		{"the instance of one that was revoked", "select parley.revoke_peer('one')", "", secondBroker, 0, "one d4d4d4d4"},
		{"the address of one that was revoked", "select parley.revoke_peer('one')", "tcp://one.test:4022", "", 0, "one d4d4d4d4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewBroker(t)
			b.Exec("select parley.trust_peer($1, 'one', address => 'tcp://one.test:4022', broker_instances => array[$2::text::uuid])", sqltest.OneKey, secondBroker)
			if c.change != "" {
				b.Exec(c.change)
			}
			var instances []string
			if c.instance != "" {
				instances = append(instances, c.instance)
			}
			offered := offer(t, "one", c.address, instances, nil, nil)
			key := strings.Repeat("d4", 32)
			if c.number != 0 {
				b.Refuses(c.number, pairPeer, key, offered, nil)
				return
			}
			sqltest.Equal(b.Session, c.peer, pairPeer, key, offered, nil)
		})
	}
}

const thirdBroker = "00000000-0000-0000-0000-000000000003"

// A peer that was revoked is trusted by no pairing, and changed by no statement, before it is dropped.
func TestRevokedPeerIsNotPairedWithAgain(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.trust_peer($1, 'one')", sqltest.OneKey)
	b.Exec("select parley.revoke_peer('one')")
	b.Refuses(28034, pairPeer, sqltest.OneKey, offer(t, "other name", "", nil, nil, nil), nil)
	b.Refuses(28034, "select parley.pair_peer($1, '\\x3000', null, null, '{\"name\": \"x\"}', name => 'one')", sqltest.AnotherKey)
	b.Refuses(28034, "select parley.alter_peer('one', is_forwarder => true)")
	b.Refuses(28034, "select parley.alter_peer('one', add_fingerprint => $1)", sqltest.AnotherKey)
	sqltest.Equal(b.Session, "REVOKED", "select state from parley.peers")
}

func TestKeyWhoseDatesAreNoneIsNotTrusted(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	for name, dates := range map[string]string{
		"expired":             "not_after => now() - interval '1 second'",
		"ends as it begins":   "not_before => now() + interval '1 hour', not_after => now() + interval '1 hour'",
		"ends before it does": "not_before => now() + interval '2 hours', not_after => now() + interval '1 hour'",
	} {
		if refusal := b.Refuses(28055, "select parley.trust_peer($1, 'one', "+dates+")", sqltest.OneKey); refusal.Detail == "" {
			t.Errorf("%s: the error does not say why", name)
		}
	}
}

// The certificates that come are those that people have seen: none more, none less.
func TestDialogCertificatesOfAPairingAreThoseThatWereShown(t *testing.T) {
	t.Parallel()
	one, two := sqltest.Certificate("one", -sqltest.Day, sqltest.Day), sqltest.Certificate("two", -sqltest.Day, sqltest.Day)
	for _, c := range []struct {
		name        string
		shown, sent [][]byte
		number      int
	}{
		{"one more", [][]byte{one}, [][]byte{one, two}, 28055},
		{"one less", [][]byte{one, two}, [][]byte{one}, 28055},
		{"none was shown", nil, [][]byte{one}, 28055},
		{"another one", [][]byte{one}, [][]byte{two}, 28055},
		{"the same", [][]byte{one}, [][]byte{one}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewBroker(t)
			role := b.Role("peer")
			offered := offer(t, "one", "", nil, c.shown, c.sent)
			if c.number != 0 {
				b.Refuses(c.number, pairPeer, sqltest.OneKey, offered, role)
				return
			}
			b.Exec(pairPeer, sqltest.OneKey, offered, role)
			sqltest.Equal(b.Session, 1, "select count(*)::int from parley.peer_dialog_certificates where role_name = $1", role)
			b.Exec("select parley.drop_peer('one')")
		})
	}
}

// It is taken when nothing that is sealed or signed today changes by it.
func TestDialogCertificateOfAPeerIsLeftOutWhereItStandsForSomethingElse(t *testing.T) {
	t.Parallel()
	one, two, over := sqltest.Certificate("one", -sqltest.Day, sqltest.Day), sqltest.Certificate("two", -sqltest.Day, sqltest.Day), sqltest.Certificate("over", -2*sqltest.Day, -sqltest.Day)
	for _, c := range []struct {
		name    string
		prepare func(b *sqltest.Broker, role, other string)
		sent    [][]byte
		reason  string
	}{
		{"taken", nil, [][]byte{one}, ""},
		{"none", nil, nil, "has none"},
		{"two", nil, [][]byte{one, two}, "several roles"},
		{"another role's", func(b *sqltest.Broker, _, other string) {
			b.Exec("select parley.create_certificate('here', $1, $2)", one, other)
		}, [][]byte{one}, "stands for role"},
		{"revoked here", func(b *sqltest.Broker, role, _ string) {
			b.Exec("select parley.create_certificate('here', $1, $2)", one, role)
			b.Exec("update parley._p_certificate set revoked_at = now()")
		}, [][]byte{one}, "revoked"},
		{"another one is there", func(b *sqltest.Broker, role, _ string) {
			b.Exec("select parley.create_certificate('here', $1, $2)", two, role)
		}, [][]byte{one}, "has another one already: here"},
		{"expired", nil, [][]byte{over}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewBroker(t)
			role, other := b.Role("peer"), b.Role("other")
			if c.prepare != nil {
				c.prepare(b, role, other)
			}
			b.Exec(pairPeer, sqltest.OneKey, offer(t, "one", "", nil, c.sent, c.sent), role)
			var sums []string
			for _, sent := range c.sent {
				sum := sha256.Sum256(sent)
				sums = append(sums, hex.EncodeToString(sum[:]))
			}
			obstacle := sqltest.Value[string](b.Session, "select coalesce(parley._p_dialog_certificate_obstacle('one', coalesce($1, '{}'::text[])), '')", sums)
			if c.reason == "" && obstacle != "" || !strings.Contains(obstacle, c.reason) {
				t.Errorf("what stands in the way is %q, want %q", obstacle, c.reason)
			}
			want := 0
			if c.name == "taken" {
				want = 1
			}
			sqltest.Equal(b.Session, want, "select count(*)::int from parley.peer_dialog_certificates")
			b.Exec("select parley.drop_peer('one')")
			b.Exec("delete from parley._p_certificate")
		})
	}
}

// The dialog certificate of a peer stands for nobody when the peer acts as nobody, and is good no longer than the peer is.
func TestDialogCertificateOfAPeerEndsWithItsRights(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ statement, state string }{
		"revoked": {"select parley.revoke_peer('one')", "REVOKED"},
		"no role": {"select parley.alter_peer('one', role => 'PUBLIC')", ""},
		"dropped": {"select parley.drop_peer('one')", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewBroker(t)
			role := b.Role("peer")
			one := sqltest.Certificate("one", -sqltest.Day, sqltest.Day)
			b.Exec(pairPeer, sqltest.OneKey, offer(t, "one", "", nil, [][]byte{one}, [][]byte{one}), role)
			sum := sha256.Sum256(one)
			identity := "certificate:" + hex.EncodeToString(sum[:])
			acts := fmt.Sprintf("select coalesce(parley._p_role_of_identity('%s')::regrole::text, '')", identity)
			if sqltest.Value[string](b.Session, acts) == "" {
				t.Fatal("the certificate stands for nobody")
			}
			b.Exec(c.statement)
			sqltest.Equal(b.Session, "", acts)
			sqltest.Equal(b.Session, c.state, "select coalesce(max(state), '') from parley.certificates")
			b.Exec("delete from parley._p_certificate; delete from parley._p_peer")
		})
	}
}

// A signature counts while its certificate is valid, and its revocation ends that at once.
func TestSignatureCountsWhileItsCertificateIsValid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, until time.Duration
		statement   string
		counts      bool
	}{
		"valid":             {-sqltest.Day, sqltest.Day, "select 1", true},
		"expired":           {-2 * sqltest.Day, -time.Minute, "select 1", false},
		"not yet valid":     {time.Hour, sqltest.Day, "select 1", false},
		"revoked":           {-sqltest.Day, sqltest.Day, "update parley._p_certificate set revoked_at = now()", false},
		"active for nobody": {-sqltest.Day, sqltest.Day, "select parley.alter_certificate('one', active_for_begin_dialog => false)", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewBroker(t)
			owner, signer := b.Role("owner"), b.Role("signer")
			b.Exec("select parley.create_queue('Mine'), parley.create_service('//mine', 'Mine', array['DEFAULT'], $1)", owner)
			own := sha256.Sum256(b.Install("own", owner, true))
			one := sha256.Sum256(b.InstallValid("one", signer, false, c.from, c.until))
			b.Exec(c.statement)
			if name == "revoked" {
				b.Exec("update parley._p_certificate set revoked_at = null where name = 'own'")
			}
			sqltest.Equal(b.Session, c.counts, "select parley._p_role_of_certificate($1) is not null", hex.EncodeToString(one[:]))
			sqltest.Equal(b.Session, c.counts, "select status is null from parley._p_judge_certificates($1, $2, '//mine')", one[:], own[:])
			// The other way round: what is sealed for it is opened while it is valid.
			sqltest.Equal(b.Session, true, "select status is null from parley._p_judge_certificates(null, $1, '//mine')", own[:])
			b.Exec("select parley.drop_certificate('one'), parley.drop_certificate('own'), parley.drop_service('//mine')")
		})
	}
}
