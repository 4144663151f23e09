package trust_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// roleOf gives the role that what comes over a link acts as, "" for nobody.
func roleOf(s sqltest.Session, identity string) string {
	s.Helper()
	return sqltest.Value[string](s, `
		select coalesce((select r.rolname from pg_roles as r where r.oid = parley._p_role_of_identity($1)), '')`, identity)
}

func requireRole(s sqltest.Session, identity, want string) {
	s.Helper()
	if got := roleOf(s, identity); got != want {
		s.Errorf("%s acts as role %q, want %q", identity, got, want)
	}
}

// requireRefusal requires that what a peer sends is not taken, with this number; 0: that it is taken.
func requireRefusal(s sqltest.Session, identity, speaker string, number int) {
	s.Helper()
	got := sqltest.Value[int](s, `
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
	b := sqltest.NewBroker(t)
	shop, tenant := b.Role("shop of two"), b.Role("tenant")
	identity := func(keeper, owner string) string {
		return sqltest.Value[string](b.Session, "select format('role:%s %s ', d.oid, $1::regrole::oid) from pg_database as d where d.datname = current_database()",
			sqltest.Quote(keeper)) + owner
	}
	superuser := sqltest.Value[string](b.Session, "select current_user::text")
	requireRole(b.Session, identity(superuser, shop), shop)
	for _, nobody := range []string{identity(tenant, shop), identity(tenant, superuser), identity(superuser, ""), "role:" + shop, "role:0 0 " + shop, "role:x y " + shop} {
		requireRole(b.Session, nobody, "")
	}
	b.Exec("alter database " + sqltest.Quote(sqltest.Value[string](b.Session, "select current_database()")) + " owner to " + sqltest.Quote(tenant))
	b.Afterwards("reassign owned by " + sqltest.Quote(tenant) + " to current_user")
	requireRole(b.Session, identity(superuser, shop), "")
	requireRole(b.Session, identity(tenant, superuser), "")
	requireRole(b.Session, identity(tenant, tenant), tenant)
	b.Exec("grant " + sqltest.Quote(shop) + " to " + sqltest.Quote(tenant))
	requireRole(b.Session, identity(tenant, shop), shop)
}

func TestPeerActsAsItsRole(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	shop := b.Role("shop")
	b.Exec("select parley.trust_peer($1, 'one', role => $2)", strings.ToUpper("sha256:"+sqltest.OneKey), shop)
	b.Exec("select parley.trust_peer($1, 'two')", sqltest.AnotherKey)
	b.Exec("select parley.trust_peer($1, 'three', role => 'public')", sqltest.ThirdKey)
	requireRole(b.Session, "peer:"+sqltest.OneKey, shop)
	for _, nobody := range []string{
		"peer:" + sqltest.AnotherKey, "peer:" + sqltest.ThirdKey, "peer:" + strings.Repeat("d4", 32), "peer:", "peer", "", "role:", "role:nobody at all", "role:" + shop, shop,
	} {
		requireRole(b.Session, nobody, "")
		requireRefusal(b.Session, nobody, someBroker, 0)
	}
	b.Exec("select parley.alter_peer('one', role => 'public')")
	requireRole(b.Session, "peer:"+sqltest.OneKey, "")
}

func TestPeerWhoseRoleWasDroppedActsAsNobody(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.trust_peer($1, 'one')", sqltest.OneKey)
	b.Exec("update parley._p_peer set role = 4000000000::oid::regrole")
	requireRole(b.Session, "peer:"+sqltest.OneKey, "")
}

// While a peer changes its key, both are good.
func TestPeerMayHaveSeveralKeys(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	shop := b.Role("shop")
	b.Exec("select parley.trust_peer($1, 'one', role => $2)", sqltest.OneKey, shop)
	b.Exec("select parley.alter_peer('one', add_fingerprint => $1, not_after => now() + interval '1 year')", sqltest.AnotherKey)
	requireRole(b.Session, "peer:"+sqltest.OneKey, shop)
	requireRole(b.Session, "peer:"+sqltest.AnotherKey, shop)
	b.Exec("select parley.alter_peer('one', drop_fingerprint => $1)", sqltest.OneKey)
	requireRole(b.Session, "peer:"+sqltest.OneKey, "")
	requireRole(b.Session, "peer:"+sqltest.AnotherKey, shop)
	b.Exec("select parley.alter_peer('one', drop_fingerprint => $1)", sqltest.AnotherKey)
	sqltest.Equal(b.Session, "WITHOUT KEY", "select state from parley.peers")
}

func TestRevokedPeerIsRefusedAndStaysInTheList(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	shop := b.Role("shop")
	b.Exec("select parley.trust_peer($1, 'one', role => $2)", sqltest.OneKey, shop)
	requireRefusal(b.Session, "peer:"+sqltest.OneKey, someBroker, 0)
	b.Exec("select parley.revoke_peer('one')")
	requireRole(b.Session, "peer:"+sqltest.OneKey, "")
	requireRefusal(b.Session, "peer:"+sqltest.OneKey, someBroker, 28034)
	sqltest.Equal(b.Session, "REVOKED REVOKED", "select p.state || ' ' || c.state from parley.peers as p join parley.peer_certificates as c using (peer_id)")

	// Revoking again does not change when it was done; a new key of the old one's is not trusted; only dropping it allows to begin anew.
	before := sqltest.Value[string](b.Session, "select revoked_at::text from parley.peers")
	b.Exec("select parley.revoke_peer('one')")
	sqltest.Equal(b.Session, before, "select revoked_at::text from parley.peers")
	sqltest.Equal(b.Session, false, "select parley._p_succeed_peer_key($1, $2, null, null, null)", sqltest.OneKey, sqltest.AnotherKey)
	b.Exec("select parley.drop_peer('one')")
	b.Exec("select parley.trust_peer($1, 'one', role => $2)", sqltest.OneKey, shop)
	requireRole(b.Session, "peer:"+sqltest.OneKey, shop)
}

// A message that an expired key has sent waits for a new one, instead of being judged as another peer's.
func TestKeyIsTrustedWhileItIsValid(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	shop := b.Role("shop")
	b.Exec("select parley.trust_peer($1, 'one', role => $2, not_before => now() + interval '1 h', not_after => now() + interval '2 h')", sqltest.OneKey, shop)
	requireRole(b.Session, "peer:"+sqltest.OneKey, "")
	requireRefusal(b.Session, "peer:"+sqltest.OneKey, someBroker, 28022)
	sqltest.Equal(b.Session, "NOT YET VALID", "select state from parley.peer_certificates")
	b.Exec("update parley._p_peer_certificate set not_before = now() - interval '1 h'")
	requireRole(b.Session, "peer:"+sqltest.OneKey, shop)
	requireRefusal(b.Session, "peer:"+sqltest.OneKey, someBroker, 0)
	b.Exec("update parley._p_peer_certificate set not_after = now() - interval '1 s'")
	requireRole(b.Session, "peer:"+sqltest.OneKey, "")
	requireRefusal(b.Session, "peer:"+sqltest.OneKey, someBroker, 28023)
	sqltest.Equal(b.Session, "EXPIRED EXPIRED", "select p.state || ' ' || c.state from parley.peers as p join parley.peer_certificates as c using (peer_id)")
}

// A peer cannot speak for the broker of another peer, which would shut that one out as a copy of itself.
func TestPeerSpeaksOnlyForItsOwnBrokerUnlessItForwards(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	const otherBroker = "00000000-0000-0000-0000-000000000002"
	b.Exec("select parley.trust_peer($1, 'one', broker_instances => array[$2::text::uuid])", sqltest.OneKey, someBroker)
	b.Exec("select parley.trust_peer($1, 'two')", sqltest.AnotherKey)
	requireRefusal(b.Session, "peer:"+sqltest.OneKey, someBroker, 0)
	requireRefusal(b.Session, "peer:"+sqltest.OneKey, otherBroker, 0)
	requireRefusal(b.Session, "peer:"+sqltest.AnotherKey, otherBroker, 0)
	requireRefusal(b.Session, "peer:"+sqltest.AnotherKey, someBroker, 28047)
	requireRefusal(b.Session, "peer:"+sqltest.ThirdKey, someBroker, 28047)
	b.Exec("select parley.alter_peer('two', is_forwarder => true)")
	requireRefusal(b.Session, "peer:"+sqltest.AnotherKey, someBroker, 0)
	// A broker that has moved to another peer is the former one's no longer.
	b.Exec("select parley.alter_peer('two', is_forwarder => false)")
	b.Exec("select parley.revoke_peer('one')")
	requireRefusal(b.Session, "peer:"+sqltest.AnotherKey, someBroker, 0)
	requireRefusal(b.Session, "peer:"+sqltest.OneKey, someBroker, 28034)
}

func TestKeySignedByATrustedOneSucceedsIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	shop := b.Role("shop")
	b.Exec("select parley.trust_peer($1, 'one', role => $2)", sqltest.OneKey, shop)
	succeed := "select parley._p_succeed_peer_key($1, $2, '\\x01', now() - interval '1 day', now() + interval '1 year')"
	sqltest.Equal(b.Session, true, succeed, sqltest.OneKey, sqltest.AnotherKey)
	requireRole(b.Session, "peer:"+sqltest.OneKey, shop)
	requireRole(b.Session, "peer:"+sqltest.AnotherKey, shop)
	sqltest.Equal(b.Session, sqltest.OneKey, "select succeeds from parley.peer_certificates where fingerprint = $1", sqltest.AnotherKey)

	sqltest.Equal(b.Session, true, succeed, sqltest.OneKey, sqltest.AnotherKey) // again, by another daemon
	sqltest.Equal(b.Session, false, succeed, sqltest.ThirdKey, strings.Repeat("d4", 32))
	b.Exec("select parley.trust_peer($1, 'three')", sqltest.ThirdKey)
	sqltest.Equal(b.Session, false, succeed, sqltest.OneKey, sqltest.ThirdKey)
	b.Exec("update parley._p_peer_certificate set not_after = now() - interval '1 s' where fingerprint = $1", sqltest.OneKey)
	sqltest.Equal(b.Session, false, succeed, sqltest.OneKey, strings.Repeat("d4", 32))
	sqltest.Equal(b.Session, true, succeed, sqltest.AnotherKey, strings.Repeat("d4", 32))
}

func TestPeersAreListed(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	shop := b.Role("shop")
	b.Exec(`select parley.trust_peer($1, 'one', role => $2, address => 'TCP://Example.com:4022', broker_instances => array[$3::text::uuid],
		certificate => '\x3000', not_after => '2200-01-01')`, sqltest.OneKey, shop, someBroker)
	sqltest.Equal(b.Session, shop+" TRUSTED {"+sqltest.OneKey+"} 2200 tcp://example.com:4022 {"+someBroker+"} f", `
		select format('%s %s %s %s %s %s %s', role_name, state, fingerprints, extract(year from not_after), address, broker_instances, is_forwarder)
		from parley.peers`)
	b.Exec("select parley.alter_peer('one', new_name => 'shop', address => '', broker_instances => '{}')")
	sqltest.Equal(b.Session, "shop t {}", "select format('%s %s %s', name, address is null, broker_instances) from parley.peers")
	sqltest.Equal(b.Session, "shop", "select peer_name from parley.peer_certificates")
	b.Exec("select parley.drop_peer('shop')")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.peers")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.peer_certificates")
}

// Daemons close and open links when the list changes.
func TestEveryChangeOfPeersIsNotified(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	conn, err := b.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	listener := sqltest.Session{T: t, DB: conn}
	listener.Exec("listen parley")
	defer listener.Exec("unlisten *")
	for _, change := range []string{
		"select parley.trust_peer('" + sqltest.OneKey + "', 'one')",
		"select parley.alter_peer('one', role => 'public')",
		"select parley._p_succeed_peer_key('" + sqltest.OneKey + "', '" + sqltest.AnotherKey + "', null, null, null)",
		"select parley.revoke_peer('one')",
		"select parley.drop_peer('one')",
	} {
		b.Exec(change)
		notice, err := conn.Conn().WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if notice.Payload != "peers" {
			t.Errorf("%s notifies %q", change, notice.Payload)
		}
	}
}

// Daemons report their certificates, and the database warns of their end. Its cure is no statement.
func TestEndOfACertificateIsFound(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	report := "select parley._p_report_certificate($1, $2, now() - interval '1 day', now() + $3::text::interval)"
	b.Exec(report, "host", sqltest.OneKey, "31 days")
	b.RequireNoFinding(sqltest.Configuration, "certificate-expiring")
	b.Exec(report, "host", sqltest.OneKey, "29 days")
	if f := b.RequireFinding(sqltest.Configuration, "certificate-expiring"); f.ObjectName != "host" || f.Level != "WARNING" || f.Cure != "parley certificate rotate" {
		t.Errorf("%+v", f)
	}
	b.Exec(report, "host", sqltest.OneKey, "0")
	if f := b.RequireFinding(sqltest.Configuration, "certificate-expired"); f.Level != "ERROR" || !f.HasSince {
		t.Errorf("%+v", f)
	}
	sqltest.Equal(b.Session, "host EXPIRED", "select daemon || ' ' || state from parley.broker_certificates")
	b.Exec(report, "host", sqltest.AnotherKey, "1 year") // it has rotated
	b.RequireNoFinding(sqltest.Configuration, "certificate-expired")
	sqltest.Equal(b.Session, sqltest.AnotherKey, "select fingerprint from parley.broker_certificates")
	// A daemon that is gone is not warned of for ever.
	b.Exec(report, "gone", sqltest.OneKey, "0")
	b.Exec("update parley._p_broker_certificate set reported_at = now() - interval '2 days' where daemon = 'gone'")
	b.RequireNoFinding(sqltest.Configuration, "certificate-expired")
	b.Exec(report, "host", sqltest.AnotherKey, "1 year")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley._p_broker_certificate")
}
