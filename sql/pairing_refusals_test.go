package sql_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// offer is what a broker states about itself when it is paired with.
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

// What is over is over in each of its steps, whichever way it has ended.
func TestPairingThatIsOverTrustsNobody(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{
		"closed":            "select parley.close_pairing($1::text::uuid)",
		"expired":           "update parley._p_pairing set expires_at = now() where pairing_id = $1::text::uuid",
		"five wrong proofs": "select parley._p_record_pairing_failure($1::text::uuid) from generate_series(1, 5)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t)
			invitation := b.invitation()
			equal(b.session, false, "select parley._p_find_invitation($1::text::uuid) is null", invitation)
			window := value[string](b.session, "select parley.open_pairing()::text")
			const ask = "select parley._p_request_pairing($1, '\\x3000', '{}', 'code', 'remote')::text"
			request := value[string](b.session, ask, oneKey)
			b.exec("select parley.confirm_pairing($1::text::uuid)", request)
			equal(b.session, "CONFIRMED", "select parley._p_pairing_request_state($1::text::uuid)", request)
			for _, pairing := range []string{invitation, window} {
				b.exec(end, pairing)
			}
			equal(b.session, true, "select parley._p_find_invitation($1::text::uuid) is null", invitation)
			equal(b.session, true, "select ("+strings.TrimPrefix(redeem, "select ")+") is null", invitation, oneKey, "late")
			equal(b.session, true, "select ("+strings.TrimPrefix(ask, "select ")+") is null", anotherKey)
			equal(b.session, "GONE", "select parley._p_pairing_request_state($1::text::uuid)", request)
			equal(b.session, true,
				"select parley._p_complete_pairing($1::text::uuid, now() - interval '1 hour', now() + interval '1 year', '{\"name\": \"late\"}') is null", request)
			equal(b.session, 0, "select count(*)::int from parley.peers")
		})
	}
}

// A request that people have refused, or that is done, is confirmed by nobody.
func TestRequestIsConfirmedWhileItWaits(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("select parley.open_pairing()")
	request := value[string](b.session, "select parley._p_request_pairing($1, '\\x3000', '{}', 'code', 'remote')::text", oneKey)
	b.exec("select parley.refuse_pairing($1::text::uuid)", request)
	b.refuses(15151, "select parley.confirm_pairing($1::text::uuid)", request)
	const complete = "select parley._p_complete_pairing($1::text::uuid, now() - interval '1 hour', now() + interval '1 year', '{\"name\": \"peer\"}')"
	equal(b.session, true, "select ("+strings.TrimPrefix(complete, "select ")+") is null", request)
	request = value[string](b.session, "select parley._p_request_pairing($1, '\\x3000', '{}', 'code', 'remote')::text", oneKey)
	b.exec("select parley.confirm_pairing($1::text::uuid)", request)
	equal(b.session, "peer", complete, request)
	b.exec("select parley.refuse_pairing($1::text::uuid)", request)
	equal(b.session, "DONE", "select parley._p_pairing_request_state($1::text::uuid)", request)
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
		{"a broker instance that it has spoken for", "select parley._p_refusal_of_speaker(array['peer:" + oneKey + "'], '" + thirdBroker + "', 1)", "", thirdBroker, 2714, ""},
		{"its address", "", "tcp://one.test:4022", "", 2714, ""},
		{"its name", "", "", "", 0, "one d4d4d4d4"},
		{"the instance of one that was revoked", "select parley.revoke_peer('one')", "", secondBroker, 0, "one d4d4d4d4"},
		{"the address of one that was revoked", "select parley.revoke_peer('one')", "tcp://one.test:4022", "", 0, "one d4d4d4d4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t)
			b.exec("select parley.trust_peer($1, 'one', address => 'tcp://one.test:4022', broker_instances => array[$2::text::uuid])", oneKey, secondBroker)
			if c.change != "" {
				b.exec(c.change)
			}
			var instances []string
			if c.instance != "" {
				instances = append(instances, c.instance)
			}
			offered := offer(t, "one", c.address, instances, nil, nil)
			key := strings.Repeat("d4", 32)
			if c.number != 0 {
				b.refuses(c.number, pairPeer, key, offered, nil)
				return
			}
			equal(b.session, c.peer, pairPeer, key, offered, nil)
		})
	}
}

const thirdBroker = "00000000-0000-0000-0000-000000000003"

// A peer that was revoked is trusted by no pairing, and changed by no statement, before it is dropped.
func TestRevokedPeerIsNotPairedWithAgain(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("select parley.trust_peer($1, 'one')", oneKey)
	b.exec("select parley.revoke_peer('one')")
	b.refuses(28034, pairPeer, oneKey, offer(t, "other name", "", nil, nil, nil), nil)
	b.refuses(28034, "select parley.pair_peer($1, '\\x3000', null, null, '{\"name\": \"x\"}', name => 'one')", anotherKey)
	b.refuses(28034, "select parley.alter_peer('one', is_forwarder => true)")
	b.refuses(28034, "select parley.alter_peer('one', add_fingerprint => $1)", anotherKey)
	equal(b.session, "REVOKED", "select state from parley.peers")
}

func TestKeyWhoseDatesAreNoneIsNotTrusted(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	for name, dates := range map[string]string{
		"expired":             "not_after => now() - interval '1 second'",
		"ends as it begins":   "not_before => now() + interval '1 hour', not_after => now() + interval '1 hour'",
		"ends before it does": "not_before => now() + interval '2 hours', not_after => now() + interval '1 hour'",
	} {
		if refusal := b.refuses(28055, "select parley.trust_peer($1, 'one', "+dates+")", oneKey); refusal.Detail == "" {
			t.Errorf("%s: the error does not say why", name)
		}
	}
}

// The certificates that come are those that people have seen: none more, none less.
func TestDialogCertificatesOfAPairingAreThoseThatWereShown(t *testing.T) {
	t.Parallel()
	one, two := certificate("one", -day, day), certificate("two", -day, day)
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
			b := newBroker(t)
			role := b.role("peer")
			offered := offer(t, "one", "", nil, c.shown, c.sent)
			if c.number != 0 {
				b.refuses(c.number, pairPeer, oneKey, offered, role)
				return
			}
			b.exec(pairPeer, oneKey, offered, role)
			equal(b.session, 1, "select count(*)::int from parley.peer_dialog_certificates where role_name = $1", role)
			b.exec("select parley.drop_peer('one')")
		})
	}
}

// It is taken when nothing that is sealed or signed today changes by it.
func TestDialogCertificateOfAPeerIsLeftOutWhereItStandsForSomethingElse(t *testing.T) {
	t.Parallel()
	one, two, over := certificate("one", -day, day), certificate("two", -day, day), certificate("over", -2*day, -day)
	for _, c := range []struct {
		name    string
		prepare func(b *broker, role, other string)
		sent    [][]byte
		reason  string
	}{
		{"taken", nil, [][]byte{one}, ""},
		{"none", nil, nil, "has none"},
		{"two", nil, [][]byte{one, two}, "several roles"},
		{"another role's", func(b *broker, _, other string) {
			b.exec("select parley.create_certificate('here', $1, $2)", one, other)
		}, [][]byte{one}, "stands for role"},
		{"revoked here", func(b *broker, role, _ string) {
			b.exec("select parley.create_certificate('here', $1, $2)", one, role)
			b.exec("update parley._p_certificate set revoked_at = now()")
		}, [][]byte{one}, "revoked"},
		{"another one is there", func(b *broker, role, _ string) {
			b.exec("select parley.create_certificate('here', $1, $2)", two, role)
		}, [][]byte{one}, "has another one already: here"},
		{"expired", nil, [][]byte{over}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t)
			role, other := b.role("peer"), b.role("other")
			if c.prepare != nil {
				c.prepare(b, role, other)
			}
			b.exec(pairPeer, oneKey, offer(t, "one", "", nil, c.sent, c.sent), role)
			var sums []string
			for _, sent := range c.sent {
				sum := sha256.Sum256(sent)
				sums = append(sums, hex.EncodeToString(sum[:]))
			}
			obstacle := value[string](b.session, "select coalesce(parley._p_dialog_certificate_obstacle('one', coalesce($1, '{}'::text[])), '')", sums)
			if c.reason == "" && obstacle != "" || !strings.Contains(obstacle, c.reason) {
				t.Errorf("what stands in the way is %q, want %q", obstacle, c.reason)
			}
			want := 0
			if c.name == "taken" {
				want = 1
			}
			equal(b.session, want, "select count(*)::int from parley.peer_dialog_certificates")
			b.exec("select parley.drop_peer('one')")
			b.exec("delete from parley._p_certificate")
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
			b := newBroker(t)
			role := b.role("peer")
			one := certificate("one", -day, day)
			b.exec(pairPeer, oneKey, offer(t, "one", "", nil, [][]byte{one}, [][]byte{one}), role)
			sum := sha256.Sum256(one)
			identity := "certificate:" + hex.EncodeToString(sum[:])
			acts := fmt.Sprintf("select coalesce(parley._p_role_of_identity('%s')::regrole::text, '')", identity)
			if value[string](b.session, acts) == "" {
				t.Fatal("the certificate stands for nobody")
			}
			b.exec(c.statement)
			equal(b.session, "", acts)
			equal(b.session, c.state, "select coalesce(max(state), '') from parley.certificates")
			b.exec("delete from parley._p_certificate; delete from parley._p_peer")
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
		"valid":             {-day, day, "select 1", true},
		"expired":           {-2 * day, -time.Minute, "select 1", false},
		"not yet valid":     {time.Hour, day, "select 1", false},
		"revoked":           {-day, day, "update parley._p_certificate set revoked_at = now()", false},
		"active for nobody": {-day, day, "select parley.alter_certificate('one', active_for_begin_dialog => false)", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t)
			owner, signer := b.role("owner"), b.role("signer")
			b.exec("select parley.create_queue('Mine'), parley.create_service('//mine', 'Mine', array['DEFAULT'], $1)", owner)
			own := sha256.Sum256(b.install("own", owner, true))
			one := sha256.Sum256(b.installValid("one", signer, false, c.from, c.until))
			b.exec(c.statement)
			if name == "revoked" {
				b.exec("update parley._p_certificate set revoked_at = null where name = 'own'")
			}
			equal(b.session, c.counts, "select parley._p_role_of_certificate($1) is not null", hex.EncodeToString(one[:]))
			equal(b.session, c.counts, "select status is null from parley._p_judge_certificates($1, $2, '//mine')", one[:], own[:])
			// The other way round: what is sealed for it is opened while it is valid.
			equal(b.session, true, "select status is null from parley._p_judge_certificates(null, $1, '//mine')", own[:])
			b.exec("select parley.drop_certificate('one'), parley.drop_certificate('own'), parley.drop_service('//mine')")
		})
	}
}
