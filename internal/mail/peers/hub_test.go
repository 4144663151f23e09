package peers_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/server"
	"github.com/parley-broker/parley/parleytest"
)

// object is settings as they are written in a configuration.
type object map[string]any

// hub is mail transport of example.org on loopback, with its database.
type hub struct {
	*testing.T
	pool *pgxpool.Pool
	// inbound takes mail from anybody for example.org, submission that of users, who authenticate.
	inbound, submission string
	// mailboxes has a Maildir for each user.
	mailboxes string
}

// newHub configures mail transport and runs it until the test ends. Mail for the domain of a peer goes to its address.
func newHub(t *testing.T, peers map[string]string, more map[string]map[string]object) *hub {
	t.Helper()
	h := &hub{T: t, pool: parleytest.Database(t), inbound: mailtest.FreeAddress(t), submission: mailtest.FreeAddress(t), mailboxes: t.TempDir()}
	connectors := map[string]object{}
	for domain, address := range peers {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		connectors[domain] = object{
			"address_spaces": []object{{"pattern": domain}}, "routing": "SMART_HOST", "tls": "OPPORTUNISTIC",
			"smart_hosts": []object{{"host": "[" + host + "]", "port": json.Number(port)}},
		}
	}
	configuration := map[string]map[string]object{
		"organization":    {"organization": {"default_domain": "example.org", "fqdn": "hub.example.org", "dsn_window": 2}},
		"accepted domain": {"example.org": {}},
		"mailbox store":   {"local": {"driver": "MAILDIR", "address": h.mailboxes + "/{local}"}},
		"mailbox":         {"ann@example.org": {"store": "local"}, "bob@example.org": {"store": "local"}},
		"credential":      {"ann": {"password": "secret"}},
		"send connector":  connectors,
		"receive connector": {
			"inbound": {"usage": "INTERNET", "bindings": h.inbound, "remote_ranges": "127.0.0.0/8", "tls": "OFF", "tarpit": 0},
			"submission": {
				"usage": "CLIENT", "bindings": h.submission, "remote_ranges": "127.0.0.0/8", "tls": "OFF", "tarpit": 0,
				"authentication_without_tls": true, "authentication": []string{"PLAIN", "LOGIN", "SCRAM-SHA-256"},
			},
		},
	}
	for kind, objects := range more {
		for name, settings := range objects {
			if configuration[kind] == nil {
				configuration[kind] = map[string]object{}
			}
			if configuration[kind][name] == nil {
				configuration[kind][name] = object{}
			}
			maps.Copy(configuration[kind][name], settings)
		}
	}
	text, err := json.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	h.exec(`select parley_mail.apply($1::jsonb)`, string(text))
	h.start()
	h.await("the listener", func() bool {
		return mailtest.IsListening(h.Context(), h.inbound) && mailtest.IsListening(h.Context(), h.submission)
	})
	return h
}

func (h *hub) start() {
	h.Helper()
	s, err := server.New(server.Config{Pool: h.pool, SpoolFolder: h.TempDir(), NameServers: []string{"127.0.0.1:1"}, Folders: []string{os.TempDir()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		h.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.Context()))
	if err := s.Prepare(ctx); err != nil {
		cancel()
		h.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	h.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			h.Errorf("the server ended with %v", err)
		}
		s.Close()
	})
}

func (h *hub) exec(statement string, arguments ...any) {
	h.Helper()
	if _, err := h.pool.Exec(h.Context(), statement, arguments...); err != nil {
		h.Fatalf("%s: %v", statement, err)
	}
}

func (h *hub) text(query string) (text string) {
	h.Helper()
	if err := h.pool.QueryRow(h.Context(), query).Scan(&text); err != nil {
		h.Fatal(err)
	}
	return text
}

// await waits until something is there, and otherwise fails with what waits.
func (h *hub) await(what string, is func() bool) {
	h.Helper()
	isThere := false
	defer func() {
		if !isThere {
			h.Logf("%s did not come; queues: %s; recipients: %s", what,
				h.text(`select coalesce(jsonb_agg(to_jsonb(q))::text, '') from parley_mail.queues as q`),
				h.text(`select coalesce(jsonb_agg(to_jsonb(w))::text, '') from parley_mail.waiting_recipients as w`))
		}
	}()
	parleytest.Until(h, what, is)
	isThere = true
}

// inbox are the messages that the mailbox of a user holds, with the line ends that they had on the way.
func (h *hub) inbox(user string) (messages []string) {
	h.Helper()
	found, err := filepath.Glob(filepath.Join(h.mailboxes, user, "new", "*"))
	if err != nil {
		h.Fatal(err)
	}
	for _, path := range found {
		content, err := os.ReadFile(path)
		if err != nil {
			h.Fatal(err)
		}
		messages = append(messages, strings.ReplaceAll(string(content), "\n", "\r\n"))
	}
	return messages
}

// awaitMessage waits for a message in the mailbox of a user that has all these parts.
func (h *hub) awaitMessage(user string, parts ...string) (message string) {
	h.Helper()
	h.await("a message for "+user+" with "+strings.Join(parts, ", "), func() bool {
		for _, message = range h.inbox(user) {
			hasAll := true
			for _, part := range parts {
				hasAll = hasAll && strings.Contains(message, part)
			}
			if hasAll {
				return true
			}
		}
		return false
	})
	return message
}

// awaitEmpty waits until nothing waits any more.
func (h *hub) awaitEmpty() {
	h.Helper()
	h.await("the end", func() bool {
		return h.text(`select (select count(*) from parley_mail._p_message) || ' ' || (select count(*) from parley_mail._p_recipient)`) == "0 0"
	})
}

// run starts a program of another and stops it when the test ends. Its output is logged where the test failed.
func run(t *testing.T, command *exec.Cmd) {
	t.Helper()
	output, ended := &logtest.Log{}, make(chan struct{})
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = command.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = command.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s printed: %s", command.Path, output.String())
		}
	})
}

// write writes a file of a configuration.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
