package server_test

import (
	netsmtp "net/smtp"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/mailtest"
)

// Objects that a daemon cannot use when it starts it leaves out, and says so: all else of the configuration works.
func TestDaemonStartsWithoutWhatItCannotUse(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`select parley_mail.apply($1::jsonb)`, `{
		"receive connector": {"secured": {"usage": "CLIENT", "bindings": ["`+mailtest.FreeAddress(t)+`"], "certificate_file": "/nowhere/a.pem", "certificate_key_file": "/nowhere/a.key"}},
		"send connector": {"broken": {"address_spaces": [{"pattern": "broken.example"}], "source_addresses": ["no address"]}}}`)
	// As an older build may have taken it.
	h.exec(`insert into parley_mail._p_object (kind, name, settings, secrets, changed_by, version) values ('signing key', 'chalk',
		'{"domain": "example.org", "selector": "s1"}', '{"private_key": "chalk"}', 'x', 1)`)
	h.start()
	h.await("the listener", h.listens)
	if err := netsmtp.SendMail(h.address, nil, "bob@b.example", []string{"ann@example.org"}, []byte("Subject: in\r\n\r\nx\r\n")); err != nil {
		t.Fatal(err)
	}
	h.exec(`select parley_mail.send('ann@example.org', array['x@c.example'], subject => 'out', text => 'x')`)
	h.await("the mail", func() bool { return len(h.inbox()) == 1 && len(h.relayed()) == 1 })
	h.await("the findings", func() bool {
		return h.text(`select coalesce(string_agg(f.object_kind || ' ' || f.object_name, ', ' order by f.object_kind collate "C"), '')
			from parley_mail._p_find_daemon_faults() as f where f.code = 'mail-configuration'`) == "receive connector secured, send connector broken, signing key chalk"
	})
	// A daemon that runs goes on with what it has.
	h.exec(`select parley_mail.apply('{"receive connector": {"inbound": {"banner": "new"}}}')`)
	if text := h.relayed()[0]; strings.Contains(text, "DKIM-Signature") {
		t.Errorf("left was %q", text)
	}
}
