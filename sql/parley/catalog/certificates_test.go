package catalog_test

import (
	"crypto/sha256"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestCertificateIsShownAsItWasInstalled(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	far, own := b.Role("far"), b.Role("own")
	data := b.Install("far side", far, false)
	b.Install("own side", own, true)

	sum := sha256.Sum256(data)
	sqltest.Equal(b.Session, true, `
		select thumbprint = $1 and certificate = $2 and subject = 'far side' and issuer_name = subject and pvt_key_encryption_type = 'NA'
			and is_active_for_begin_dialog and state = 'VALID' and expiry_date - start_date = '2 days'::interval
			and principal_id = (select oid from pg_roles where rolname = $3)
		from parley.certificates where name = 'far side'`, sum[:], data, far)
	sqltest.Equal(b.Session, "MK", "select pvt_key_encryption_type from parley.certificates where name = 'own side'")
	sqltest.Equal(b.Session, "0000000000000000", "select master_key from parley.certificates where name = 'own side'")

	b.Refuses(2714, "select parley.create_certificate('another name', $1)", data)
	b.Refuses(15297, "select parley.create_certificate('bare key', $1, private_key => '\\x0102')", sqltest.Certificate("bare", -sqltest.Day, sqltest.Day))
	b.Exec("select parley.alter_certificate('far side', active_for_begin_dialog => false)")
	sqltest.Equal(b.Session, "NOT ACTIVE", "select state from parley.certificates where name = 'far side'")
	b.Exec("select parley.alter_certificate('far side', revoked => true)")
	sqltest.Equal(b.Session, "REVOKED", "select state from parley.certificates where name = 'far side'")
	b.Exec("select parley.drop_certificate('far side')")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley.certificates")
	b.Exec("select parley.drop_certificate('own side')")
}

func TestCertificateIsForThoseWhoMayInstallIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	far, clerk := b.Role("far"), b.Role("clerk")
	b.Exec("select parley.grant('CREATE CERTIFICATE', 'database', null, $1)", clerk)
	s := b.As(clerk)
	s.Refuses(15151, "select parley.create_certificate('c', $1, $2)", sqltest.Certificate("c", -sqltest.Day, sqltest.Day), far)
	s.Exec("select parley.create_certificate('c', $1)", sqltest.Certificate("c", -sqltest.Day, sqltest.Day))
	sqltest.Equal(b.Session, clerk, "select pg_get_userbyid(principal_id)::text from parley.certificates")
	b.As(b.Role("other")).Refuses(229, "select parley.drop_certificate('c')")
	b.Exec("select parley.alter_authorization('certificate', 'c', $1)", far)
	s.Refuses(229, "select parley.alter_certificate('c', revoked => true)")
	b.Exec("select parley.drop_certificate('c')")
	b.Exec("select parley.revoke('CREATE CERTIFICATE', 'database', null, $1)", clerk)
}

func TestBindingNeedsAMemberOfTheRoleItNames(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	far, clerk := b.Role("far"), b.Role("clerk")
	b.Exec("select parley.grant('CREATE REMOTE SERVICE BINDING', 'database', null, $1)", clerk)
	s := b.As(clerk)
	s.Refuses(229, "select parley.create_remote_service_binding('b', '//far', $1)", far)
	b.Exec("grant " + sqltest.Quote(far) + " to " + sqltest.Quote(clerk))
	s.Exec("select parley.create_remote_service_binding('b', '//far', $1)", far)
	sqltest.Equal(b.Session, true, `
		select remote_service_name = '//far' and service_contract_id = 0 and not is_anonymous_on
			and pg_get_userbyid(remote_principal_id) = $1 and pg_get_userbyid(principal_id) = $2
		from parley.remote_service_bindings`, far, clerk)
	s.Exec("select parley.alter_remote_service_binding('b', anonymous => true)")
	sqltest.Equal(b.Session, true, "select is_anonymous_on from parley.remote_service_bindings")
	b.Exec("select parley.grant('CONTROL', 'remote service binding', 'b', $1)", far)
	b.As(far).Exec("select parley.drop_remote_service_binding('b')")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley._p_permission where class = 'remote service binding'")
	b.Exec("select parley.revoke('CREATE REMOTE SERVICE BINDING', 'database', null, $1)", clerk)
}

// Spec 7.4: active, valid now, the latest to expire.
func TestTheCertificateThatExpiresLastIsPicked(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	role := b.Role("own")
	pick := func(isOwn bool) string {
		t.Helper()
		return sqltest.Value[string](b.Session, `
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
	b.InstallValid("expired", role, true, -2*sqltest.Day, -sqltest.Day)
	expect(true, "28025")
	b.Exec("select parley.drop_certificate('expired')")
	b.InstallValid("future", role, true, sqltest.Day, 2*sqltest.Day)
	expect(true, "28024")
	b.InstallValid("theirs", role, false, -sqltest.Day, 9*sqltest.Day)
	expect(false, "theirs")
	expect(true, "28024")
	b.Exec("select parley.drop_certificate('future')")
	expect(true, "9733")
	b.InstallValid("short", role, true, -sqltest.Day, sqltest.Day)
	expect(true, "short")
	b.InstallValid("long", role, true, -sqltest.Day, 2*sqltest.Day)
	expect(true, "long")
	b.Exec("select parley.alter_certificate('long', active_for_begin_dialog => false)")
	expect(true, "short")
	b.Exec("select parley.alter_certificate('short', revoked => true)")
	b.Exec("select parley.drop_certificate('theirs')")
	expect(true, "9767")
	b.Exec("select parley.drop_certificate(name) from parley.certificates")
}
