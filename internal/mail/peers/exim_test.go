package peers_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/mailtest"
)

// startExim runs an Exim for exim.example with a configuration and a queue of its own: what it does not have itself goes to the hub.
func startExim(t *testing.T, path, address string, h *hub) {
	t.Helper()
	folder := openFolder(t)
	for _, name := range []string{"spool", "log"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(folder, name), 0o777); err != nil { // Exim works as a user of its own
			t.Fatal(err)
		}
	}
	_, own, _ := net.SplitHostPort(address)
	_, port, _ := net.SplitHostPort(h.inbound)
	configuration := filepath.Join(folder, "exim.conf")
	write(t, configuration, fmt.Sprintf(`
exim_path = %[1]s
primary_hostname = exim.example
spool_directory = %[2]s/spool
log_file_path = %[2]s/log/%%slog
pid_file_path = %[2]s/spool/pid
keep_environment = PATH
daemon_smtp_ports = %[3]s
local_interfaces = 127.0.0.1
tls_advertise_hosts =
smtputf8_advertise_hosts = *
dsn_advertise_hosts = *
acl_smtp_rcpt = rcpt
begin acl
rcpt:
  require verify = recipient
  accept
begin routers
ours:
  driver = redirect
  allow_fail
  domains = exim.example
  data = ${if or{{eq{$local_part}{loop}}{eq{$local_part}{grüße}}}{ann@example.org}{:fail: no such user}}
hub:
  driver = manualroute
  route_list = * 127.0.0.1::%[4]s
  self = send
  transport = remote
begin transports
remote:
  driver = smtp
  hosts_avoid_tls = *
begin retry
* * F,1h,1s
`, path, folder, own, port))
	run(t, exec.CommandContext(t.Context(), path, "-C", configuration, "-bdf"))
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(folder, "log", "mainlog"))
			t.Logf("the log of Exim: %s", log)
		}
	})
	h.await("Exim", func() bool { return mailtest.IsListening(t.Context(), address) })
}

// Mail that we send to Exim comes back from it, because it has the address as an alias of ours. It sends in chunks (BDAT), unlike Postfix.
func TestEximRelaysToUsAndFromUs(t *testing.T) {
	t.Parallel()
	path := mailtest.Program(t, "exim4", "PARLEY_TEST_REQUIRE_EXIM")
	if os.Geteuid() != 0 {
		t.Skip("Exim has to be started by root")
	}
	address := mailtest.FreeAddress(t)
	h := newHub(t, map[string]string{"exim.example": address}, nil)
	startExim(t, path, address, h)

	large := strings.Repeat(strings.Repeat("x", 70)+"\r\n", 30_000)
	for subject, body := range map[string]string{"dots": "..\r\n.\r\n.dot\r\n", "eight bits": "Grüße\r\n", "large": large} {
		h.exec(`select parley_mail.send('ann@example.org', array['loop@exim.example'], raw => convert_to($1, 'UTF8'))`,
			"From: ann@example.org\r\nTo: loop@exim.example\r\nSubject: "+subject+"\r\n\r\n"+body)
		if got := h.awaitMessage("ann", "Subject: "+subject); !strings.HasSuffix(got, "\r\n\r\n"+body) {
			t.Errorf("%s: came back as %.2000q", subject, got)
		}
	}
	for _, to := range []string{"grüße", "absent"} {
		h.exec(`select parley_mail.send('ann@example.org', array[$1], subject => 'Grüße', text => 'Grüße')`, to+"@exim.example")
	}
	h.exec(`select parley_mail.send('ann@example.org', array['loop@exim.example'], subject => 'report', text => 'x', notify => 'SUCCESS')`)
	h.awaitMessage("ann", "To: grüße@exim.example")
	h.awaitMessage("ann", "Return-Path: <>", "Final-Recipient: rfc822; absent@exim.example", "Diagnostic-Code: smtp; 550", "Action: failed")
	h.awaitMessage("ann", "Return-Path: <>", "Reporting-MTA: dns; exim.example", "Action: ")
	h.awaitEmpty()
}
