package peers_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/mailtest"
)

// dovecot is a Dovecot with a configuration of its own, which delivers by LMTP into Maildirs.
type dovecot struct {
	t                     *testing.T
	folder, configuration string
	// owner is to whom mailboxes belong.
	owner *user.User
}

func newDovecot(t *testing.T) *dovecot {
	t.Helper()
	mailtest.Program(t, "dovecot", "PARLEY_TEST_REQUIRE_DOVECOT")
	if _, err := os.Stat("/usr/lib/dovecot/lmtp"); err != nil {
		t.Skip("Dovecot has no LMTP here")
	}
	if os.Geteuid() != 0 {
		t.Skip("Dovecot has to be started by root")
	}
	owner, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	d := &dovecot{t: t, folder: openFolder(t), owner: owner}
	d.configuration = filepath.Join(d.folder, "dovecot.conf")
	write(t, d.configuration, fmt.Sprintf(`
base_dir = %[1]s/run
state_dir = %[1]s/state
log_path = %[1]s/log
protocols = lmtp
ssl = no
first_valid_uid = 1
mail_location = maildir:%%h
postmaster_address = postmaster@example.org
hostname = dovecot.example
passdb {
  driver = passwd-file
  args = username_format=%%u %[1]s/users
}
userdb {
  driver = passwd-file
  args = username_format=%%u %[1]s/users
}
service lmtp {
  unix_listener %[1]s/lmtp {
    mode = 0666
  }
}
service stats {
  unix_listener stats-writer {
    mode = 0666
  }
}
`, d.folder))
	write(t, filepath.Join(d.folder, "users"), "")
	d.add("carl@example.org", filepath.Join(d.folder, "mail", "carl"))
	d.add("dora@example.org", filepath.Join(d.folder, "mail", "dora"))
	d.add("bob@example.org", filepath.Join(d.folder, "mail", "bob")) // once it runs Dovecot may not see him at once
	if err := os.Mkdir(filepath.Join(d.folder, "mail"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.give(filepath.Join(d.folder, "mail"))
	run(t, exec.CommandContext(t.Context(), "dovecot", "-F", "-c", d.configuration))
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(d.folder, "log"))
			t.Logf("the log of Dovecot: %s", log)
		}
	})
	return d
}

// add adds a user whose mail is in a folder.
func (d *dovecot) add(name, folder string) {
	d.t.Helper()
	file, err := os.OpenFile(filepath.Join(d.folder, "users"), os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := fmt.Fprintf(file, "%s:{plain}secret:%s:%s::%s::\n", name, d.owner.Uid, d.owner.Gid, folder); err != nil {
		d.t.Fatal(err)
	}
}

// give gives a folder to the owner of mailboxes.
func (d *dovecot) give(folder string) {
	d.t.Helper()
	if out, err := exec.CommandContext(d.t.Context(), "chown", "-R", d.owner.Uid+":"+d.owner.Gid, folder).CombinedOutput(); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
}

// fetch gives the messages that Dovecot finds in a mailbox.
func (d *dovecot) fetch(name, fields string) string {
	d.t.Helper()
	out, err := exec.CommandContext(d.t.Context(), "doveadm", "-c", d.configuration, "fetch", "-u", name, fields, "mailbox", "INBOX").CombinedOutput()
	if err != nil {
		d.t.Fatalf("doveadm fetch: %v: %s", err, out)
	}
	return string(out)
}

func TestDovecotTakesMailByLMTPAndReadsMaildirs(t *testing.T) {
	t.Parallel()
	d := newDovecot(t)
	h := newHub(t, nil, map[string]map[string]object{
		"mailbox store": {"dovecot": {"driver": "LMTP", "address": "unix:" + d.folder + "/lmtp"}},
		"mailbox": {
			"carl@example.org": {"store": "dovecot"}, "dora@example.org": {"store": "dovecot"},
			"emil@example.org": {"store": "dovecot"}, // of whom Dovecot does not know
		},
	})
	h.await("Dovecot", func() bool { _, err := os.Stat(filepath.Join(d.folder, "lmtp")); return err == nil })
	body := "..\r\n.\r\nGrüße\r\n"
	h.exec(`select parley_mail.send('ann@example.org', array['carl@example.org', 'dora@example.org', 'emil@example.org'], raw => convert_to($1, 'UTF8'))`,
		"From: ann@example.org\r\nTo: carl@example.org, dora@example.org, emil@example.org\r\nSubject: to three\r\n\r\n"+body)

	// One recipient of three is unknown: LMTP replies for each, so it is reported and the others have the message.
	report := h.awaitMessage("ann", "Return-Path: <>", "Final-Recipient: rfc822; emil@example.org", "Action: failed")
	if strings.Contains(report, "Final-Recipient: rfc822; carl") || !strings.Contains(report, "550 5.1.1") {
		t.Errorf("the report is %s", report)
	}
	for _, name := range []string{"carl@example.org", "dora@example.org"} {
		got := strings.ReplaceAll(d.fetch(name, "text"), "\r\n", "\n")
		if !strings.HasSuffix(got, "\n\n"+strings.ReplaceAll(body, "\r\n", "\n")) || !strings.Contains(got, "Return-Path: <ann@example.org>") {
			t.Errorf("%s has %q", name, got)
		}
		if !strings.Contains(got, "Delivered-To: "+name+"\n") {
			t.Errorf("%s has no field with his address: %q", name, got)
		}
	}

	// A Maildir that we write, Dovecot reads.
	h.exec(`select parley_mail.send('ann@example.org', array['bob@example.org'], subject => 'by Maildir', text => 'hello')`)
	h.awaitMessage("bob", "Subject: by Maildir")
	folder := filepath.Join(d.folder, "mail", "bob")
	if out, err := exec.CommandContext(t.Context(), "cp", "-r", filepath.Join(h.mailboxes, "bob"), folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d.give(folder)
	if got := d.fetch("bob@example.org", "hdr.subject size.virtual"); !strings.Contains(got, "hdr.subject: by Maildir") {
		t.Errorf("Dovecot finds %q", got)
	}
	h.awaitEmpty()
}
