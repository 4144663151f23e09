package server_test

import (
	"fmt"
	"net"
	netsmtp "net/smtp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/mailtest"
)

const draft = "From: ann@example.org\nTo: ann@example.org\nSubject: %s\n\ndraft of another program\n"

// permitted is a hub whose daemon may use one folder of the machine, with a folder beside it that is another program's.
type permitted struct {
	*hub
	inside, outside string
}

func newPermitted(t *testing.T) *permitted {
	t.Helper()
	top := t.TempDir()
	p := &permitted{newHub(t), filepath.Join(top, "inside"), filepath.Join(top, "outside")}
	for _, folder := range []string{p.inside, p.outside} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.folders = []string{p.inside}
	p.mailbox = filepath.Join(p.inside, "mail")
	p.exec(`select parley_mail.alter_object('mailbox store', 'local', jsonb_build_object('address', $1 || '/{local}'))`, p.mailbox)
	return p
}

// put writes a file of a program, and gives its name.
func (p *permitted) put(path, text string) {
	p.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// names are those of the files in a folder.
func (p *permitted) names(folder string) (names []string) {
	p.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		p.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// findings awaits that a diagnosis names objects as left out, with the cure.
func (p *permitted) findings(want string) {
	p.Helper()
	p.await("the findings "+want, func() bool {
		return p.text(`select coalesce(string_agg(f.object_kind || ' ' || f.object_name, ', ' order by f.object_kind collate "C", f.object_name), '')
			from parley_mail._p_find_daemon_faults() as f where f.code = 'mail-configuration' and f.cure like 'parley mail serve --folders /%'`) == want
	})
}

// A role with ADMINISTER names folders of other programs: nothing is sent from there, nothing is deleted and nothing is renamed.
func TestFolderOutsideIsNotTouched(t *testing.T) {
	t.Parallel()
	p := newPermitted(t)
	pickup := filepath.Join(p.inside, "pickup")
	if err := os.Mkdir(pickup, 0o700); err != nil {
		t.Fatal(err)
	}
	left := []string{"broken.tmp", "draft.eml", "none.eml"}
	p.put(filepath.Join(p.outside, "draft.eml"), fmt.Sprintf(draft, "outside"))
	p.put(filepath.Join(p.outside, "none.eml"), "x")
	p.put(filepath.Join(p.outside, "broken.tmp"), "x")
	if err := os.Symlink("../outside", filepath.Join(p.inside, "link")); err != nil {
		t.Fatal(err)
	}
	p.exec(`select parley_mail.apply($1::jsonb)`, fmt.Sprintf(`{
		"pickup folder": {"inside": {"path": %q, "poll": 1}, "outside": {"path": %q, "poll": 1}, "link": {"path": %q, "poll": 1},
			"up": {"path": %q, "poll": 1}},
		"replay folder": {"outside": {"path": %q, "poll": 1, "enabled": true}}}`,
		pickup, p.outside, filepath.Join(p.inside, "link"), p.inside+"/../outside/below", p.outside+"/below"))
	p.start()
	p.findings("pickup folder outside, pickup folder up, replay folder outside")
	p.await("the finding of the link", func() bool {
		return p.text(`select coalesce(string_agg(f.cause, ', '), '') from parley_mail._p_find_daemon_faults() as f
			where f.code = 'mail-configuration' and f.object_name = 'link'`) != ""
	})
	p.put(filepath.Join(pickup, "mine.eml"), fmt.Sprintf(draft, "inside"))
	p.await("the file inside", func() bool { return len(p.inbox()) == 1 && len(p.names(pickup)) == 0 })
	// Also while it runs, as part of a configuration that is used otherwise.
	p.exec(`select parley_mail.apply($1::jsonb)`, fmt.Sprintf(`{"pickup folder": {"later": {"path": %q, "poll": 1}, "inside": {"rate": 50}}}`, p.outside+"/later"))
	p.findings("pickup folder later, pickup folder outside, pickup folder up, replay folder outside")
	p.put(filepath.Join(pickup, "mine.eml"), fmt.Sprintf(draft, "inside again"))
	p.await("the file inside", func() bool { return len(p.inbox()) == 2 })
	time.Sleep(1500 * time.Millisecond) //nolint:forbidigo // longer than a poll of what must not be polled
	if got := p.names(p.outside); !slices.Equal(got, left) {
		t.Errorf("outside were %q, and are %q", left, got)
	}
	if all := strings.Join(p.inbox(), ""); strings.Contains(all, "Subject: outside") {
		t.Error("a file of another program was sent")
	}
}

// A store whose Maildirs stand outside gets nothing, nor one behind a link that leads there; its mail waits, and other mail does not.
func TestMaildirOutsideIsNotWritten(t *testing.T) {
	t.Parallel()
	p := newPermitted(t)
	if err := os.Symlink(p.outside, filepath.Join(p.inside, "link")); err != nil {
		t.Fatal(err)
	}
	p.exec(`select parley_mail.apply($1::jsonb)`, fmt.Sprintf(`{
		"mailbox store": {"outside": {"driver": "MAILDIR", "address": %q}, "link": {"driver": "MAILDIR", "address": %q}},
		"mailbox": {"out@example.org": {"store": "outside"}, "link@example.org": {"store": "link"}}}`,
		p.outside+"/{local}", filepath.Join(p.inside, "link")+"/{local}"))
	stop := p.start()
	p.findings("mailbox store outside")
	p.submit("out@example.org", "link@example.org", "ann@example.org")
	p.await("the mail inside", func() bool { return len(p.inbox()) == 1 })
	p.await("why the mail behind the link waits", func() bool {
		return strings.Contains(p.text(`select coalesce(string_agg(m.last_error, ' '), '') from parley_mail.messages as m where m.queue like 'MAILBOX/link/%'`), "escapes")
	})
	if got := p.names(p.outside); len(got) > 0 {
		t.Errorf("outside was made %q", got)
	}
	if got := p.text(`select concat_ws(' ', q.messages, q.last_error) from parley_mail.queues as q where q.queue like 'MAILBOX/outside/%'`); got != "1" {
		t.Errorf("the queue of the store that is left out has %s", got)
	}
	// A daemon whose operator permits it delivers what has waited.
	stop()
	p.folders = []string{p.inside, p.outside}
	p.start()
	p.await("the mail outside", func() bool {
		found, err := filepath.Glob(filepath.Join(p.outside, "out", "new", "*"))
		return err == nil && len(found) == 1
	})
}

// Certificates outside are not read: connectors that name them are left out, and so is an HTTP listener.
func TestCertificateOutsideIsNotRead(t *testing.T) {
	t.Parallel()
	p := newPermitted(t)
	outside, key := mailtest.CertificateFiles(t, "hub.example.org")
	inside, insideKey := filepath.Join(p.inside, "a.pem"), filepath.Join(p.inside, "a.key")
	for from, to := range map[string]string{outside: inside, key: insideKey} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		p.put(to, string(text))
	}
	link := filepath.Join(p.inside, "link.pem")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	secured, unsecured, behind, authorities, http := mailtest.FreeAddress(t), mailtest.FreeAddress(t), mailtest.FreeAddress(t), mailtest.FreeAddress(t), mailtest.FreeAddress(t)
	p.exec(`select parley_mail.apply($1::jsonb)`, fmt.Sprintf(`{
		"receive connector": {
			"inside": {"usage": "CLIENT", "bindings": [%q], "tls": "REQUIRED", "certificate_file": %q, "certificate_key_file": %q},
			"outside": {"usage": "CLIENT", "bindings": [%q], "tls": "REQUIRED", "certificate_file": %q, "certificate_key_file": %q},
			"link": {"usage": "CLIENT", "bindings": [%q], "tls": "REQUIRED", "certificate_file": %q, "certificate_key_file": %q},
			"authorities": {"usage": "CLIENT", "bindings": [%q], "tls": "REQUIRED", "certificate_file": %q, "certificate_key_file": %q,
				"client_ca_file": "/etc/passwd"}},
		"send connector": {"outside": {"address_spaces": [{"pattern": "c.example"}], "routing": "SMART_HOST", "smart_hosts": [{"host": "[127.0.0.1]", "port": 1}],
			"certificate_file": %q, "certificate_key_file": %q}},
		"http listener": {"outside": {"bindings": [%q], "certificate_file": %q, "certificate_key_file": %q}}}`,
		secured, inside, insideKey, unsecured, outside, key, behind, link, insideKey, authorities, inside, insideKey, outside, key, http, outside, key))
	p.start()
	p.findings("http listener outside, receive connector authorities, receive connector outside, send connector outside")
	isOpen := func(address string) bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	p.await("the connector inside", func() bool { return isOpen(secured) })
	for _, address := range []string{unsecured, behind, authorities, http} {
		if isOpen(address) {
			t.Errorf("%s is listened on", address)
		}
	}
	p.submit("x@c.example", "x@d.example")
	p.await("the mail of another connector", func() bool { return len(p.relayed()) == 1 })
}

// Sockets outside are not connected to: neither of a mailbox store nor of a filter, whose connector would take unfiltered mail.
func TestSocketOutsideIsNotConnectedTo(t *testing.T) {
	t.Parallel()
	p := newPermitted(t)
	connected := make(chan string, 100)
	for _, folder := range []string{p.inside, p.outside} {
		for _, name := range []string{"lmtp", "milter"} {
			listener, err := net.Listen("unix", filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = listener.Close() })
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					connected <- filepath.Base(folder) + " " + name
					_ = conn.Close()
				}
			}()
		}
	}
	if err := os.Symlink("../outside/lmtp", filepath.Join(p.inside, "link")); err != nil {
		t.Fatal(err)
	}
	filtered, address := mailtest.FreeAddress(t), mailtest.FreeAddress(t)
	p.exec(`select parley_mail.apply($1::jsonb)`, fmt.Sprintf(`{
		"mailbox store": {"inside": {"address": "unix:%s/lmtp"}, "outside": {"address": "unix:%s/lmtp"}, "link": {"address": "unix:%s/link"}},
		"mailbox": {"in@example.org": {"store": "inside"}, "out@example.org": {"store": "outside"}, "link@example.org": {"store": "link"}},
		"receive connector": {
			"inside": {"usage": "INTERNAL", "bindings": [%q], "remote_ranges": ["127.0.0.0/8"], "tls": "OFF", "milters": [{"address": "unix:%s/milter"}]},
			"outside": {"usage": "INTERNAL", "bindings": [%q], "remote_ranges": ["127.0.0.0/8"], "tls": "OFF", "milters": [{"address": "unix:%s/milter"}]}}}`,
		p.inside, p.outside, p.inside, filtered, p.inside, address, p.outside))
	p.start()
	p.findings("mailbox store outside, receive connector outside")
	p.submit("in@example.org", "out@example.org", "link@example.org")
	p.await("the connector", func() bool {
		return netsmtp.SendMail(filtered, nil, "x@b.example", []string{"ann@example.org"}, []byte("Subject: x\r\n\r\nx\r\n")) != nil
	})
	p.await("the mail that waits", func() bool {
		return p.text(`select count(*)::text from parley_mail.queues as q where q.queue ~ 'MAILBOX/(inside|link)/' and q.last_error is not null`) == "2"
	})
	seen := make(map[string]bool)
	for len(connected) > 0 {
		seen[<-connected] = true
	}
	if !seen["inside lmtp"] || !seen["inside milter"] || len(seen) != 2 {
		t.Errorf("connected to: %v", seen)
	}
}

// A daemon without any folder starts, and takes and sends mail that needs none.
func TestDaemonWithoutFoldersUsesNoneOfTheMachine(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.folders = nil
	h.start()
	h.await("the listener", h.listens)
	h.submit("ann@example.org", "x@c.example", "orders@example.org")
	h.await("the mail", func() bool {
		return len(h.relayed()) == 1 && h.text(`select count(*)::text from public.orders`) == "1"
	})
	if len(h.inbox()) > 0 {
		t.Error("a Maildir was written")
	}
}

// An object that a daemon has left out keeps no later configuration from being used.
func TestConfigurationIsUsedBesideWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`select parley_mail.apply($1::jsonb)`, `{"receive connector": {"secured": {"usage": "CLIENT", "bindings": ["`+mailtest.FreeAddress(t)+`"],
		"certificate_file": "`+t.TempDir()+`/a.pem", "certificate_key_file": "`+t.TempDir()+`/a.key"}}}`)
	h.start()
	h.await("the listener", h.listens)
	banner := func() string {
		conn, err := net.Dial("tcp", h.address)
		if err != nil {
			return ""
		}
		defer func() { _ = conn.Close() }()
		text := make([]byte, 200)
		n, _ := conn.Read(text)
		return string(text[:n])
	}
	h.exec(`select parley_mail.alter_object('receive connector', 'inbound', '{"banner": "anew"}')`)
	h.await("the banner", func() bool { return strings.Contains(banner(), "anew") })
}
