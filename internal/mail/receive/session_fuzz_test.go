package receive_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/message"
)

// Each line that a peer gets is a reply, whatever it sends, and each message that is taken has a usable envelope and no bare line end.
func FuzzSession(f *testing.F) {
	begin := "EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<bob@example.com>\r\n"
	for _, text := range []string{
		begin + "DATA\r\nA: b\r\n\r\nc\r\n.\r\nQUIT\r\n", begin + "BDAT 4\r\na\r\n.BDAT 2 LAST\r\n\r\nRSET\r\n", begin + "DATA\r\nx\n.\nMAIL FROM:<c@d>\r\n.\r\n",
		"HELO x\r\nMAIL FROM:<> SIZE=1 BODY=8BITMIME RET=HDRS ENVID=a+2Bb\r\nRCPT TO:<\"a b\"@example.com> NOTIFY=NEVER ORCPT=rfc822;x+0Dy\r\n",
		"EHLO [1.2.3.4]\r\nAUTH PLAIN AGFubgBzZWNyZXQ=\r\nAUTH LOGIN\r\n*\r\n", "STARTTLS\r\nEHLO x\r\n", "XCLIENT NAME=x ADDR=1.2.3.4\r\n", "BDAT -1\r\n\x00\xff\r\n",
	} {
		f.Add([]byte(text))
	}
	fixture := start(f, nil, internet())
	f.Fuzz(func(t *testing.T, text []byte) {
		conn, err := (&net.Dialer{Timeout: patience}).DialContext(t.Context(), "tcp", fixture.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		before := len(fixture.store.all())
		go func() {
			_, _ = conn.Write(text)
			_ = conn.(*net.TCPConn).CloseWrite()
		}()
		replies, err := io.ReadAll(conn)
		if err != nil && !strings.Contains(err.Error(), "reset") {
			t.Fatalf("%q: %v", text, err)
		}
		for line := range bytes.SplitSeq(bytes.TrimSuffix(replies, []byte("\r\n")), []byte("\r\n")) {
			if len(line) < 4 || line[0] < '2' || line[0] > '5' || line[3] != ' ' && line[3] != '-' || bytes.ContainsAny(line, "\r\n\x00") {
				if !bytes.HasPrefix(text, []byte("\x16")) && err == nil { // not an end in the midst of TLS
					t.Errorf("%q was answered %q", text, replies)
				}
			}
		}
		for _, taken := range fixture.store.all()[before:] {
			header, length, isComplete := message.ParseHeader([]byte(taken.text))
			if !isComplete || header.HasBareLineEnd() || strings.ContainsAny(strings.ReplaceAll(taken.text[length:], "\r\n", ""), "\r\n") {
				t.Errorf("%q was taken as %q", text, taken.text)
			}
			for _, recipient := range taken.envelope.Recipients {
				if _, err := message.ParseAddress(recipient.Address); err != nil {
					t.Errorf("%q was taken for %q", text, recipient.Address)
				}
				if strings.ContainsAny(recipient.Original+recipient.Notify+taken.envelope.EnvelopeID+taken.envelope.Helo, "\r\n\x00") {
					t.Errorf("%q was taken with %+v", text, taken.envelope)
				}
			}
		}
	})
}
