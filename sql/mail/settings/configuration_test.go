package settings_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestMailConfigurationIsCheckedSettingBySetting(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`select parley_store.set_retry_policy('patient', 'STEPS', '30 minutes', '{4, 12}', '{1 minute, 20 minutes}', notice_after => '5 hours')`)
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
		if refusal := b.RefusesMail(number, "select parley_mail."+change+"($1, $2, $3)", c.kind, c.name, c.settings); !strings.Contains(
			refusal.Message+refusal.Detail+refusal.Hint, c.says) {
			t.Errorf("%s %s %s: %q %q %q does not say %q", c.kind, c.name, c.settings, refusal.Message, refusal.Detail, refusal.Hint, c.says)
		}
	}
	b.RefusesMail(4, "select parley_mail.create_object('accepted domain', 'EXAMPLE.org')")
	b.RefusesMail(4, "select parley_mail.alter_object('accepted domain', 'example.com', '{}')")
	b.RefusesMail(4, "select parley_mail.drop_object('accepted domain', 'example.com')")
	b.RefusesMail(4, "select parley_mail.drop_object('mailbox store', 'local')")
	b.RefusesMail(2, `select parley_mail.create_object('credential', 'x', '{"role": "nobody at all"}')`)
}

// The smallest range that has a peer wins, so two ranges of one binding are nested or do not meet.
func TestRemoteRangesOfReceiveConnectorsAreNestedOrApart(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	create := `select parley_mail.create_object('receive connector', $1, $2)`
	b.Exec(create, "internet", `{"usage": "internet"}`)
	b.Exec(create, "inside", `{"remote_ranges": ["10.0.0.0/8"]}`)
	b.Exec(create, "rack", `{"remote_ranges": "10.1.2.16-10.1.2.40"}`)
	b.RefusesMail(3, create, "across", `{"remote_ranges": ["10.1.2.30-10.1.2.60"]}`)
	b.RefusesMail(3, create, "same", `{"remote_ranges": ["10.0.0.0-10.255.255.255"]}`)
	b.Exec(create, "elsewhere", `{"remote_ranges": ["10.1.2.30-10.1.2.60"], "bindings": ["192.0.2.1:25"]}`)
	b.Exec(create, "off", `{"remote_ranges": ["10.1.2.30-10.1.2.60"], "enabled": false}`)
	b.RefusesMail(3, `select parley_mail.alter_object('receive connector', 'off', '{"enabled": true}')`)
	b.Exec(`select parley_mail.alter_object('receive connector', 'rack', '{"remote_ranges": ["10.1.2.16-10.1.2.20"]}')`)
	b.Exec(`select parley_mail.alter_object('receive connector', 'off', '{"enabled": true}')`)
	sqltest.Equal(b.Session, "600 Anonymous", `
		select (effective_settings ->> 'message_rate') || ' ' || (effective_settings #>> '{permission_groups,0}')
		from parley_mail.objects where kind = 'receive connector' and name = 'internet'`)
}

// The service may be created later: the binding is taken, with a warning, by apply, its dry run and the statements for one object.
func TestABindingToAServiceThatIsNotReadyIsAWarning(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec("select parley.create_queue('q'); select parley.create_service('//ready', 'q', array['DEFAULT']); select parley.create_service('//other', 'q')")
	config := b.Pool.Config().ConnConfig
	var warnings []string
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { warnings = append(warnings, n.Severity+" "+n.Message) }
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	s := sqltest.Session{T: t, DB: conn}
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
			got := sqltest.Value[string](s, statement, settings)
			isDrop := strings.Contains(statement, "drop_object")
			if strings.Contains(statement, "apply") && (!strings.Contains(got, says) || says == "" && got != "") {
				t.Errorf("%s: the column says %q", service, got)
			}
			if all := strings.Join(warnings, ", "); (says == "" || isDrop) && all != "" ||
				!isDrop && says != "" && (len(warnings) != 1 || !strings.HasPrefix(all, `WARNING service binding "b": `+says)) {
				t.Errorf("%s, %s: the warnings are %q", service, statement, warnings)
			}
		}
		found := sqltest.Values[string](b.Session, "select object_name || ': ' || cure from parley.diagnose_configuration() where code = 'mail-service-missing'")
		if (len(found) == 1) != (says != "") {
			t.Errorf("%s: parley diagnose finds %q", service, found)
		}
		b.Exec("select parley_mail.drop_object('service binding', 'b')")
	}
}

func TestMailConfigurationIsAppliedAsAWhole(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	version := func() int64 {
		return sqltest.Value[int64](b.Session, "select version from parley_mail._p_configuration_version")
	}
	before := version()
	changes := `select coalesce(string_agg(concat_ws(' ', action, kind, name), ', ' order by kind, name), '') from parley_mail.apply($1, $2, $3)`
	file := `{"accepted domain": {"Example.com": {"type": "internal_relay"}, "example.org": {}},
		"mailbox": {"carol@example.com": {"store": "new", "max_receive_size": "1 MB"}, "bob@example.org": {"aliases": ["a@example.org"]},
			"ann@example.org": {"aliases": null}},
		"mailbox store": {"new": {"address": "127.0.0.1:24"}}}`
	want := "CREATE accepted domain example.com, ALTER mailbox ann@example.org, ALTER mailbox bob@example.org, " +
		"CREATE mailbox carol@example.com, CREATE mailbox store new"
	sqltest.Equal(b.Session, want, changes, file, true, false)
	if version() != before {
		t.Error("a dry run raised the version")
	}
	sqltest.Equal(b.Session, want, changes, file, false, false)
	sqltest.Equal(b.Session, "", changes, file, false, false)
	sqltest.Equal(b.Session, "bob@example.org", "select entry from parley_mail._p_directory_entry where address = 'a@example.org'")
	sqltest.Equal(b.Session, int64(1048576), "select max_receive_size from parley_mail._p_directory_entry where address = 'carol@example.com'")
	// One mistake, and nothing of it is done.
	b.RefusesMail(3, "select parley_mail.apply($1)", `{"accepted domain": {"example.net": {}}, "mailbox": {"x@example.net": {"store": "none"}}}`)
	sqltest.Equal(b.Session, "", "select coalesce(string_agg(domain, ' '), '') from parley_mail._p_accepted_domain where domain = 'example.net'")
	b.RefusesMail(4, "select parley_mail.apply($1, prune => true)", `{"mailbox store": {"new": {}}}`)
	sqltest.Equal(b.Session, "DROP mailbox carol@example.com", changes,
		`{"mailbox": {"ann@example.org": {}, "bob@example.org": {}}}`, false, true)
	for _, file := range []string{`[]`, `{"mailbox": []}`, `{"mailboxes": {}}`, `{"mailbox": {"d@example.org": []}}`} {
		b.RefusesMail(3, "select parley_mail.apply($1)", file)
	}
	// A configuration that was written out brings the same back.
	written := sqltest.Value[string](b.Session, "select parley_mail.export_configuration()::text")
	sqltest.Equal(b.Session, "", changes, written, false, true)
	if !json.Valid([]byte(written)) || strings.Contains(written, "private") {
		t.Errorf("exported: %s", written)
	}
}

func TestSecretsOfMailAreForTheDaemonAlone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`select parley_mail.create_object('credential', 'shop', '{"password": "pencil"}')`)
	b.Exec(`select parley_mail.create_object('send connector', 'relay', '{"address_spaces": [{"pattern": "example.net"}],
		"authentication": "PLAIN", "username": "us", "password": "crayon"}')`)
	b.Exec(`select parley_mail.create_object('signing key', 'k', '{"domain": "example.org", "selector": "k", "algorithm": "ED25519-SHA256",
		"private_key": "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAchalk\n-----END PRIVATE KEY-----\n"}')`)
	viewer, daemon, administrator := b.Role("viewer"), b.Role("daemon"), b.Role("administrator")
	b.Exec("select parley_mail.grant_right('VIEW', $1), parley_mail.grant_right('SERVE', $2), parley_mail.grant_right('ADMINISTER', $3)", viewer, daemon, administrator)
	b.As(administrator).RefusesMail(1, "select parley_mail._p_configuration()")
	for _, s := range []sqltest.Session{b.Session, b.As(viewer), b.As(administrator)} {
		seen := sqltest.Value[string](s, `
			select string_agg(o::text, ' ') || parley_mail.export_configuration()::text || coalesce((select string_agg(a::text, ' ') from parley_mail.audit as a), '')
			from parley_mail.objects as o`)
		for _, secret := range []string{"pencil", "crayon", "chalk", "SCRAM-SHA-256$"} {
			if strings.Contains(seen, secret) {
				t.Errorf("%s is shown in %s", secret, seen)
			}
		}
	}
	b.As(viewer).RefusesMail(1, "select parley_mail._p_configuration()")
	read := sqltest.Value[string](b.As(daemon), "select parley_mail._p_configuration()::text")
	if !strings.Contains(read, "crayon") || !strings.Contains(read, "SCRAM-SHA-256$4096:") || strings.Contains(read, "pencil") {
		t.Errorf("the daemon reads %s", read)
	}
	b.As(daemon).RefusesMail(1, "select parley_mail.drop_object('credential', 'shop')")
	if count := sqltest.Value[int](b.As(daemon), "select count(*) from parley_mail.objects"); count > 0 {
		t.Error("SERVE includes VIEW")
	}
}

// An administrator who does not know the password of a smart host cannot have it sent to another host, nor in another way.
func TestKeptPasswordIsNotSentElsewhere(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`select parley_mail.create_object('send connector', 'relay', '{"address_spaces": [{"pattern": "example.net"}], "routing": "SMART_HOST",
		"smart_hosts": [{"host": "relay.example"}], "authentication": "SCRAM-SHA-256", "username": "us", "password": "crayon", "tls": "CERTIFICATE"}')`)
	b.Exec(`select parley_mail.create_object('send connector', 'direct', '{"address_spaces": [{"pattern": "example.com"}],
		"authentication": "PLAIN", "username": "us", "password": "crayon"}')`)
	role := b.Role("administrator")
	b.Exec("select parley_mail.grant_right('ADMINISTER', $1)", role)
	s := b.As(role)
	alter := "select parley_mail.alter_object('send connector', $1, $2)"
	for connector, changes := range map[string][]string{
		"relay": {
			`{"smart_hosts": [{"host": "mallory.example"}]}`, `{"port": 2525}`, `{"routing": "DNS"}`, `{"tls": "OFF"}`, `{"tls": null}`, `{"implicit_tls": true}`,
			`{"tls": "DOMAIN", "tls_domain": "mallory.example"}`, `{"authentication": "PLAIN"}`, `{"authentication": "NONE", "port": 26}`, `{"dns_servers": ["192.0.2.1"]}`,
		},
		"direct": {`{"address_spaces": [{"pattern": "mallory.example"}]}`, `{"mta_sts": false}`},
	} {
		for _, change := range changes {
			if refusal := s.RefusesMail(3, alter, connector, change); !strings.Contains(refusal.Hint, "password again") {
				t.Errorf("%s is refused by %s", change, refusal.Message)
			}
			s.RefusesMail(3, "select parley_mail.apply($1)", `{"send connector": {"`+connector+`": `+change+`}}`)
		}
	}
	s.Exec(alter, "relay", `{"max_connections": 3, "address_spaces": [{"pattern": "example.org"}], "port": 25}`)
	s.Exec(alter, "relay", `{"port": 587, "password": "pencil"}`)
	s.Exec(alter, "relay", `{"port": 25, "password": null, "authentication": "NONE"}`)
	sqltest.Equal(b.Session, "direct", "select string_agg(name, ' ') from parley_mail.objects where kind = 'send connector' and has_secrets")
}

// A role that may grant a right takes back its own grants, as in PostgreSQL; one that administers it takes it whoever granted it.
func TestGrantsOfOthersAreNotRevoked(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	ann, bob, carol, chief := b.Role("ann"), b.Role("bob"), b.Role("carol"), b.Role("chief")
	b.Exec("select parley_mail.grant_right('SEND', $1, true), parley_mail.grant_right('SEND', $2, true), parley_mail.grant_right('SEND', $3)", ann, bob, carol)
	b.Exec("select parley_mail.grant_right('ADMINISTER', $1)", chief)
	a := b.As(ann)
	const revoke = "select parley_mail.revoke_right('SEND', $1)"
	granted := "select string_agg(concat_ws(' ', granted_by = $1, is_grantable), ', ' order by granted_by = $1) from parley_mail.rights where role = $2 and name = 'SEND'"
	if refusal := a.RefusesMail(1, revoke, carol); refusal.Detail == "" {
		t.Error("the refusal does not say who granted it")
	}
	a.RefusesMail(1, revoke, bob)
	// Nor does a role keep by itself what another takes back.
	b.As(bob).RefusesMail(1, "select parley_mail.grant_right('SEND', $1, true)", bob)
	// To grant it too does not make another's grant his own.
	a.Exec("select parley_mail.grant_right('SEND', $1)", carol)
	sqltest.Equal(b.Session, "f f, t f", granted, ann, carol)
	sqltest.Equal(a, true, revoke, carol)
	sqltest.Equal(b.Session, "f f", granted, ann, carol)
	a.RefusesMail(1, revoke, carol)
	sqltest.Equal(a, false, revoke, b.Role("dora"))
	a.Exec("select parley_mail.grant_right('SEND', $1)", carol)
	sqltest.Equal(b.As(chief), true, revoke, carol)
	sqltest.Equal(b.Session, 0, "select count(*) from parley_mail.rights where role = $1", carol)
}

// PostgreSQL makes verifiers of the same form, and takes ours for one.
func TestScramVerifierIsPostgreSQLs(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	role := b.Role("scram")
	verifier := sqltest.Value[string](b.Session, "select parley_mail._p_scram_verifier('pencil')")
	b.Exec("alter role " + sqltest.Quote(role) + " password '" + verifier + "'")
	sqltest.Equal(b.Session, verifier, "select rolpassword from pg_authid where rolname = $1", role)
	requireScram(t, verifier, "pencil")
}
