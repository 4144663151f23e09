package peers_test

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/mailtest"
)

// newAuthenticator runs a Dovecot that does nothing but verify the password of a user for Postfix, by SCRAM-SHA-256 alone, and gives its address.
func newAuthenticator(t *testing.T) string {
	t.Helper()
	mailtest.Program(t, "dovecot", "PARLEY_TEST_REQUIRE_DOVECOT")
	folder, address := openFolder(t), mailtest.FreeAddress(t)
	host, port, _ := net.SplitHostPort(address)
	write(t, filepath.Join(folder, "users"), "hub:{PLAIN}pencil:::\n")
	configuration := filepath.Join(folder, "dovecot.conf")
	write(t, configuration, fmt.Sprintf(`
base_dir = %[1]s/run
state_dir = %[1]s/state
log_path = %[1]s/log
protocols =
ssl = no
auth_mechanisms = scram-sha-256
passdb {
  driver = passwd-file
  args = %[1]s/users
}
service auth {
  inet_listener {
    address = %[2]s
    port = %[3]s
  }
}
`, folder, host, port))
	run(t, exec.CommandContext(t.Context(), "dovecot", "-F", "-c", configuration))
	return address
}

// Mail between Postfix and us goes within TLS by users who prove by SCRAM-SHA-256 who they are, or not at all. Postfix has the client of
// Cyrus SASL and the server of Dovecot. Both sides of the mail to it verify the certificate of the other.
func TestPostfixAndWeAuthenticateByScramWithinTLS(t *testing.T) {
	t.Parallel()
	peer := newPostfix(t)
	authenticator := newAuthenticator(t)
	certificateFile, keyFile := mailtest.CertificateFiles(t, "hub.example.org")
	connector := object{
		"tls": "REQUIRED", "authentication": "SCRAM-SHA-256", "username": "hub", "password": "pencil",
		"certificate_file": certificateFile, "certificate_key_file": keyFile,
	}
	h := newHub(t, map[string]string{"postfix.example": peer.address}, map[string]map[string]object{
		"send connector": {"postfix.example": connector},
		"receive connector": {"submission": {
			"tls": "REQUIRED", "certificate_file": certificateFile, "certificate_key_file": keyFile, "authentication": []string{"SCRAM-SHA-256"},
			"authentication_without_tls": false,
		}},
	})
	_, port, _ := net.SplitHostPort(h.submission)
	write(t, filepath.Join(peer.folder, "etc", "passwords"), "[127.0.0.1]:"+port+" ann:secret\n")
	peer.start(h, fmt.Sprintf(`
relayhost = [127.0.0.1]:%[1]s
smtp_tls_security_level = encrypt
smtp_sasl_auth_enable = yes
smtp_sasl_password_maps = texthash:%[2]s/etc/passwords
smtp_sasl_security_options = noanonymous
smtp_sasl_mechanism_filter = scram-sha-256
smtpd_tls_security_level = encrypt
smtpd_tls_cert_file = %[3]s
smtpd_tls_key_file = %[4]s
smtpd_tls_auth_only = yes
smtpd_tls_req_ccert = yes
smtpd_tls_CAfile = %[3]s
smtpd_tls_received_header = yes
smtpd_sasl_auth_enable = yes
smtpd_sasl_authenticated_header = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = inet:%[5]s
smtpd_relay_restrictions = permit_sasl_authenticated, reject
smtpd_recipient_restrictions = permit_sasl_authenticated, reject
`, port, peer.folder, certificateFile, keyFile, authenticator))
	h.exec(`select parley_mail.send('ann@example.org', array['loop@postfix.example'], subject => 'both ways', text => 'x')`)
	got := h.awaitMessage("ann", "Subject: both ways")
	for _, part := range []string{"with ESMTPSA (TLS1.3", "(using TLSv1.3", "(Authenticated sender: hub)", "Client CN \"hub.example.org\"", "(verified OK)"} {
		if !strings.Contains(got, part) {
			t.Errorf("nothing says %q: %.1500s", part, got)
		}
	}
	h.awaitEmpty()
}

// msmtp has its SCRAM from GNU SASL.
func TestMsmtpAuthenticatesByScram(t *testing.T) {
	t.Parallel()
	msmtp := mailtest.Program(t, "msmtp", "PARLEY_TEST_REQUIRE_MSMTP")
	certificateFile, keyFile := mailtest.CertificateFiles(t, "hub.example.org")
	h := newHub(t, nil, map[string]map[string]object{"receive connector": {"submission": {
		"tls": "REQUIRED", "certificate_file": certificateFile, "certificate_key_file": keyFile, "authentication": []string{"SCRAM-SHA-256"},
		"authentication_without_tls": false,
	}}})
	host, port, _ := net.SplitHostPort(h.submission)
	submit := func(mechanism, password string) error {
		command := exec.CommandContext(t.Context(), msmtp, "--host="+host, "--port="+port, "--auth="+mechanism, "--user=ann", "--passwordeval=echo "+password,
			"--from=ann@example.org", "--tls=on", "--tls-certcheck=off", "bob@example.org")
		command.Stdin = strings.NewReader("From: ann@example.org\nTo: bob@example.org\nSubject: by " + mechanism + "\n\nx\n")
		out, err := command.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	if err := submit("scram-sha-256", "secret"); err != nil {
		t.Fatal(err)
	}
	if err := submit("scram-sha-256", "guess"); err == nil || !strings.Contains(err.Error(), "535 5.7.8") {
		t.Errorf("a wrong password: %v", err)
	}
	h.awaitMessage("bob", "Subject: by scram-sha-256", "with ESMTPSA")
	h.awaitEmpty()
}
