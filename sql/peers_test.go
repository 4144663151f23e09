package sql_test

import (
	"strings"
	"testing"
)

// Fingerprints of keys that nobody has.
var (
	oneKey     = strings.Repeat("a1", 32)
	anotherKey = strings.Repeat("b2", 32)
	thirdKey   = strings.Repeat("c3", 32)
)

// Statements on peers that cannot be right.
var peerRefusals = []refusal{
	{number: 2714, because: "peer exists", statement: `select parley.trust_peer(repeat('00', 32), 'friend')`},
	{number: 2714, because: "key is a peer's", statement: `select parley.trust_peer(repeat('a1', 32), 'double')`},
	{number: 2714, because: "key is a revoked peer's", statement: `select parley.alter_peer('friend', add_fingerprint => repeat('b2', 32))`},
	{number: 2714, because: "new name is taken", statement: `select parley.alter_peer('friend', new_name => 'enemy')`},
	{number: 8402, because: "fingerprint null", statement: `select parley.trust_peer(null, 'new')`},
	{number: 8402, because: "fingerprint too short", statement: `select parley.trust_peer('a1', 'new')`},
	{number: 8402, because: "fingerprint with other letters", statement: `select parley.alter_peer('friend', add_fingerprint => repeat('xy', 32))`},
	{number: 8402, because: "address without port", statement: `select parley.trust_peer(repeat('00', 32), 'new', address => 'tcp://example.com')`},
	{number: 8402, because: "address of all of a machine's", statement: `select parley.alter_peer('friend', address => 'tcp://0.0.0.0:4022')`},
	{number: 8402, because: "address of a page", statement: `select parley.alter_peer('friend', address => 'https://example.com:443')`},
	{number: 8493, because: "peer unchanged", statement: `select parley.alter_peer('friend')`},
	{number: 9609, because: "peer without name", statement: `select parley.trust_peer(repeat('00', 32), '')`},
	{number: 9609, because: "new name is too long", statement: `select parley.alter_peer('friend', new_name => repeat('x', 129))`},
	{number: 15151, because: "no such peer to alter", statement: `select parley.alter_peer('Friend', role => 'public')`},
	{number: 15151, because: "no such peer to revoke", statement: `select parley.revoke_peer('none')`},
	{number: 15151, because: "no such peer to drop", statement: `select parley.drop_peer('none')`},
	{number: 15151, because: "no such key", statement: `select parley.alter_peer('friend', drop_fingerprint => repeat('00', 32))`},
	{number: 15151, because: "role of a peer", statement: `select parley.trust_peer(repeat('00', 32), 'new', role => 'nobody at all')`},
	{number: 15151, because: "trusting is for administrators", ordinary: true, statement: `select parley.trust_peer(repeat('00', 32), 'new')`},
	{number: 15151, because: "altering is for administrators", ordinary: true, statement: `select parley.alter_peer('friend', role => 'public')`},
	{number: 15151, because: "revoking is for administrators", ordinary: true, statement: `select parley.revoke_peer('friend')`},
	{number: 15151, because: "dropping is for administrators", ordinary: true, statement: `select parley.drop_peer('friend')`},
	{number: 2714, because: "broker instance is another peer's", statement: `
		select parley.alter_peer('friend', broker_instances => array['00000000-0000-0000-0000-000000000001'::uuid]);
		select parley.pair_peer(repeat('00', 32), '', null, null,
			'{"databases": [{"instance": "00000000-0000-0000-0000-000000000001", "services": []}]}')`},
	{number: 8402, because: "invitation for a second", statement: `select parley.invite_peer(valid_seconds => 1)`},
	{number: 8402, because: "window for a week", statement: `select parley.open_pairing(valid_seconds => 604800)`},
	{number: 9609, because: "invitation for no name", statement: `select parley.invite_peer(name => '')`},
	{number: 15151, because: "invitation for no role", statement: `select parley.invite_peer(role => 'nobody at all')`},
	{number: 15151, because: "nobody to confirm", statement: `select parley.confirm_pairing(gen_random_uuid())`},
	{number: 15151, because: "inviting is for administrators", ordinary: true, statement: `select parley.invite_peer()`},
	{number: 15151, because: "opening is for administrators", ordinary: true, statement: `select parley.open_pairing()`},
	{number: 15151, because: "closing is for administrators", ordinary: true, statement: `select parley.close_pairing(gen_random_uuid())`},
	{number: 15151, because: "requests are for administrators", ordinary: true, statement: `select parley.pairing_requests(gen_random_uuid())`},
	{number: 15151, because: "confirming is for administrators", ordinary: true, statement: `select parley.confirm_pairing(gen_random_uuid())`},
	{number: 15151, because: "sending away is for administrators", ordinary: true, statement: `select parley.refuse_pairing(gen_random_uuid())`},
	{number: 15151, because: "pairing is for administrators", ordinary: true, statement: `select parley.pair_peer('', '', null, null, '{}')`},
	{number: 28034, because: "paired peer is revoked", statement: `select parley.pair_peer(repeat('b2', 32), '', null, null, '{}')`},
	{number: 28034, because: "peer is revoked", statement: `select parley.alter_peer('enemy', role => 'public')`},
	{number: 28055, because: "key has expired", statement: `select parley.trust_peer(repeat('00', 32), 'new', not_after => now() - interval '1 s')`},
	{
		number: 28055, because: "key ends before it begins",
		statement: `select parley.trust_peer(repeat('00', 32), 'new', not_before => now() + interval '2 h', not_after => now() + interval '1 h')`,
	},
}

// roleOf gives the role that what comes over a link acts as, "" for nobody.
func (s session) roleOf(identity string) string {
	s.Helper()
	return value[string](s, `
		select coalesce((select r.rolname from pg_roles as r where r.oid = parley._p_role_of_identity($1)), '')`, identity)
}

func (s session) requireRole(identity, want string) {
	s.Helper()
	if got := s.roleOf(identity); got != want {
		s.Errorf("%s acts as role %q, want %q", identity, got, want)
	}
}

// requireRefusal requires that what a peer sends is not taken, with this number; 0: that it is taken.
func (s session) requireRefusal(identity, speaker string, number int) {
	s.Helper()
	got := value[int](s, `
		select coalesce((parley._p_refusal_of_identity($1, $2::text::uuid)).error_number, 0)`, identity, speaker)
	if got != number {
		s.Errorf("%s is refused with %d, want %d", identity, got, number)
	}
}

const someBroker = "00000000-0000-0000-0000-000000000001"

// The keeper of another database can make any role the owner of a service there. So the owner of a service there is believed for what they
// could be themselves.
func TestAnOwnerNextDoorIsWhomItsKeepersMayActAs(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	shop, tenant := b.role("shop of two"), b.role("tenant")
	identity := func(keeper, owner string) string {
		return value[string](b.session, "select format('role:%s %s ', d.oid, $1::regrole::oid) from pg_database as d where d.datname = current_database()",
			quote(keeper)) + owner
	}
	superuser := value[string](b.session, "select current_user::text")
	b.requireRole(identity(superuser, shop), shop)
	for _, nobody := range []string{identity(tenant, shop), identity(tenant, superuser), identity(superuser, ""), "role:" + shop, "role:0 0 " + shop, "role:x y " + shop} {
		b.requireRole(nobody, "")
	}
	b.exec("alter database " + quote(value[string](b.session, "select current_database()")) + " owner to " + quote(tenant))
	b.afterwards("reassign owned by " + quote(tenant) + " to current_user")
	b.requireRole(identity(superuser, shop), "")
	b.requireRole(identity(tenant, superuser), "")
	b.requireRole(identity(tenant, tenant), tenant)
	b.exec("grant " + quote(shop) + " to " + quote(tenant))
	b.requireRole(identity(tenant, shop), shop)
}

func TestPeerActsAsItsRole(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	shop := b.role("shop")
	b.exec("select parley.trust_peer($1, 'one', role => $2)", strings.ToUpper("sha256:"+oneKey), shop)
	b.exec("select parley.trust_peer($1, 'two')", anotherKey)
	b.exec("select parley.trust_peer($1, 'three', role => 'public')", thirdKey)
	b.requireRole("peer:"+oneKey, shop)
	for _, nobody := range []string{
		"peer:" + anotherKey, "peer:" + thirdKey, "peer:" + strings.Repeat("d4", 32), "peer:", "peer", "", "role:", "role:nobody at all", "role:" + shop, shop,
	} {
		b.requireRole(nobody, "")
		b.requireRefusal(nobody, someBroker, 0)
	}
	b.exec("select parley.alter_peer('one', role => 'public')")
	b.requireRole("peer:"+oneKey, "")
}

func TestPeerWhoseRoleWasDroppedActsAsNobody(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("select parley.trust_peer($1, 'one')", oneKey)
	b.exec("update parley._p_peer set role = 4000000000::oid::regrole")
	b.requireRole("peer:"+oneKey, "")
}

// While a peer changes its key, both are good.
func TestPeerMayHaveSeveralKeys(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	shop := b.role("shop")
	b.exec("select parley.trust_peer($1, 'one', role => $2)", oneKey, shop)
	b.exec("select parley.alter_peer('one', add_fingerprint => $1, not_after => now() + interval '1 year')", anotherKey)
	b.requireRole("peer:"+oneKey, shop)
	b.requireRole("peer:"+anotherKey, shop)
	b.exec("select parley.alter_peer('one', drop_fingerprint => $1)", oneKey)
	b.requireRole("peer:"+oneKey, "")
	b.requireRole("peer:"+anotherKey, shop)
	b.exec("select parley.alter_peer('one', drop_fingerprint => $1)", anotherKey)
	equal(b.session, "WITHOUT KEY", "select state from parley.peers")
}

func TestRevokedPeerIsRefusedAndStaysInTheList(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	shop := b.role("shop")
	b.exec("select parley.trust_peer($1, 'one', role => $2)", oneKey, shop)
	b.requireRefusal("peer:"+oneKey, someBroker, 0)
	b.exec("select parley.revoke_peer('one')")
	b.requireRole("peer:"+oneKey, "")
	b.requireRefusal("peer:"+oneKey, someBroker, 28034)
	equal(b.session, "REVOKED REVOKED", "select p.state || ' ' || c.state from parley.peers as p join parley.peer_certificates as c using (peer_id)")

	// Revoking again does not change when it was done; a new key of the old one's is not trusted; only dropping it allows to begin anew.
	before := value[string](b.session, "select revoked_at::text from parley.peers")
	b.exec("select parley.revoke_peer('one')")
	equal(b.session, before, "select revoked_at::text from parley.peers")
	equal(b.session, false, "select parley._p_succeed_peer_key($1, $2, null, null, null)", oneKey, anotherKey)
	b.exec("select parley.drop_peer('one')")
	b.exec("select parley.trust_peer($1, 'one', role => $2)", oneKey, shop)
	b.requireRole("peer:"+oneKey, shop)
}

// What an expired key has sent waits for a new one, instead of being judged as another peer's.
func TestKeyIsTrustedWhileItIsValid(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	shop := b.role("shop")
	b.exec("select parley.trust_peer($1, 'one', role => $2, not_before => now() + interval '1 h', not_after => now() + interval '2 h')", oneKey, shop)
	b.requireRole("peer:"+oneKey, "")
	b.requireRefusal("peer:"+oneKey, someBroker, 28022)
	equal(b.session, "NOT YET VALID", "select state from parley.peer_certificates")
	b.exec("update parley._p_peer_certificate set not_before = now() - interval '1 h'")
	b.requireRole("peer:"+oneKey, shop)
	b.requireRefusal("peer:"+oneKey, someBroker, 0)
	b.exec("update parley._p_peer_certificate set not_after = now() - interval '1 s'")
	b.requireRole("peer:"+oneKey, "")
	b.requireRefusal("peer:"+oneKey, someBroker, 28023)
	equal(b.session, "EXPIRED EXPIRED", "select p.state || ' ' || c.state from parley.peers as p join parley.peer_certificates as c using (peer_id)")
}

// A peer cannot speak for the broker of another peer, which would shut that one out as a copy of itself.
func TestPeerSpeaksOnlyForItsOwnBrokerUnlessItForwards(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	const otherBroker = "00000000-0000-0000-0000-000000000002"
	b.exec("select parley.trust_peer($1, 'one', broker_instances => array[$2::text::uuid])", oneKey, someBroker)
	b.exec("select parley.trust_peer($1, 'two')", anotherKey)
	b.requireRefusal("peer:"+oneKey, someBroker, 0)
	b.requireRefusal("peer:"+oneKey, otherBroker, 0)
	b.requireRefusal("peer:"+anotherKey, otherBroker, 0)
	b.requireRefusal("peer:"+anotherKey, someBroker, 28047)
	b.requireRefusal("peer:"+thirdKey, someBroker, 28047)
	b.exec("select parley.alter_peer('two', is_forwarder => true)")
	b.requireRefusal("peer:"+anotherKey, someBroker, 0)
	// A broker that has moved to another peer is the former one's no longer.
	b.exec("select parley.alter_peer('two', is_forwarder => false)")
	b.exec("select parley.revoke_peer('one')")
	b.requireRefusal("peer:"+anotherKey, someBroker, 0)
	b.requireRefusal("peer:"+oneKey, someBroker, 28034)
}

func TestKeySignedByATrustedOneSucceedsIt(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	shop := b.role("shop")
	b.exec("select parley.trust_peer($1, 'one', role => $2)", oneKey, shop)
	succeed := "select parley._p_succeed_peer_key($1, $2, '\\x01', now() - interval '1 day', now() + interval '1 year')"
	equal(b.session, true, succeed, oneKey, anotherKey)
	b.requireRole("peer:"+oneKey, shop)
	b.requireRole("peer:"+anotherKey, shop)
	equal(b.session, oneKey, "select succeeds from parley.peer_certificates where fingerprint = $1", anotherKey)

	equal(b.session, true, succeed, oneKey, anotherKey) // again, by another daemon
	equal(b.session, false, succeed, thirdKey, strings.Repeat("d4", 32))
	b.exec("select parley.trust_peer($1, 'three')", thirdKey)
	equal(b.session, false, succeed, oneKey, thirdKey)
	b.exec("update parley._p_peer_certificate set not_after = now() - interval '1 s' where fingerprint = $1", oneKey)
	equal(b.session, false, succeed, oneKey, strings.Repeat("d4", 32))
	equal(b.session, true, succeed, anotherKey, strings.Repeat("d4", 32))
}

func TestPeersAreListed(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	shop := b.role("shop")
	b.exec(`select parley.trust_peer($1, 'one', role => $2, address => 'TCP://Example.com:4022', broker_instances => array[$3::text::uuid],
		certificate => '\x3000', not_after => '2200-01-01')`, oneKey, shop, someBroker)
	equal(b.session, shop+" TRUSTED {"+oneKey+"} 2200 tcp://example.com:4022 {"+someBroker+"} f", `
		select format('%s %s %s %s %s %s %s', role_name, state, fingerprints, extract(year from not_after), address, broker_instances, is_forwarder)
		from parley.peers`)
	b.exec("select parley.alter_peer('one', new_name => 'shop', address => '', broker_instances => '{}')")
	equal(b.session, "shop t {}", "select format('%s %s %s', name, address is null, broker_instances) from parley.peers")
	equal(b.session, "shop", "select peer_name from parley.peer_certificates")
	b.exec("select parley.drop_peer('shop')")
	equal(b.session, 0, "select count(*)::int from parley.peers")
	equal(b.session, 0, "select count(*)::int from parley.peer_certificates")
}

// Daemons close and open links when the list changes.
func TestEveryChangeOfPeersIsNotified(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	conn, err := b.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	listener := session{T: t, db: conn}
	listener.exec("listen parley")
	defer listener.exec("unlisten *")
	for _, change := range []string{
		"select parley.trust_peer('" + oneKey + "', 'one')",
		"select parley.alter_peer('one', role => 'public')",
		"select parley._p_succeed_peer_key('" + oneKey + "', '" + anotherKey + "', null, null, null)",
		"select parley.revoke_peer('one')",
		"select parley.drop_peer('one')",
	} {
		b.exec(change)
		notice, err := conn.Conn().WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if notice.Payload != "peers" {
			t.Errorf("%s notifies %q", change, notice.Payload)
		}
	}
}

// Daemons report their certificates, and the database warns of their end. What cures it is no statement.
func TestEndOfACertificateIsFound(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	report := "select parley._p_report_certificate($1, $2, now() - interval '1 day', now() + $3::text::interval)"
	b.exec(report, "host", oneKey, "31 days")
	b.requireNoFinding(configuration, "certificate-expiring")
	b.exec(report, "host", oneKey, "29 days")
	if f := b.requireFinding(configuration, "certificate-expiring"); f.ObjectName != "host" || f.Level != "WARNING" || f.Cure != "parley certificate rotate" {
		t.Errorf("%+v", f)
	}
	b.exec(report, "host", oneKey, "0")
	if f := b.requireFinding(configuration, "certificate-expired"); f.Level != "ERROR" || !f.HasSince {
		t.Errorf("%+v", f)
	}
	equal(b.session, "host EXPIRED", "select daemon || ' ' || state from parley.broker_certificates")
	b.exec(report, "host", anotherKey, "1 year") // it has rotated
	b.requireNoFinding(configuration, "certificate-expired")
	equal(b.session, anotherKey, "select fingerprint from parley.broker_certificates")
	// A daemon that is gone is not warned of for ever.
	b.exec(report, "gone", oneKey, "0")
	b.exec("update parley._p_broker_certificate set reported_at = now() - interval '2 days' where daemon = 'gone'")
	b.requireNoFinding(configuration, "certificate-expired")
	b.exec(report, "host", anotherKey, "1 year")
	equal(b.session, 1, "select count(*)::int from parley._p_broker_certificate")
}
