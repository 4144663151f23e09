package trust_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// The table of spec 7.3, with delay and a status where the table has "fails".
var securityDecisions = []struct {
	hasCertificate, isEncrypted, isBound, isAnonymous bool
	want                                              string
}{
	{true, true, false, false, "9727"},
	{true, true, true, true, "anonymous"},
	{true, true, true, false, "full"},
	{true, false, false, false, "none"},
	{true, false, true, true, "anonymous"},
	{true, false, true, false, "full"},
	{false, true, false, false, "9727"},
	{false, true, true, true, "anonymous"},
	{false, true, true, false, "9731"},
	{false, false, false, false, "none"},
	{false, false, true, true, "anonymous"},
	{false, false, true, false, "9731"},
}

// Each row is tried with the bare function, and with a dialog.
func TestSecurityOfADialogFollowsFromCertificateEncryptionAndBinding(t *testing.T) {
	t.Parallel()
	for _, c := range securityDecisions {
		name := fmt.Sprintf("certificate %t, encryption %t, bound %t, anonymous %t", c.hasCertificate, c.isEncrypted, c.isBound, c.isAnonymous)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			sqltest.Equal(b.Session, c.want, "select parley._p_security_mode($1, $2, $3, $4)", c.hasCertificate, c.isEncrypted, c.isBound, c.isAnonymous)

			owner, far := b.Role("owner"), b.Role("far")
			b.Exec("select parley.alter_authorization('service', '//test/Asker', $1)", owner)
			b.Install("far side", far, false)
			if c.hasCertificate {
				b.Install("own side", owner, true)
			}
			if c.isBound {
				b.Exec("select parley.create_remote_service_binding('b', '//far/Service', $1, $2)", far, c.isAnonymous)
			}
			b.CreateRoute("far", "tcp://far:4022", "//far/Service")
			b.Exec("select parley.send(parley.begin_dialog('//test/Asker', '//far/Service', encryption => $1), 'DEFAULT', 'x')", c.isEncrypted)
			const plan = `
				select %s from parley._p_endpoint as e
				cross join lateral parley._p_plan_dialogs(array[e.endpoint_id], false) as p where e.far_service = '//far/Service'`
			sqltest.Equal(b.Session, c.want, fmt.Sprintf(plan, "coalesce(p.mode, split_part(p.status, ':', 1))"))
			sqltest.Equal(b.Session, false, fmt.Sprintf(plan, "p.is_recorded"))
			if c.want == "full" || c.want == "anonymous" {
				sqltest.Equal(b.Session, far, fmt.Sprintf(plan, "pg_get_userbyid(p.far_principal)::text"))
			}
			b.Exec("select parley.end_conversation(conversation_handle) from parley.conversation_endpoints")
			b.Exec("select parley.drop_remote_service_binding(name) from parley.remote_service_bindings")
			b.Exec("select parley.drop_certificate(name) from parley.certificates")
			b.Exec("select parley.alter_authorization('service', '//test/Asker', current_user)")
		})
	}
}

// secured begins a dialog with a service elsewhere and records that it is anonymous; it returns the endpoint's id.
func secured(b *sqltest.Broker, key string) int64 {
	b.Helper()
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//far/Service', encryption => false, allow_unknown_target => true)::text")
	id := sqltest.Value[int64](b.Session, "select endpoint_id from parley._p_endpoint where conversation_handle = $1::uuid", handle)
	b.Exec("select parley._p_secure_dialog($1, 'anonymous', null, $2)", id, []byte(key))
	return id
}

func TestDialogStaysAsItWasSecured(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	id := secured(b, "key 1")
	sqltest.Equal(b.Session, true, "select is_encrypted from parley._p_endpoint where endpoint_id = $1", id)
	sqltest.Equal(b.Session, "key 1", "select convert_from(key_id, 'UTF8') from parley._p_secure_dialog($1, 'anonymous', null, 'key 2')", id)
	sqltest.Equal(b.Session, "anonymous key 1 true", `
		select p.mode || ' ' || convert_from(p.key_id, 'UTF8') || ' ' || p.is_recorded from parley._p_plan_dialogs(array[$1::bigint], false) as p`, id)
}

// A conversation that has left in clear goes on in clear: the target would not know what to believe. One that has waited for its way leaves
// sealed.
func TestBindingCountsForDialogsThatFindTheirWayAfterIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	far := b.Role("far")
	const begin = "select parley.send(parley.begin_dialog('//test/Asker', '//far/Service', encryption => $1, allow_unknown_target => true), 'DEFAULT', 'x')"
	b.CreateRoute("far", "tcp://far:4022", "//far/Service")
	b.Exec(begin, false)
	b.Exec(begin, true)
	b.Exec("select parley.drop_route('far')")
	b.Exec(begin, false)
	b.Exec("select parley.create_remote_service_binding('b', '//far/Service', $1, true)", far)
	b.CreateRoute("far", "tcp://far:4022", "//far/Service")
	b.Exec(begin, false)
	got := sqltest.Values[string](b.Session, `
		select p.mode from parley._p_endpoint as e cross join lateral parley._p_plan_dialogs(array[e.endpoint_id], false) as p order by e.endpoint_id`)
	if fmt.Sprint(got) != "[none anonymous anonymous anonymous]" {
		t.Errorf("the dialogs are %v", got)
	}
	b.Exec("select parley.drop_remote_service_binding('b')")
}

func TestMessageCountsOnlyFromTheOtherSideOfItsDialog(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	far, other := b.Role("far"), b.Role("other")
	bind := func(conversation string, isInitiator bool, mode, principal, key string) bool {
		t.Helper()
		var keyID []byte
		if key != "" {
			keyID = []byte(key)
		}
		return sqltest.Value[bool](b.Session, `
			select parley._p_bind_dialog($1, $2, $3, (select oid from pg_roles where rolname = $4), $5)`, conversation, isInitiator, mode, principal, keyID)
	}
	expect := func(want, got bool, what string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %t", what, got)
		}
	}
	const nowhere = "11111111-1111-1111-1111-111111111111"
	expect(true, bind(nowhere, false, "full", far, ""), "the first message settles it")
	expect(true, bind(nowhere, false, "full", far, ""), "again")
	expect(true, bind(nowhere, false, "anonymous", "", "k"), "nobody was let in, so the next one may come")
	expect(false, bind(nowhere, true, "full", far, ""), "nothing was sent from here")

	// The target's side of a dialog that was let in.
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer')::text")
	conversation := sqltest.Value[string](b.Session, "select conversation_id::text from parley.conversation_endpoints where conversation_handle = $1", handle)
	expect(true, bind(conversation, false, "full", far, ""), "the first message")
	b.Send(handle, "DEFAULT", "x")
	expect(true, bind(conversation, false, "full", far, ""), "the next message")
	expect(false, bind(conversation, false, "full", other, ""), "another signer")
	expect(false, bind(conversation, false, "anonymous", "", "k"), "nobody in particular")

	// The initiator's side.
	id := secured(b, "key 1")
	conversation = sqltest.Value[string](b.Session, "select conversation_id::text from parley._p_endpoint where endpoint_id = $1", id)
	expect(true, bind(conversation, true, "anonymous", "", "key 1"), "the reply")
	expect(false, bind(conversation, true, "anonymous", "", "key 2"), "a reply under another key")
	expect(false, bind(conversation, true, "full", far, ""), "a reply that is signed")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley._p_find_downgraded(array[$1::uuid, $2::uuid], array[true, true])", conversation, nowhere)

	// A dialog begun in clear cannot be taken over by a sealing database.
	unsecured, _ := b.Conversation()
	conversation = sqltest.Value[string](b.Session, "select conversation_id::text from parley.conversation_endpoints where conversation_handle = $1", unsecured)
	expect(false, bind(conversation, false, "anonymous", "", "k"), "sealed, where all was unsecured")
	expect(false, bind(conversation, false, "anonymous", "", "k"), "again")
}

func TestCertificatesOfAMessageAreJudgedWithTheirService(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	far, own := b.Role("far"), b.Role("own")
	fingerprint := func(name string) []byte {
		return sqltest.Value[[]byte](b.Session, "select coalesce((select thumbprint from parley.certificates where name = $1), '\\x00')", name)
	}
	judge := func(signer, receiver, service string) string {
		t.Helper()
		var signed []byte
		if signer != "" {
			signed = fingerprint(signer)
		}
		return sqltest.Value[string](b.Session, `
			select coalesce(split_part(j.status, ':', 1), coalesce(pg_get_userbyid(j.signer_principal)::text, 'anybody'))
			from parley._p_judge_certificates($1, $2, $3) as j`, signed, fingerprint(receiver), service)
	}
	expect := func(want, signer, receiver, service string) {
		t.Helper()
		if got := judge(signer, receiver, service); got != want {
			t.Errorf("a message by %q for %q to %s: %q, want %q", signer, receiver, service, got, want)
		}
	}
	b.Install("far side", far, false)
	b.Install("own side", own, true)
	expect("28056", "far side", "own side", "//test/Answerer")
	b.Exec("select parley.grant('CONTROL', 'service', '//test/Answerer', $1)", own)
	expect(far, "far side", "own side", "//test/Answerer")
	expect("anybody", "", "own side", "//test/Answerer")
	expect(far, "far side", "own side", "//no/such service: it is refused for that")
	expect("9733", "far side", "far side", "//test/Answerer")
	expect("9733", "far side", "unknown", "//test/Answerer")
	expect("9731", "unknown", "own side", "//test/Answerer")
	// Whether a certificate is active does not matter for what arrives.
	b.Exec("select parley.alter_certificate(name, active_for_begin_dialog => false) from parley.certificates")
	expect(far, "far side", "own side", "//test/Answerer")
	sqltest.Equal(b.Session, far, "select pg_get_userbyid(parley._p_role_of_identity('certificate:' || encode($1, 'hex')))::text", fingerprint("far side"))
	b.Exec("select parley.alter_certificate('far side', revoked => true)")
	expect("9731", "far side", "own side", "//test/Answerer")
	sqltest.Equal(b.Session, true, "select parley._p_role_of_identity('certificate:' || encode($1, 'hex')) is null", fingerprint("far side"))
	b.InstallValid("signer expired", far, false, -2*sqltest.Day, -sqltest.Day)
	b.InstallValid("signer future", far, false, sqltest.Day, 2*sqltest.Day)
	for signer, want := range map[string]string{"signer expired": "28025", "signer future": "28024"} {
		expect(want, signer, "own side", "//test/Answerer")
		sqltest.Equal(b.Session, true, "select parley._p_role_of_identity('certificate:' || encode($1, 'hex')) is null", fingerprint(signer))
	}
	b.Exec("select parley.alter_certificate('own side', revoked => true)")
	expect("9733", "", "own side", "//test/Answerer")
	b.Exec("select parley.drop_certificate('own side')")
	b.InstallValid("expired", own, true, -2*sqltest.Day, -sqltest.Day)
	expect("28025", "", "expired", "//test/Answerer")
	b.InstallValid("future", own, true, sqltest.Day, 2*sqltest.Day)
	expect("28024", "", "future", "//test/Answerer")
	b.Exec("select parley.drop_certificate(name) from parley.certificates")
	b.Exec("select parley.revoke('CONTROL', 'service', '//test/Answerer', $1)", own)
}

func TestWhatEndedDialogsLeaveIsRemoved(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	id := secured(b, "alive")
	b.Exec("select parley._p_keep_session_key('alive', 'x'), parley._p_keep_session_key('dead', 'x'), parley._p_keep_session_key('dead', 'y')")
	sqltest.Equal(b.Session, "x", "select convert_from(parley._p_read_session_key('dead'), 'UTF8')")
	b.Exec("select parley._p_bind_dialog(gen_random_uuid(), false, 'anonymous', null, 'dead')")
	b.Exec("update parley._p_session_key set created_at = now() - interval '1 day'")
	sqltest.Equal(b.Session, 0, "select parley._p_forget_dialogs(10)")
	b.Exec("update parley._p_dialog_security set secured_at = now() - interval '1 hour'")
	sqltest.Equal(b.Session, 1, "select parley._p_forget_dialogs(10)")
	sqltest.Equal(b.Session, "alive", "select string_agg(convert_from(key_id, 'UTF8'), ',') from parley._p_session_key")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley._p_plan_dialogs(array[$1::bigint], false) where is_recorded", id)
}
