package server_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/internal/mail/mailtest"
)

// Files and requests become messages, as the configuration says at the time.
func TestMailComesInAsFilesAndOverHTTP(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	pickup, replay, address := t.TempDir(), t.TempDir(), mailtest.FreeAddress(t)
	put := func(folder, name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.exec(`select parley_mail.apply($1::jsonb)`, fmt.Sprintf(`{
		"receive connector": {"inbound": {"fqdn": "in.example.org"}},
		"pickup folder": {"here": {"path": %q, "poll": 1, "max_message_size": 2000}, "elsewhere": {"path": "/nowhere/pickup", "nodes": ["another machine"]}},
		"replay folder": {"here": {"path": %q, "poll": 1}},
		"http listener": {"here": {"bindings": [%q], "authentication_without_tls": true}},
		"credential": {"ann": {"password": "secret", "allowed_senders": ["ann@example.org"]}, "bob": {"password": "secret", "message_rate": 2}}
	}`, pickup, replay, address))
	// Fields that say what we have verified, under the name of the organization and under that of a connector.
	const forged = "Authentication-Results: hub.example.org; spf=pass\nAuthentication-Results: in.example.org; dkim=pass\nX-Parley-Organization-X: y\n"
	put(replay, "old.eml", "X-Sender: <>\nX-Receiver: <ann@example.org>\nX-EndOfInjectedXHeaders: x\n"+forged+"From: x@c.example\nSubject: replayed\n\nhello\n")
	h.start()
	subjects := func() string {
		var found []string
		for _, message := range h.inbox() {
			for line := range strings.Lines(message) {
				if strings.HasPrefix(line, "Subject: ") {
					found = append(found, strings.TrimSpace(line[9:]))
				}
			}
		}
		return strings.Join(found, ",")
	}
	put(pickup, "one.new", "From: ann@example.org\nTo: ann@example.org\nSubject: picked up\n"+forged+"\nhello\n")
	if err := os.Rename(filepath.Join(pickup, "one.new"), filepath.Join(pickup, "one.eml")); err != nil {
		t.Fatal(err)
	}
	h.await("the file", func() bool { return subjects() == "picked up" })
	if _, err := os.Stat(filepath.Join(replay, "old.eml")); err != nil {
		t.Errorf("the replay folder is on by default: %v", err)
	}
	put(pickup, "large.eml", "From: ann@example.org\nTo: bob@example.org\nSubject: too large\n\n"+strings.Repeat("x", 2000))
	put(pickup, "bad.eml", "no message")
	h.await("the file that is none", func() bool {
		return strings.HasPrefix(h.text(`select coalesce(min(concat_ws(' ', source, connector_id, split_part(source_context, '/', -1))), '') from parley_mail.tracking
			where event_id = 'BADMAIL'`), "PICKUP pickup folder here bad.bad: ")
	})
	if err := os.Remove(filepath.Join(pickup, "bad.bad")); err != nil {
		t.Fatal(err)
	}
	h.exec(`select parley_mail.alter_object('replay folder', 'here', '{"enabled": true}')`)
	h.await("the file that is replayed", func() bool { return strings.Contains(subjects(), "replayed") })

	ask := func(method, path, user, key, text string) (int, string) {
		kind := "application/json"
		if strings.HasPrefix(text, "From: ") {
			kind = "message/rfc822"
		}
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", kind)
		request.Header.Set("Idempotency-Key", key)
		request.SetBasicAuth(user, "secret")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		content, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(content)
	}
	if status, _ := ask(http.MethodGet, "/healthz", "", "", ""); status != http.StatusOK {
		t.Errorf("/healthz: %d", status)
	}
	const letter = `{"from": "%s", "to": ["ann@example.org"], "subject": "%s", "text": "hello"}`
	first := ""
	for _, attempt := range []struct {
		user, key, author, subject string
		status                     int
	}{
		{"ann", "1", "ann@example.org", "over HTTP", 202},
		{"ann", "1", "ann@example.org", "over HTTP", 202},
		{"ann", "1", "ann@example.org", "another", 409},
		{"bob", "1", "bob@example.org", "of another user", 202},
		{"bob", "2", "bob@example.org", "of another user", 202},
		{"bob", "3", "bob@example.org", "too many", 429},
		{"ann", "2", "bob@example.org", "foreign", 403},
		{"eve", "3", "ann@example.org", "unknown", 401},
	} {
		status, answer := ask(http.MethodPost, "/messages", attempt.user, attempt.key, fmt.Sprintf(letter, attempt.author, attempt.subject))
		if status != attempt.status {
			t.Errorf("%+v: %d %s", attempt, status, answer)
		}
		if attempt.user == "ann" && status == 202 {
			if first == "" {
				first = answer
			} else if answer != first {
				t.Errorf("a key that was repeated is another message: %s, %s", first, answer)
			}
		}
	}
	if status, answer := ask(http.MethodPost, "/messages", "ann", "3", "From: ann@example.org\nTo: ann@example.org\nSubject: as it is\n"+forged+"\nhello\n"); status != 202 {
		t.Errorf("as it is: %d %s", status, answer)
	}
	h.exec(`select parley_mail.send('ann@example.org', array['ann@example.org'], raw => convert_to($1, 'UTF8'))`, "From: ann@example.org\nSubject: raw\n"+forged+"\nhello\n")
	h.await("the messages", func() bool {
		return strings.Contains(subjects(), "as it is") && strings.Contains(subjects(), "raw") && strings.Count(subjects(), "of another user") == 2 && strings.Contains(subjects(), "over HTTP")
	})
	if strings.Count(subjects(), "over HTTP") != 1 {
		t.Errorf("arrived: %s", subjects())
	}
	for _, message := range h.inbox() {
		if strings.Contains(message, "Authentication-Results") || strings.Contains(message, "X-Parley-Organization") {
			t.Errorf("it brought a field that is ours: %s", message)
		}
	}
	h.await("the report of a file that cannot be delivered", func() bool {
		h.exec("update parley_mail._p_report set due_at = now()")
		reports := strings.Join(h.inbox(), "")
		return strings.Contains(reports, "Status: 5.3.4") && strings.Contains(reports, "Subject: too large") && !strings.Contains(reports, "xxx")
	})
	if files, err := os.ReadDir(pickup); len(files) > 0 || err != nil {
		t.Errorf("left are %v, %v", files, err)
	}
	h.await("the end", h.empty)
}

func TestReplayFolderThatOthersCanWriteToIsNotUsed(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	log := &logtest.Log{}
	h.logger = log.Logger(slog.LevelInfo)
	h.exec(`select parley_mail.create_object('replay folder', 'open', jsonb_build_object('path', $1::text, 'enabled', true))`, open)
	h.start()
	h.await("the refusal", func() bool { return strings.Contains(log.String(), "cannot be opened") })
}

func TestConnectorWithoutItsCertificateIsNotUsed(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`select parley_mail.alter_object('receive connector', 'inbound',
		'{"tls": "OPPORTUNISTIC", "certificate_file": "/nowhere/cert.pem", "certificate_key_file": "/nowhere/key.pem"}')`)
	log := &logtest.Log{}
	h.logger = log.Logger(slog.LevelInfo)
	h.start()
	h.await("that it is left out", func() bool { return strings.Contains(log.String(), "/nowhere/cert.pem") })
	h.exec(`select parley_mail.send('ann@example.org', array['ann@example.org'], subject => 'x', text => 'x')`)
	h.await("the mail", func() bool { return len(h.inbox()) == 1 })
	if h.listens() {
		t.Error("a connector without its certificate is listened on")
	}
}
