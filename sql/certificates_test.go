package sql_test

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"testing"
	"time"
)

const day = 24 * time.Hour

// certificate makes the bytes of a certificate with keys that open nothing: what the database judges is the rest.
func certificate(subject string, from, until time.Duration) []byte {
	data := []byte("PARLEYC1")
	data = binary.BigEndian.AppendUint64(data, uint64(time.Now().Add(from).Unix()))
	data = binary.BigEndian.AppendUint64(data, uint64(time.Now().Add(until).Unix()))
	data = append(data, strings.Repeat("s", 32)...)
	data = append(data, strings.Repeat("x", 32)...)
	return append(data, subject...)
}

// sealedKey has the form of a private key that is sealed under a master key.
func sealedKey() []byte { return append([]byte{1}, make([]byte, 100)...) }

// install gives a role a certificate that is valid now, ours when it has a private key.
func (s session) install(name, role string, isOwn bool) []byte {
	s.Helper()
	return s.installValid(name, role, isOwn, -day, day)
}

func (s session) installValid(name, role string, isOwn bool, from, until time.Duration) []byte {
	s.Helper()
	data := certificate(name, from, until)
	var key []byte
	if isOwn {
		key = sealedKey()
	}
	s.exec("select parley.create_certificate($1, $2, $3, $4)", name, data, role, key)
	return data
}

// Definitions of security that cannot be right.
var securityRefusals = []refusal{
	{number: 229, because: "may not create certificates", ordinary: true, statement: `select parley.create_certificate('New', '\x00')`},
	{number: 229, because: "may not create bindings", ordinary: true, statement: `select parley.create_remote_service_binding('New', '//far', 'nobody')`},
	{number: 2714, because: "binding exists", statement: `
		select parley.create_remote_service_binding('Twice', '//far/1', current_user), parley.create_remote_service_binding('Twice', '//far/2', current_user)`},
	{number: 8412, because: "nothing bound", statement: `select parley.create_remote_service_binding('New', '', current_user)`},
	{number: 8493, because: "binding unchanged", statement: `
		select parley.create_remote_service_binding('New', '//far', current_user); select parley.alter_remote_service_binding('New')`},
	{number: 9609, because: "binding without a name", statement: `select parley.create_remote_service_binding('', '//far', current_user)`},
	{number: 9611, because: "nobody to bind to", statement: `select parley.create_remote_service_binding('New', '//far', 'nobody at all')`},
	{number: 9619, because: "service is bound", statement: `
		select parley.create_remote_service_binding('One', '//far', current_user), parley.create_remote_service_binding('Two', '//far', current_user)`},
	{number: 15151, because: "no such binding", statement: `select parley.drop_remote_service_binding('New')`},
	{number: 15151, because: "no such certificate", statement: `select parley.alter_certificate('New', active_for_begin_dialog => false)`},
	{number: 15151, because: "no such certificate to drop", statement: `select parley.drop_certificate('New')`},
	{number: 15297, because: "no certificate", statement: `select parley.create_certificate('New', 'PARLEYC1')`},
	{number: 15297, because: "never valid", statement: `select parley.create_certificate('New', convert_to('PARLEYC1' || repeat('x', 100), 'UTF8'))`},
	{number: 28083, because: "everybody", statement: `select parley.create_remote_service_binding('New', '//far', 'public')`},
	{number: 28083, because: "role of the server", statement: `select parley.create_remote_service_binding('New', '//far', 'pg_monitor')`},
}

func TestCertificateIsShownAsItWasInstalled(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	far, own := b.role("far"), b.role("own")
	data := b.install("far side", far, false)
	b.install("own side", own, true)

	sum := sha256.Sum256(data)
	equal(b.session, true, `
		select thumbprint = $1 and certificate = $2 and subject = 'far side' and issuer_name = subject and pvt_key_encryption_type = 'NA'
			and is_active_for_begin_dialog and state = 'VALID' and expiry_date - start_date = '2 days'::interval
			and principal_id = (select oid from pg_roles where rolname = $3)
		from parley.certificates where name = 'far side'`, sum[:], data, far)
	equal(b.session, "MK", "select pvt_key_encryption_type from parley.certificates where name = 'own side'")
	equal(b.session, "0000000000000000", "select master_key from parley.certificates where name = 'own side'")

	b.refuses(2714, "select parley.create_certificate('another name', $1)", data)
	b.refuses(15297, "select parley.create_certificate('bare key', $1, private_key => '\\x0102')", certificate("bare", -day, day))
	b.exec("select parley.alter_certificate('far side', active_for_begin_dialog => false)")
	equal(b.session, "NOT ACTIVE", "select state from parley.certificates where name = 'far side'")
	b.exec("select parley.alter_certificate('far side', revoked => true)")
	equal(b.session, "REVOKED", "select state from parley.certificates where name = 'far side'")
	b.exec("select parley.drop_certificate('far side')")
	equal(b.session, 1, "select count(*)::int from parley.certificates")
	b.exec("select parley.drop_certificate('own side')")
}

func TestCertificateIsForThoseWhoMayInstallIt(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	far, clerk := b.role("far"), b.role("clerk")
	b.exec("select parley.grant('CREATE CERTIFICATE', 'database', null, $1)", clerk)
	s := b.as(clerk)
	s.refuses(15151, "select parley.create_certificate('c', $1, $2)", certificate("c", -day, day), far)
	s.exec("select parley.create_certificate('c', $1)", certificate("c", -day, day))
	equal(b.session, clerk, "select pg_get_userbyid(principal_id)::text from parley.certificates")
	b.as(b.role("other")).refuses(229, "select parley.drop_certificate('c')")
	b.exec("select parley.alter_authorization('certificate', 'c', $1)", far)
	s.refuses(229, "select parley.alter_certificate('c', revoked => true)")
	b.exec("select parley.drop_certificate('c')")
	b.exec("select parley.revoke('CREATE CERTIFICATE', 'database', null, $1)", clerk)
}

func TestBindingNeedsAMemberOfTheRoleItNames(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	far, clerk := b.role("far"), b.role("clerk")
	b.exec("select parley.grant('CREATE REMOTE SERVICE BINDING', 'database', null, $1)", clerk)
	s := b.as(clerk)
	s.refuses(229, "select parley.create_remote_service_binding('b', '//far', $1)", far)
	b.exec("grant " + quote(far) + " to " + quote(clerk))
	s.exec("select parley.create_remote_service_binding('b', '//far', $1)", far)
	equal(b.session, true, `
		select remote_service_name = '//far' and service_contract_id = 0 and not is_anonymous_on
			and pg_get_userbyid(remote_principal_id) = $1 and pg_get_userbyid(principal_id) = $2
		from parley.remote_service_bindings`, far, clerk)
	s.exec("select parley.alter_remote_service_binding('b', anonymous => true)")
	equal(b.session, true, "select is_anonymous_on from parley.remote_service_bindings")
	b.exec("select parley.grant('CONTROL', 'remote service binding', 'b', $1)", far)
	b.as(far).exec("select parley.drop_remote_service_binding('b')")
	equal(b.session, 0, "select count(*)::int from parley._p_permission where class = 'remote service binding'")
	b.exec("select parley.revoke('CREATE REMOTE SERVICE BINDING', 'database', null, $1)", clerk)
}

// Spec 7.4: active, valid now, the latest to expire.
func TestTheCertificateThatExpiresLastIsPicked(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	role := b.role("own")
	pick := func(isOwn bool) string {
		t.Helper()
		return value[string](b.session, `
			select coalesce(split_part(f.status, ':', 1), c.name)
			from parley._p_find_dialog_certificate((select oid from pg_roles where rolname = $1), $2) as f
			left join parley.certificates as c on c.thumbprint = f.fingerprint`, role, isOwn)
	}
	expect := func(isOwn bool, want string) {
		t.Helper()
		if got := pick(isOwn); got != want {
			t.Errorf("picked %q, want %q", got, want)
		}
	}
	expect(true, "9731")
	b.installValid("expired", role, true, -2*day, -day)
	expect(true, "28025")
	b.exec("select parley.drop_certificate('expired')")
	b.installValid("future", role, true, day, 2*day)
	expect(true, "28024")
	b.installValid("theirs", role, false, -day, 9*day)
	expect(false, "theirs")
	expect(true, "28024")
	b.exec("select parley.drop_certificate('future')")
	expect(true, "9733")
	b.installValid("short", role, true, -day, day)
	expect(true, "short")
	b.installValid("long", role, true, -day, 2*day)
	expect(true, "long")
	b.exec("select parley.alter_certificate('long', active_for_begin_dialog => false)")
	expect(true, "short")
	b.exec("select parley.alter_certificate('short', revoked => true)")
	b.exec("select parley.drop_certificate('theirs')")
	expect(true, "9767")
	b.exec("select parley.drop_certificate(name) from parley.certificates")
}
