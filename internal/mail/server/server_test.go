package server_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	netsmtp "net/smtp"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/server"
	"github.com/parley-broker/parley/parleytest"
)

// relay is a host on loopback that takes mail, and refuses recipients whose name begins with "no". It closes the connection instead of
// answering to a message for one whose name begins with "mute".
type relay struct {
	// secured is how it speaks TLS where it does.
	secured *tls.Config

	mu       sync.Mutex
	messages []string
	paths    []string // sender and recipient of each RCPT
}

func (r *relay) NewSession(conn *smtp.Conn) (smtp.Session, error) {
	return &session{relay: r, conn: conn}, nil
}

type session struct {
	relay *relay
	conn  *smtp.Conn
	from  string
	to    []string
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error { s.from = from; return nil }
func (s *session) Reset()                                      { s.to = nil }
func (s *session) Logout() error                               { return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.relay.mu.Lock()
	s.relay.paths = append(s.relay.paths, s.from+" "+to)
	s.relay.mu.Unlock()
	if strings.HasPrefix(to, "no") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	s.to = append(s.to, to)
	return nil
}

func (s *session) Data(body io.Reader) error {
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	s.relay.messages = append(s.relay.messages, strings.Join(s.to, ",")+"\n"+string(content))
	if strings.HasPrefix(s.to[0], "mute") {
		return s.conn.Close()
	}
	return nil
}

func (r *relay) serve(t *testing.T) string {
	t.Helper()
	listener := listen(t)
	host := smtp.NewServer(r)
	host.Domain, host.ErrorLog, host.TLSConfig = "relay.example", discardLog{}, r.secured
	var serving sync.WaitGroup
	serving.Go(func() { _ = host.Serve(listener) })
	t.Cleanup(func() { _ = host.Close(); serving.Wait() })
	return listener.Addr().String()
}

type discardLog struct{}

func (discardLog) Printf(string, ...any) {}
func (discardLog) Println(...any)        {}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// hub is a mail server with its database.
type hub struct {
	*testing.T
	pool    *pgxpool.Pool
	relay   *relay
	address string
	mailbox string
	logger  *slog.Logger
	servers []string // name servers
	folders []string // that the daemon may use
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{
		T: t, pool: parleytest.Database(t), relay: &relay{}, mailbox: t.TempDir(), logger: slog.New(slog.DiscardHandler), servers: []string{"127.0.0.1:1"},
		folders: []string{os.TempDir()},
	}
	free := listen(t)
	h.address = free.Addr().String()
	relayHost, relayPort, err := net.SplitHostPort(h.relay.serve(t))
	if err != nil {
		t.Fatal(err)
	}
	h.exec(`create table public.orders (sender text, subject text)`)
	h.exec(`select parley_mail.apply($1::jsonb)`, fmt.Sprintf(`{
		"organization": {"organization": {"default_domain": "example.org", "fqdn": "hub.example.org", "dsn_window": 2}},
		"accepted domain": {"example.org": {}},
		"mailbox store": {"local": {"driver": "MAILDIR", "address": %q}},
		"mailbox": {"ann@example.org": {"store": "local"}},
		"service binding": {"orders": {"pattern": "orders@example.org", "table": "public.orders"}},
		"receive connector": {"inbound": {"usage": "INTERNET", "bindings": [%q], "remote_ranges": ["127.0.0.0/8"], "tls": "OFF"}},
		"send connector": {"outbound": {"address_spaces": [{"pattern": "*"}, {"pattern": "c.example.com"}], "routing": "SMART_HOST", "tls": "OFF",
			"smart_hosts": [{"host": %q, "port": %s}]}}
	}`, h.mailbox+"/{local}", h.address, "["+relayHost+"]", relayPort))
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hub) exec(statement string, arguments ...any) {
	h.Helper()
	if _, err := h.pool.Exec(h.Context(), statement, arguments...); err != nil {
		h.Fatalf("%s: %v", statement, err)
	}
}

// start runs a daemon until the test ends, or stop is called.
func (h *hub) start() (stop func()) {
	h.Helper()
	return h.run(server.Config{NameServers: h.servers, Logger: h.logger})
}

// run runs a daemon as start does, with a configuration of its own.
func (h *hub) run(config server.Config) (stop func()) {
	h.Helper()
	config.Pool, config.SpoolFolder, config.Folders = h.pool, h.TempDir(), h.folders
	config.Logger = cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	s, err := server.New(config)
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
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			h.Errorf("the server ended with %v", err)
		}
	})
	h.Cleanup(stop)
	return stop
}

// await waits until something is there, and otherwise fails with what waits.
func (h *hub) await(what string, is func() bool) {
	h.Helper()
	isThere := false
	defer func() {
		if !isThere {
			h.Logf("%s did not come; lanes: %s", what, h.text(`select coalesce(jsonb_agg(to_jsonb(l))::text, '') from parley_store.lanes as l`))
		}
	}()
	parleytest.Until(h, what, is)
	isThere = true
}

// listens is whether a daemon takes connections.
func (h *hub) listens() bool {
	return mailtest.IsListening(h.Context(), h.address)
}

func (h *hub) text(query string) (text string) {
	h.Helper()
	if err := h.pool.QueryRow(h.Context(), query).Scan(&text); err != nil {
		h.Fatal(err)
	}
	return text
}

// inbox are the messages that the mailbox of ann holds, with the line ends that they had on the way.
func (h *hub) inbox() (messages []string) {
	h.Helper()
	found, err := filepath.Glob(filepath.Join(h.mailbox, "ann", "new", "*"))
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

func (h *hub) relayed() []string {
	h.relay.mu.Lock()
	defer h.relay.mu.Unlock()
	return append([]string(nil), h.relay.messages...)
}

func (h *hub) empty() bool {
	return h.text(`select (select count(*) from parley_mail._p_message) || ' ' || (select count(*) from parley_mail._p_recipient) || ' '
		|| (select count(*) from parley_store.work_items) || ' ' || (select count(*) from parley_mail._p_report)`) == "0 0 0 0"
}

func TestMailFromOutsideComesIntoTheMailbox(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.start()
	letter := "From: bob@b.example\r\nTo: ann@example.org\r\nSubject: hello\r\n\r\n..dots\r\nbody\r\n"
	large := "From: bob@b.example\r\nTo: ann@example.org\r\nSubject: large\r\n\r\n" + strings.Repeat(strings.Repeat("x", 70)+"\r\n", 60_000)
	h.await("the listener", h.listens)
	for _, text := range []string{letter, large} {
		if err := netsmtp.SendMail(h.address, nil, "bob@b.example", []string{"ann@example.org"}, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	h.await("the mail", func() bool { return len(h.inbox()) == 2 })
	for _, message := range h.inbox() {
		if !strings.HasSuffix(message, letter) && !strings.HasSuffix(message, large) {
			t.Errorf("arrived: %.400q", message)
		}
		if !strings.Contains(message, "Return-Path: <bob@b.example>\r\n") || !strings.Contains(message, "Received: from") {
			t.Errorf("the header is %.600q", message)
		}
	}
	// A message in the mailbox is recorded a moment later.
	h.await("the latencies", func() bool {
		return h.text(`select coalesce(string_agg(distinct (l.receive_ms is not null and l.categorize_ms + l.queue_ms + l.transfer_ms > 0
			and l.total_ms between l.receive_ms and 120000)::text, ' '), '') from parley_mail.latencies as l`) == "true"
	})
	// A host that got no reply sends it again. The mailbox's messages are known when their outcome is recorded.
	for range 2 {
		if err := netsmtp.SendMail(h.address, nil, "bob@b.example", []string{"ann@example.org"}, []byte("Message-ID: <1@b.example>\r\n"+letter)); err != nil {
			t.Fatal(err)
		}
		h.await("the mail", func() bool { return len(h.inbox()) == 3 && h.empty() })
	}
	h.await("what says that it is there", func() bool {
		return h.text(`select count(*)::text from parley_mail.tracking where event_id = 'DUPLICATEDELIVER'`) == "1"
	})
	if err := netsmtp.SendMail(h.address, nil, "bob@b.example", []string{"else@c.example"}, []byte(letter)); err == nil ||
		!strings.Contains(err.Error(), "550") {
		t.Errorf("relaying for an outsider: %v", err)
	}
	h.await("the end", h.empty)
}

func TestMailOfATransactionLeavesWithItsCommit(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.start()
	h.exec(`do $$ begin
		begin
			perform parley_mail.send('ann@example.org', array['x@c.example'], subject => 'rolled back', text => 'no');
			raise exception 'no order';
		exception when raise_exception then null;
		end;
		perform parley_mail.send('ann@example.org', array['x@c.example', 'y@d.example'], subject => 'confirmed', text => 'yes');
	end $$`)
	h.await("the mail", func() bool { return len(h.relayed()) > 0 })
	h.await("the end", h.empty)
	relayed := strings.Join(h.relayed(), "\n")
	if strings.Contains(relayed, "rolled back") || strings.Count(relayed, "Subject: confirmed") != 1 {
		t.Errorf("relayed: %q", relayed)
	}
	if !strings.HasPrefix(relayed, "x@c.example,y@d.example\n") {
		t.Errorf("recipients of one next hop do not travel together: %.100q", relayed)
	}
}

func TestSenderLearnsOfWhatCannotBeDelivered(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.start()
	h.exec(`select parley_mail.send('ann@example.org', array['nobody@c.example', 'x@c.example', 'absent@example.org'], subject => 'hello', text => 'hello')`)
	h.await("the reports", func() bool {
		all := strings.Join(h.inbox(), "\n")
		return strings.Contains(all, "nobody@c.example") && strings.Contains(all, "absent@example.org")
	})
	for _, wanted := range []string{
		"Return-Path: <>\r\n", "Content-Type: multipart/report", "Final-Recipient: rfc822; nobody@c.example", "550 5.1.1 no such user",
		"Final-Recipient: rfc822; absent@example.org", "Subject: hello", "Action: failed",
	} {
		if all := strings.Join(h.inbox(), "\n"); !strings.Contains(all, wanted) {
			t.Errorf("the reports do not have %q: %s", wanted, all)
		}
	}
	h.await("the end", h.empty)
}

func TestMailWaitsForAHostThatIsAwayAndForADaemon(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	stop := h.start()
	stop()
	h.exec(`select parley_mail.send('ann@example.org', array['x@c.example'], subject => 'later', text => 'later')`)
	h.start()
	h.await("the mail", func() bool { return len(h.relayed()) == 1 })
	h.await("the end", h.empty)
}

func TestMailForATableIsARowOnce(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.start()
	h.exec(`select parley_mail.send('ann@example.org', array['orders@example.org'], subject => 'seven', text => 'seven')`)
	h.await("the row", func() bool { return h.text(`select count(*)::text from public.orders`) != "0" })
	h.await("the end", h.empty)
	if got := h.text(`select string_agg(sender || ' ' || subject, ', ') from public.orders`); got != "ann@example.org seven" {
		t.Errorf("rows: %s", got)
	}
}

func TestMailOfADaemonThatWasKilledIsAnothersWhenTheLeaseIsOver(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`select parley_mail.send('ann@example.org', array['x@c.example'], subject => 'hello', text => 'hello')`)
	h.exec(`select parley_mail._p_categorize()`)
	h.await("the claim", func() bool {
		return h.text(`select count(*)::text from parley_mail._p_claim(10, 10, '1 minute', 'killed')`) == "1"
	})
	h.start()
	h.exec(`update parley_store._p_lease set until = now() - interval '1 second'`)
	h.await("the mail", func() bool { return len(h.relayed()) == 1 })
	h.await("the end", h.empty)
}

func TestRightsOfPeersAreThoseOfTheirGroup(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`select parley_mail.alter_object('permission group', 'Anonymous', '{"rights": ["ACCEPT_ROUTING_HEADERS"]}')`)
	h.start()
	h.await("the listener", h.listens)
	err := netsmtp.SendMail(h.address, nil, "bob@b.example", []string{"ann@example.org"}, []byte("Subject: x\r\n\r\nx\r\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "5") {
		t.Errorf("a peer without the right to submit: %v", err)
	}
}
