package peers_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/mailtest"
)

// postfix is a Postfix with a configuration and a queue of its own, which relays all that is not refused.
type postfix struct {
	t       *testing.T
	folder  string
	address string
}

// openFolder gives a folder that other users of the system can read, unlike that of a test.
func openFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "parley-peer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

// newPostfix prepares a Postfix for postfix.example: start runs it.
func newPostfix(t *testing.T) *postfix {
	t.Helper()
	mailtest.Program(t, "postfix", "PARLEY_TEST_REQUIRE_POSTFIX")
	if os.Geteuid() != 0 {
		t.Skip("Postfix has to be started by root")
	}
	return &postfix{t: t, folder: openFolder(t), address: mailtest.FreeAddress(t)}
}

// start runs Postfix, whose log goes to that of the system: its postlogd, which logs to itself, can block with all that log, for ever, when
// many processes begin at once. It sends what it does not have itself to the hub. Settings in more hold instead of the usual ones.
func (p *postfix) start(h *hub, more ...string) {
	p.t.Helper()
	_, port, _ := net.SplitHostPort(h.inbound)
	write(p.t, filepath.Join(p.folder, "etc", "main.cf"), fmt.Sprintf(`
compatibility_level = 3.6
queue_directory = %[1]s/queue
data_directory = %[1]s/data
myhostname = postfix.example
mynetworks = 127.0.0.0/8
inet_protocols = ipv4
mydestination =
local_recipient_maps =
alias_maps =
virtual_alias_domains = postfix.example
virtual_alias_maps = texthash:%[1]s/etc/virtual
relayhost = [127.0.0.1]:%[2]s
smtp_tls_security_level = none
smtpd_relay_restrictions = permit_mynetworks, reject
smtpd_recipient_restrictions = reject_unlisted_recipient
smtputf8_enable = yes
minimal_backoff_time = 1s
queue_run_delay = 1s
`, p.folder, port)+strings.Join(more, ""))
	write(p.t, filepath.Join(p.folder, "etc", "virtual"), "loop@postfix.example ann@example.org\ngrüße@postfix.example ann@example.org\n"+
		"lost@postfix.example nobody@example.org\n")
	services := p.address + " inet n - n - - smtpd\n"
	for service := range strings.SplitSeq(`pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
tlsmgr unix - - n 1000? 1 tlsmgr`, "\n") {
		services += service + "\n"
	}
	write(p.t, filepath.Join(p.folder, "etc", "master.cf"), services)
	for _, folder := range []string{"queue", "data"} {
		if err := os.Mkdir(filepath.Join(p.folder, folder), 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
	owner, err := user.Lookup("postfix")
	if err != nil {
		p.t.Fatal(err)
	}
	id, _ := strconv.Atoi(owner.Uid)
	if err := os.Chown(filepath.Join(p.folder, "data"), id, -1); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = exec.Command("postfix", "-c", filepath.Join(p.folder, "etc"), "stop").Run()
	})
	p.command("start")
	h.await("Postfix", func() bool { return mailtest.IsListening(p.t.Context(), p.address) })
}

func (p *postfix) command(name string) {
	p.t.Helper()
	out, err := exec.CommandContext(p.t.Context(), "postfix", "-c", filepath.Join(p.folder, "etc"), name).CombinedOutput()
	if err != nil {
		p.t.Fatalf("postfix %s: %v: %s", name, err, out)
	}
}

// sendmail submits a message to Postfix as programs of its host do.
func (p *postfix) sendmail(text string, arguments ...string) {
	p.t.Helper()
	command := exec.CommandContext(p.t.Context(), "sendmail", append([]string{"-C", filepath.Join(p.folder, "etc")}, arguments...)...)
	command.Stdin = strings.NewReader(text)
	if out, err := command.CombinedOutput(); err != nil {
		p.t.Fatalf("sendmail: %v: %s", err, out)
	}
}

// Mail that we send to Postfix comes back from it, because it has the address as an alias of ours.
func TestPostfixRelaysToUsAndFromUs(t *testing.T) {
	t.Parallel()
	peer := newPostfix(t)
	h := newHub(t, map[string]string{"postfix.example": peer.address}, nil)
	peer.start(h)

	large := bytes.Repeat([]byte(strings.Repeat("x", 70)+"\r\n"), 30_000)
	for subject, body := range map[string]string{"dots": "..\r\n.\r\n.dot\r\n", "eight bits": "Grüße\r\n", "large": string(large)} {
		h.exec(`select parley_mail.send('ann@example.org', array['loop@postfix.example'], raw => convert_to($1, 'UTF8'))`,
			"From: ann@example.org\r\nTo: loop@postfix.example\r\nSubject: "+subject+"\r\n\r\n"+body)
		got := h.awaitMessage("ann", "Subject: "+subject)
		if !strings.HasSuffix(got, "\r\n\r\n"+body) {
			t.Errorf("%s: came back as %.2000q", subject, got)
		}
		if strings.Count(got, "\r\nReceived: ") != 2 {
			t.Errorf("%s: the header is %.2000q", subject, got)
		}
	}

	peer.sendmail("Subject: from its host\n\nhello\n", "-f", "bob@b.example", "ann@example.org")
	// One is no ASCII; one is unknown there, is refused, and we report it; one is unknown here, we refuse it, and Postfix reports it.
	for _, to := range []string{"grüße", "absent", "lost"} {
		h.exec(`select parley_mail.send('ann@example.org', array[$1], subject => 'Grüße', text => 'Grüße')`, to+"@postfix.example")
	}
	// Postfix takes over what we say of reports: it offers DSN.
	h.exec(`select parley_mail.send('ann@example.org', array['loop@postfix.example'], subject => 'report', text => 'x',
		notify => 'SUCCESS,FAILURE', ret => 'HDRS', envid => 'order+7')`)
	h.awaitMessage("ann", "Subject: from its host", "Return-Path: <bob@b.example>")
	h.awaitMessage("ann", "To: grüße@postfix.example")
	h.awaitMessage("ann", "Return-Path: <>", "Final-Recipient: rfc822; absent@postfix.example", "Diagnostic-Code: smtp; 550 5.1.1", "Action: failed")
	h.awaitMessage("ann", "Return-Path: <>", "Reporting-MTA: dns; postfix.example", "Final-Recipient: rfc822; nobody@example.org", "Status: 5.1.1")
	h.awaitMessage("ann", "Return-Path: <>", "Original-Envelope-Id: order+7", "Original-Recipient: rfc822;loop@postfix.example", "Action: ")
	h.awaitEmpty()
}

// A host that is down costs nothing but time, and a queue that waits for it goes at once when an operator says so.
func TestMailWaitsForPostfix(t *testing.T) {
	t.Parallel()
	peer := newPostfix(t)
	h := newHub(t, map[string]string{"postfix.example": peer.address}, nil)
	h.exec(`select parley_mail.send('ann@example.org', array['loop@postfix.example'], subject => 'later', text => 'x')`)
	h.await("the failure", func() bool {
		return h.text(`select count(*)::text from parley_mail.queues where status = 'RETRY'`) == "1"
	})
	peer.start(h)
	h.exec(`select parley_mail.retry_queue(queue) from parley_mail.queues where status = 'RETRY'`)
	h.awaitMessage("ann", "Subject: later")
	h.awaitEmpty()
}
