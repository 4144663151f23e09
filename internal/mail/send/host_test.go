package send_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/mail/send"
)

// host is a mail host on loopback that does what a test says.
type host struct {
	// extensions are offered in the reply to EHLO.
	extensions []string
	// answer replies to a command line; "" means the usual reply. "close" closes the connection.
	answer func(line string) string
	// lmtp is whether it replies to a message once for each recipient.
	lmtp bool
	// certificate is the certificate that it shows after STARTTLS; injected are the bytes that it sends behind its reply to STARTTLS.
	certificate *tls.Certificate
	injected    string
	// asks says how it asks for certificates; nil for not at all. isImplicit is whether TLS comes before its greeting.
	asks       *tls.Config
	isImplicit bool

	mu       sync.Mutex
	lines    []string
	messages []string
	sessions int
	shown    []string // the names of certificates
}

// serve answers connections until the test ends, and returns the address.
func (h *host) serve(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var sessions sync.WaitGroup
	sessions.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(t.Context(), func() { _ = conn.Close() })
			sessions.Go(func() {
				defer func() { stop(); _ = conn.Close() }()
				h.session(conn)
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); sessions.Wait() })
	return listener.Addr().String()
}

func (h *host) session(conn net.Conn) {
	h.mu.Lock()
	h.sessions++
	h.mu.Unlock()
	reader := bufio.NewReader(conn)
	say := func(text string) { _, _ = io.WriteString(conn, text+"\r\n") }
	secure := func() bool {
		secured := h.secured(conn)
		if secured == nil {
			return false
		}
		conn, reader = secured, bufio.NewReader(secured)
		return true
	}
	if h.isImplicit && !secure() {
		return
	}
	say("220 host.example ready")
	recipients := 0
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		h.mu.Lock()
		h.lines = append(h.lines, line)
		h.mu.Unlock()
		reply := ""
		if h.answer != nil {
			reply = h.answer(line)
		}
		verb, _, _ := strings.Cut(line, " ")
		switch {
		case reply == "close":
			return
		case reply != "" && !strings.HasPrefix(reply, "354"):
			say(reply)
		case verb == "EHLO" || verb == "LHLO":
			say(strings.Join(append([]string{"250-host.example"}, prefixed(h.extensions)...), "\r\n"))
		case verb == "STARTTLS":
			_, _ = io.WriteString(conn, "220 go ahead\r\n"+h.injected)
			if !secure() {
				return
			}
		case verb == "DATA":
			say("354 go ahead")
			message, ok := readMessage(reader)
			if !ok {
				return
			}
			h.mu.Lock()
			h.messages = append(h.messages, message)
			h.mu.Unlock()
			replies := 1
			if h.lmtp {
				replies = recipients
			}
			for n := range replies {
				reply := "250 2.0.0 taken"
				if h.answer != nil {
					if own := h.answer("." + string(rune('0'+n))); own != "" {
						reply = own
					}
				}
				if reply == "close" {
					return
				}
				say(reply)
			}
			recipients = 0
		case verb == "RCPT":
			recipients++
			say("250 2.1.5 ok")
		case verb == "QUIT":
			say("221 bye")
			return
		default:
			say("250 2.0.0 ok")
		}
	}
}

// secured puts TLS on a connection; nil when the handshake fails.
func (h *host) secured(conn net.Conn) net.Conn {
	configuration := new(tls.Config)
	if h.asks != nil {
		configuration = h.asks.Clone()
	}
	configuration.Certificates = []tls.Certificate{*h.certificate}
	secured := tls.Server(conn, configuration)
	if secured.HandshakeContext(context.Background()) != nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, shown := range secured.ConnectionState().PeerCertificates {
		h.shown = append(h.shown, shown.Subject.CommonName)
	}
	return secured
}

func prefixed(extensions []string) []string {
	lines := make([]string, len(extensions)+1)
	for i, extension := range extensions {
		lines[i] = "250-" + extension
	}
	lines[len(extensions)] = "250 HELP"
	return lines
}

// readMessage reads up to the line with one dot, as RFC 5321 section 4.5.2 says.
func readMessage(reader *bufio.Reader) (string, bool) {
	var message strings.Builder
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return "", false
		}
		if line == ".\r\n" {
			return message.String(), true
		}
		message.WriteString(strings.TrimPrefix(line, "."))
	}
}

func (h *host) received() (messages, lines []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.messages...), append([]string(nil), h.lines...)
}

// letter is a message to some recipients.
func letter(body string, recipients ...string) send.Message {
	message := send.Message{
		Sender: "from@a.example", Size: int64(len(body)),
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil },
	}
	for _, recipient := range recipients {
		message.Recipients = append(message.Recipients, send.Recipient{Address: recipient})
	}
	return message
}
