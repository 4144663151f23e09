package server_test

import (
	netsmtp "net/smtp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/parley-broker/parley/internal/mail/signing"
)

func TestMailIsSignedWithTheKeyOfItsDomain(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	private, record, err := signing.NewKey("ed25519")
	if err != nil {
		t.Fatal(err)
	}
	h.exec(`select parley_mail.create_object('signing key', 'first', jsonb_build_object('domain', 'example.org', 'selector', 's1',
		'algorithm', 'ED25519-SHA256', 'private_key', $1::text))`, string(private))
	h.start()
	h.exec(`select parley_mail.send('Ann <ann@example.org>', array['x@c.example'], subject => 'hello', text => 'hello')`)
	h.exec(`select parley_mail.send('bob@other.example', array['x@c.example'], subject => 'hello', text => 'hello')`)
	h.await("the mail", func() bool { return len(h.relayed()) == 2 })
	for _, relayed := range h.relayed() {
		_, text, _ := strings.Cut(relayed, "\n")
		found, err := dkim.VerifyWithOptions(strings.NewReader(text), &dkim.VerifyOptions{
			LookupTXT: func(string) ([]string, error) { return []string{record}, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if ours := strings.Contains(text, "ann@example.org"); ours != (len(found) == 1) {
			t.Errorf("%d signatures of %.300q", len(found), text)
		}
		for _, signature := range found {
			if signature.Err != nil || signature.Domain != "example.org" {
				t.Errorf("signature of %s: %v", signature.Domain, signature.Err)
			}
		}
	}
}

// Mail that somebody outside wrote leaves unsigned, whatever it says in From: a signature would say that we wrote it.
func TestMailFromOutsideThatIsSentOnIsNotSigned(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	private, _, err := signing.NewKey("ed25519")
	if err != nil {
		t.Fatal(err)
	}
	h.exec(`select parley_mail.apply($1::jsonb || jsonb_build_object('signing key', jsonb_build_object('first', jsonb_build_object(
		'domain', 'example.org', 'selector', 's1', 'algorithm', 'ED25519-SHA256', 'private_key', $2::text))))`, `{
		"mailbox": {"away@example.org": {"forwarding": "ONLY", "forward_to": ["x@c.example"]}},
		"distribution group": {"all@example.org": {"members": ["y@c.example"]}},
		"alias": {"sales@example.org": {"target": "z@c.example"}}}`, string(private))
	h.start()
	h.await("the listener", h.listens)
	for _, recipient := range []string{"away@example.org", "all@example.org", "sales@example.org"} {
		// An outsider says that he is of ours, in the header and in the envelope.
		text := "From: ceo@example.org\r\nTo: " + recipient + "\r\nSubject: from outside\r\n\r\npay this\r\n"
		if err := netsmtp.SendMail(h.address, nil, "ceo@example.org", []string{recipient}, []byte(text)); err != nil {
			t.Fatal(err)
		}
		h.exec(`select parley_mail.send('ceo@example.org', array[$1], subject => 'from inside', text => 'hello')`, recipient)
	}
	h.await("the mail", func() bool { return len(h.relayed()) == 6 })
	for _, text := range h.relayed() {
		isSigned := strings.Contains(text, "DKIM-Signature:")
		if isInside := strings.Contains(text, "Subject: from inside\r\n"); isSigned != isInside {
			t.Errorf("signed is %v of %.600q", isSigned, text)
		}
	}
}

// An exported message that came from outside is from outside still when its file is replayed.
func TestReplayedMailIsSignedWhereItOriginatesHere(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	private, _, err := signing.NewKey("ed25519")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "replay")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	h.exec(`select parley_mail.create_object('signing key', 'first', jsonb_build_object('domain', 'example.org', 'selector', 's1',
		'algorithm', 'ED25519-SHA256', 'private_key', $1::text))`, string(private))
	h.exec(`select parley_mail.create_object('replay folder', 'r', jsonb_build_object('enabled', true, 'path', $1::text, 'poll', 1))`, folder)
	for name, field := range map[string]string{"inside": "X-Directionality: ORIGINATING\r\n", "outside": "X-Directionality: INCOMING\r\n", "unknown": ""} {
		text := "X-Sender: <ann@example.org>\r\nX-Receiver: <x@c.example>\r\nX-CreatedBy: Parley\r\n" + field +
			"X-EndOfInjectedXHeaders: 1\r\nFrom: ann@example.org\r\nTo: x@c.example\r\nSubject: " + name + "\r\n\r\nhello\r\n"
		if err := os.WriteFile(filepath.Join(folder, name+".eml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.start()
	h.await("the mail", func() bool { return len(h.relayed()) == 3 })
	for _, text := range h.relayed() {
		if isSigned := strings.Contains(text, "DKIM-Signature:"); isSigned != strings.Contains(text, "Subject: inside\r\n") {
			t.Errorf("signed is %v of %.600q", isSigned, text)
		}
	}
}
