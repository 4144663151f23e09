package sql_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestMailConfigurationIsCheckedSettingBySetting(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.exec(`select parley_store.set_retry_policy('patient', 'STEPS', '30 minutes', '{4, 12}', '{1 minute, 20 minutes}', notice_after => '5 hours')`)
	for _, c := range []struct{ kind, name, settings, says string }{
		{"relay", "x", `{}`, "send connector"},
		{"send connector", "x", `{"spaces": []}`, "address_spaces"},
		{"send connector", "x", `{}`, "address_spaces"},
		{"send connector", "x", `{"address_spaces": []}`, "address_spaces"},
		{"send connector", "x", `{"address_spaces": [{"pattern": "a b"}]}`, "*.domain"},
		{"send connector", "x", `{"address_spaces": [{"pattern": "*", "cost": 101}]}`, "100"},
		{"send connector", "x", `{"address_spaces": [{"pattern": "*"}], "routing": "SMART_HOST"}`, "smart_hosts"},
		{"send connector", "x", `{"address_spaces": [{"pattern": "*"}], "certificate_file": "/c"}`, "certificate_key_file"},
		{"send connector", "x", `{"address_spaces": [{"pattern": "*"}], "authentication": "EXTERNAL"}`, "certificate_file"},
		{"send connector", "x", `{"address_spaces": [{"pattern": "*"}], "authentication": "EXTERNAL", "tls": "OFF", "certificate_file": "/c", "certificate_key_file": "/k"}`, "another tls"},
		{"send connector", "x", `{"address_spaces": [{"pattern": "*"}], "authentication": "PLAIN"}`, "password"},
		{"send connector", "x", `{"address_spaces": "*"}`, "list of objects"},
		{"receive connector", "x", `{"max_recipients": 0}`, "from 1 to 100000"},
		{"receive connector", "x", `{"max_recipients": 1.5}`, "whole number"},
		{"receive connector", "x", `{"max_message_size": "ten"}`, "10 MB"},
		{"receive connector", "x", `{"inactivity_timeout": "soon"}`, "5 minutes"},
		{"receive connector", "x", `{"inactivity_timeout": "10 minutes"}`, "longer"},
		{"receive connector", "x", `{"tls": "SOMETIMES"}`, "OPPORTUNISTIC"},
		{"receive connector", "x", `{"tls": "MUTUAL"}`, "tls_domains"},
		{"receive connector", "x", `{"tls": "OFF", "authentication": ["PLAIN"]}`, "clear text"},
		{"receive connector", "x", `{"bindings": ["everywhere"]}`, "0.0.0.0:25"},
		{"receive connector", "x", `{"remote_ranges": ["10.0.0.9-10.0.0.1"]}`, "10.0.0.0/8"},
		{"receive connector", "x", `{"permission_groups": ["Nobody"]}`, "permission group"},
		{"receive connector", "x", `{"usage": "CLIENT"}`, "certificate_file"},
		{"receive connector", "x", `{"certificate_file": "/c.pem"}`, "certificate_key_file"},
		{"receive connector", "x", `{"dmarc": "ENFORCE", "dkim": "OFF"}`, "Set spf and dkim"},
		{"receive connector", "x", `{"milters": [{"address": "127.0.0.1:25"}]}`, "inet:host:port"},
		{"receive connector", "x", `{"milters": [{"address": "unix:/m", "default_action": "PASS"}]}`, "QUARANTINE"},
		{"pickup folder", "x", `{}`, "path"},
		{"pickup folder", "x", `{"path": "mail"}`, "full path"},
		{"http listener", "x", `{}`, "clear text"},
		{"receive connector", "x\ny", `{}`, "1 to 128"},
		{"accepted domain", "a b", `{}`, "*.domain"},
		{"mailbox", "carol", `{"store": "local"}`, "mail address"},
		{"mailbox", "carol@example.org", `{}`, "store"},
		{"mailbox", "carol@example.org", `{"store": "elsewhere"}`, "mailbox store"},
		{"mailbox", "carol@example.org", `{"forwarding": "ONLY"}`, "forward_to"},
		{"mailbox", "carol@example.org", `{"store": "local", "aliases": ["A@example.org"]}`, "ann@example.org"},
		{"alias", "ann@example.org", `{"target": "bob@example.org"}`, "ann@example.org"},
		{"alias", "x@example.org", `{"target": "X@example.org"}`, "own target"},
		{"distribution group", "all@example.org", `{"report_to": "MANAGER"}`, "manager"},
		{"service binding", "x", `{"pattern": "orders@example.org"}`, "service or table"},
		{"service binding", "x", `{"pattern": "orders@example.org", "service": "//a"}`, "from_service"},
		{"service binding", "x", `{"pattern": "orders@example.org", "table": "public.none"}`, "insert"},
		{"credential", "x", `{}`, "password"},
		{"credential", "x", `{"verifier": "plain"}`, "verifier"},
		{"organization", "x", `{"expiry": "1 hour"}`, "delay_notice"},
		{"organization", "x", `{"expiry_high": "30 minutes"}`, "delay_notice_high"},
		{"organization", "x", `{"delay_notice": "30 minutes"}`, "transient failures"},
		{"organization", "x", `{"delay_notice_low": "10 minutes"}`, "transient failures"},
		{"send connector", "x", `{"address_spaces": [{"pattern": "*"}], "retry_policy": "patient"}`, "delay_notice of the organization"},
		{"signing key", "x", `{"domain": "example.org", "selector": "s"}`, "private_key"},
		{"permission group", "x", `{"rights": ["FLY"]}`, "SUBMIT"},
	} {
		change := "create_object"
		if c.kind == "organization" {
			change = "alter_object"
		}
		number := 3
		if refusal := b.refusesMail(number, "select parley_mail."+change+"($1, $2, $3)", c.kind, c.name, c.settings); !strings.Contains(
			refusal.Message+refusal.Detail+refusal.Hint, c.says) {
			t.Errorf("%s %s %s: %q %q %q does not say %q", c.kind, c.name, c.settings, refusal.Message, refusal.Detail, refusal.Hint, c.says)
		}
	}
	b.refusesMail(4, "select parley_mail.create_object('accepted domain', 'EXAMPLE.org')")
	b.refusesMail(4, "select parley_mail.alter_object('accepted domain', 'example.com', '{}')")
	b.refusesMail(4, "select parley_mail.drop_object('accepted domain', 'example.com')")
	b.refusesMail(4, "select parley_mail.drop_object('mailbox store', 'local')")
	b.refusesMail(2, `select parley_mail.create_object('credential', 'x', '{"role": "nobody at all"}')`)
}

// The smallest range that has a peer wins, so two ranges of one binding are nested or do not meet.
func TestRemoteRangesOfReceiveConnectorsAreNestedOrApart(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	create := `select parley_mail.create_object('receive connector', $1, $2)`
	b.exec(create, "internet", `{"usage": "internet"}`)
	b.exec(create, "inside", `{"remote_ranges": ["10.0.0.0/8"]}`)
	b.exec(create, "rack", `{"remote_ranges": "10.1.2.16-10.1.2.40"}`)
	b.refusesMail(3, create, "across", `{"remote_ranges": ["10.1.2.30-10.1.2.60"]}`)
	b.refusesMail(3, create, "same", `{"remote_ranges": ["10.0.0.0-10.255.255.255"]}`)
	b.exec(create, "elsewhere", `{"remote_ranges": ["10.1.2.30-10.1.2.60"], "bindings": ["192.0.2.1:25"]}`)
	b.exec(create, "off", `{"remote_ranges": ["10.1.2.30-10.1.2.60"], "enabled": false}`)
	b.refusesMail(3, `select parley_mail.alter_object('receive connector', 'off', '{"enabled": true}')`)
	b.exec(`select parley_mail.alter_object('receive connector', 'rack', '{"remote_ranges": ["10.1.2.16-10.1.2.20"]}')`)
	b.exec(`select parley_mail.alter_object('receive connector', 'off', '{"enabled": true}')`)
	equal(b.session, "600 Anonymous", `
		select (effective_settings ->> 'message_rate') || ' ' || (effective_settings #>> '{permission_groups,0}')
		from parley_mail.objects where kind = 'receive connector' and name = 'internet'`)
}

// The service may be created later: the binding is taken, with a warning, by apply, its dry run and the statements for one object.
func TestABindingToAServiceThatIsNotReadyIsAWarning(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.exec("select parley.create_queue('q'); select parley.create_service('//ready', 'q', array['DEFAULT']); select parley.create_service('//other', 'q')")
	config := b.pool.Config().ConnConfig
	var warnings []string
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { warnings = append(warnings, n.Severity+" "+n.Message) }
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	s := session{t, conn}
	for service, says := range map[string]string{
		"//ready": "", "//missing": `service "//missing" does not exist`, "//other": `service "//other" does not accept the contract "DEFAULT"`,
	} {
		settings := fmt.Sprintf(`{"pattern": "a@example.org", "service": %q, "from_service": "parley_mail/Status"}`, service)
		for _, statement := range []string{
			`select coalesce(max(warning), '') from parley_mail.apply(jsonb_build_object('service binding', jsonb_build_object('b', $1::jsonb)), dry_run => true)`,
			`select coalesce(max(warning), '') from parley_mail.apply(jsonb_build_object('service binding', jsonb_build_object('b', $1::jsonb)))`,
			`select '' from parley_mail.alter_object('service binding', 'b', $1::jsonb || '{"max_size": 5000}')`,
			`select '' from parley_mail.drop_object('service binding', 'b') where $1::jsonb is not null`,
			`select '' from parley_mail.create_object('service binding', 'b', $1::jsonb)`,
		} {
			warnings = nil
			got := value[string](s, statement, settings)
			isDrop := strings.Contains(statement, "drop_object")
			if strings.Contains(statement, "apply") && (!strings.Contains(got, says) || says == "" && got != "") {
				t.Errorf("%s: the column says %q", service, got)
			}
			if all := strings.Join(warnings, ", "); (says == "" || isDrop) && all != "" ||
				!isDrop && says != "" && (len(warnings) != 1 || !strings.HasPrefix(all, `WARNING service binding "b": `+says)) {
				t.Errorf("%s, %s: the warnings are %q", service, statement, warnings)
			}
		}
		found := values[string](b.session, "select object_name || ': ' || cure from parley.diagnose_configuration() where code = 'mail-service-missing'")
		if (len(found) == 1) != (says != "") {
			t.Errorf("%s: parley diagnose finds %q", service, found)
		}
		b.exec("select parley_mail.drop_object('service binding', 'b')")
	}
}

func TestMailConfigurationIsAppliedAsAWhole(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	version := func() int64 {
		return value[int64](b.session, "select version from parley_mail._p_configuration_version")
	}
	before := version()
	changes := `select coalesce(string_agg(concat_ws(' ', action, kind, name), ', ' order by kind, name), '') from parley_mail.apply($1, $2, $3)`
	file := `{"accepted domain": {"Example.com": {"type": "internal_relay"}, "example.org": {}},
		"mailbox": {"carol@example.com": {"store": "new", "max_receive_size": "1 MB"}, "bob@example.org": {"aliases": ["a@example.org"]},
			"ann@example.org": {"aliases": null}},
		"mailbox store": {"new": {"address": "127.0.0.1:24"}}}`
	want := "CREATE accepted domain example.com, ALTER mailbox ann@example.org, ALTER mailbox bob@example.org, " +
		"CREATE mailbox carol@example.com, CREATE mailbox store new"
	equal(b.session, want, changes, file, true, false)
	if version() != before {
		t.Error("a dry run raised the version")
	}
	equal(b.session, want, changes, file, false, false)
	equal(b.session, "", changes, file, false, false)
	equal(b.session, "bob@example.org", "select entry from parley_mail._p_directory_entry where address = 'a@example.org'")
	equal(b.session, int64(1048576), "select max_receive_size from parley_mail._p_directory_entry where address = 'carol@example.com'")
	// One mistake, and nothing of it is done.
	b.refusesMail(3, "select parley_mail.apply($1)", `{"accepted domain": {"example.net": {}}, "mailbox": {"x@example.net": {"store": "none"}}}`)
	equal(b.session, "", "select coalesce(string_agg(domain, ' '), '') from parley_mail._p_accepted_domain where domain = 'example.net'")
	b.refusesMail(4, "select parley_mail.apply($1, prune => true)", `{"mailbox store": {"new": {}}}`)
	equal(b.session, "DROP mailbox carol@example.com", changes,
		`{"mailbox": {"ann@example.org": {}, "bob@example.org": {}}}`, false, true)
	for _, file := range []string{`[]`, `{"mailbox": []}`, `{"mailboxes": {}}`, `{"mailbox": {"d@example.org": []}}`} {
		b.refusesMail(3, "select parley_mail.apply($1)", file)
	}
	// What was written out brings the same back.
	written := value[string](b.session, "select parley_mail.export_configuration()::text")
	equal(b.session, "", changes, written, false, true)
	if !json.Valid([]byte(written)) || strings.Contains(written, "private") {
		t.Errorf("exported: %s", written)
	}
}

func TestSecretsOfMailAreForTheDaemonAlone(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.exec(`select parley_mail.create_object('credential', 'shop', '{"password": "pencil"}')`)
	b.exec(`select parley_mail.create_object('send connector', 'relay', '{"address_spaces": [{"pattern": "example.net"}],
		"authentication": "PLAIN", "username": "us", "password": "crayon"}')`)
	b.exec(`select parley_mail.create_object('signing key', 'k', '{"domain": "example.org", "selector": "k", "algorithm": "ED25519-SHA256",
		"private_key": "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAchalk\n-----END PRIVATE KEY-----\n"}')`)
	viewer, daemon, administrator := b.role("viewer"), b.role("daemon"), b.role("administrator")
	b.exec("select parley_mail.grant_right('VIEW', $1), parley_mail.grant_right('SERVE', $2), parley_mail.grant_right('ADMINISTER', $3)", viewer, daemon, administrator)
	b.as(administrator).refusesMail(1, "select parley_mail._p_configuration()")
	for _, s := range []session{b.session, b.as(viewer), b.as(administrator)} {
		seen := value[string](s, `
			select string_agg(o::text, ' ') || parley_mail.export_configuration()::text || coalesce((select string_agg(a::text, ' ') from parley_mail.audit as a), '')
			from parley_mail.objects as o`)
		for _, secret := range []string{"pencil", "crayon", "chalk", "SCRAM-SHA-256$"} {
			if strings.Contains(seen, secret) {
				t.Errorf("%s is shown in %s", secret, seen)
			}
		}
	}
	b.as(viewer).refusesMail(1, "select parley_mail._p_configuration()")
	read := value[string](b.as(daemon), "select parley_mail._p_configuration()::text")
	if !strings.Contains(read, "crayon") || !strings.Contains(read, "SCRAM-SHA-256$4096:") || strings.Contains(read, "pencil") {
		t.Errorf("the daemon reads %s", read)
	}
	b.as(daemon).refusesMail(1, "select parley_mail.drop_object('credential', 'shop')")
	if count := value[int](b.as(daemon), "select count(*) from parley_mail.objects"); count > 0 {
		t.Error("SERVE includes VIEW")
	}
}

// An administrator who does not know the password of a smart host cannot have it sent to another host, nor in another way.
func TestKeptPasswordIsNotSentElsewhere(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.exec(`select parley_mail.create_object('send connector', 'relay', '{"address_spaces": [{"pattern": "example.net"}], "routing": "SMART_HOST",
		"smart_hosts": [{"host": "relay.example"}], "authentication": "SCRAM-SHA-256", "username": "us", "password": "crayon", "tls": "CERTIFICATE"}')`)
	b.exec(`select parley_mail.create_object('send connector', 'direct', '{"address_spaces": [{"pattern": "example.com"}],
		"authentication": "PLAIN", "username": "us", "password": "crayon"}')`)
	role := b.role("administrator")
	b.exec("select parley_mail.grant_right('ADMINISTER', $1)", role)
	s := b.as(role)
	alter := "select parley_mail.alter_object('send connector', $1, $2)"
	for connector, changes := range map[string][]string{
		"relay": {
			`{"smart_hosts": [{"host": "mallory.example"}]}`, `{"port": 2525}`, `{"routing": "DNS"}`, `{"tls": "OFF"}`, `{"tls": null}`, `{"implicit_tls": true}`,
			`{"tls": "DOMAIN", "tls_domain": "mallory.example"}`, `{"authentication": "PLAIN"}`, `{"authentication": "NONE", "port": 26}`, `{"dns_servers": ["192.0.2.1"]}`,
		},
		"direct": {`{"address_spaces": [{"pattern": "mallory.example"}]}`, `{"mta_sts": false}`},
	} {
		for _, change := range changes {
			if refusal := s.refusesMail(3, alter, connector, change); !strings.Contains(refusal.Hint, "password again") {
				t.Errorf("%s is refused by %s", change, refusal.Message)
			}
			s.refusesMail(3, "select parley_mail.apply($1)", `{"send connector": {"`+connector+`": `+change+`}}`)
		}
	}
	s.exec(alter, "relay", `{"max_connections": 3, "address_spaces": [{"pattern": "example.org"}], "port": 25}`)
	s.exec(alter, "relay", `{"port": 587, "password": "pencil"}`)
	s.exec(alter, "relay", `{"port": 25, "password": null, "authentication": "NONE"}`)
	equal(b.session, "direct", "select string_agg(name, ' ') from parley_mail.objects where kind = 'send connector' and has_secrets")
}

// Who may grant a right takes back what he granted, as in PostgreSQL; who administers it takes it whoever granted it.
func TestGrantsOfOthersAreNotRevoked(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	ann, bob, carol, chief := b.role("ann"), b.role("bob"), b.role("carol"), b.role("chief")
	b.exec("select parley_mail.grant_right('SEND', $1, true), parley_mail.grant_right('SEND', $2, true), parley_mail.grant_right('SEND', $3)", ann, bob, carol)
	b.exec("select parley_mail.grant_right('ADMINISTER', $1)", chief)
	a := b.as(ann)
	const revoke = "select parley_mail.revoke_right('SEND', $1)"
	granted := "select string_agg(concat_ws(' ', granted_by = $1, is_grantable), ', ' order by granted_by = $1) from parley_mail.rights where role = $2 and name = 'SEND'"
	if refusal := a.refusesMail(1, revoke, carol); refusal.Detail == "" {
		t.Error("the refusal does not say who granted it")
	}
	a.refusesMail(1, revoke, bob)
	// Nor does a role keep by itself what another takes back.
	b.as(bob).refusesMail(1, "select parley_mail.grant_right('SEND', $1, true)", bob)
	// To grant it too does not make another's grant his own.
	a.exec("select parley_mail.grant_right('SEND', $1)", carol)
	equal(b.session, "f f, t f", granted, ann, carol)
	equal(a, true, revoke, carol)
	equal(b.session, "f f", granted, ann, carol)
	a.refusesMail(1, revoke, carol)
	equal(a, false, revoke, b.role("dora"))
	a.exec("select parley_mail.grant_right('SEND', $1)", carol)
	equal(b.as(chief), true, revoke, carol)
	equal(b.session, 0, "select count(*) from parley_mail.rights where role = $1", carol)
}

// PostgreSQL makes verifiers of the same form, and takes ours for one.
func TestScramVerifierIsPostgreSQLs(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	role := b.role("scram")
	verifier := value[string](b.session, "select parley_mail._p_scram_verifier('pencil')")
	b.exec("alter role " + quote(role) + " password '" + verifier + "'")
	equal(b.session, verifier, "select rolpassword from pg_authid where rolname = $1", role)
	requireScram(t, verifier, "pencil")
}

func TestRightsOfMailAreGrantedAndRefuse(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	ann, bob := b.role("ann"), b.role("bob")
	as := b.as(ann)
	send := "select parley_mail.send('ann', array['x@example.com'], text => 'x')"
	as.refusesMail(1, send)
	as.refusesMail(1, "select parley_mail.create_object('accepted domain', 'example.net')")
	as.refusesMail(1, "select parley_mail.apply('{}', dry_run => true)")
	as.refusesMail(1, "select parley_mail.grant_right('SEND', $1)", ann)
	as.refusesMail(1, "select parley_mail.set_quota($1)", ann)
	as.refusesMail(1, "select parley_mail.export_configuration()")
	equal(as, 0, "select count(*) from parley_mail.objects")
	equal(as, 0, "select count(*) from parley_mail.audit")
	b.exec("select parley_mail.grant_right('SEND', $1, with_grant_option => true)", ann)
	as.exec(send)
	as.exec("select parley_mail.grant_right('SEND', $1)", bob)
	as.refusesMail(1, "select parley_mail.grant_right('VIEW', $1)", bob)
	b.as(bob).exec(send)
	b.as(bob).refusesMail(1, "select parley_mail.grant_right('SEND', 'public')")
	equal(as, true, "select parley_mail.revoke_right('SEND', $1)", bob)
	b.as(bob).refusesMail(1, send)
	b.refusesMail(2, "select parley_mail.grant_right('FLY', $1)", bob)
	b.refusesMail(2, "select parley_mail.grant_right('SEND', 'nobody at all')")
	b.exec("select parley_mail.grant_right('ADMINISTER', $1)", bob)
	b.as(bob).exec("select parley_mail.create_object('accepted domain', 'example.net')")
	b.as(bob).refusesMail(1, "select parley_mail.grant_right('SERVE', $1)", bob)
	b.as(bob).refusesMail(1, "select parley_mail._p_configuration()")
	b.as(bob).exec("select parley_mail.grant_right('SEND', 'public')")
	b.as(b.role("carol")).exec(send)
	for _, table := range []string{"_p_object", "_p_message", "_p_right", "_p_audit"} {
		if _, err := b.as(bob).db.Exec(t.Context(), "select from parley_mail."+table); err == nil {
			t.Errorf("%s can be read", table)
		}
	}
}
