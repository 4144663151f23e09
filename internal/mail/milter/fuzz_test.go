package milter_test

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/milter"
	"github.com/parley-broker/parley/internal/mail/receive"
)

// packet is a packet of the protocol.
func packet(code byte, data string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(data)+1))) + string(code) + data
}

// negotiated is how a milter begins: version 6, all actions, nothing left out.
var negotiated = packet('O', "\x00\x00\x00\x06\x00\x00\x01\xff\x00\x00\x00\x00")

// A milter that answers anything at all leaves a message that can be sent, or a failure.
func FuzzMilter(f *testing.F) {
	goesOn := strings.Repeat(packet('c', ""), 9)
	for _, answers := range []string{
		negotiated + goesOn + packet('h', "X\x00y\r\nZ: 1\x00") + packet('m', "\x00\x00\x00\x01A\x00\x00") + packet('c', ""),
		negotiated + goesOn + packet('b', "a\rb\n.\n") + packet('q', "why\x00") + packet('+', "<x@y>\x00") + packet('-', "c@d\x00") + packet('a', ""),
		negotiated + goesOn + packet('e', "<>\x00") + packet('i', "\xff\xff\xff\xff:\x00\x00") + packet('p', "") + packet('d', ""),
		negotiated + packet('y', "550 5.7.1 no\r\nX\x00"), negotiated + packet('y', "2"), "\xff\xff\xff\xffO", packet('O', ""), negotiated + "\x00\x00\x00\x00",
	} {
		f.Add([]byte(answers))
	}
	listener, err := (&net.ListenConfig{}).Listen(f.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = listener.Close() })
	var answers atomic.Pointer[[]byte]
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Write(*answers.Load())
				_ = conn.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
	}()
	f.Fuzz(func(t *testing.T, text []byte) {
		answers.Store(&text)
		filter := milter.New("test", "tcp", listener.Addr().String(), 5*time.Second, milter.TempFail, slog.New(slog.DiscardHandler))
		session, err := filter.Session(t.Context())
		if err != nil {
			return
		}
		defer session.Close()
		e := exchange(t)
		defer e.Body.Close()
		for _, event := range whole {
			if verdict := session.Handle(context.Background(), event, e); verdict.Action != receive.Continue {
				if verdict.Reply != nil && (verdict.Reply.Code < 400 || verdict.Reply.Code > 599) {
					t.Errorf("the reply is %+v", verdict.Reply)
				}
				break
			}
		}
		body, err := io.ReadAll(e.Body.Tail())
		if err != nil {
			t.Fatal(err)
		}
		if pure := strings.ReplaceAll(string(body), "\r\n", ""); strings.ContainsAny(pure, "\r\n") || e.Header.HasBareLineEnd() {
			t.Errorf("header and body are %q and %q", e.Header.Bytes(), body)
		}
		addresses := e.Envelope.Sender
		for _, recipient := range e.Envelope.Recipients {
			addresses += recipient.Address
		}
		if strings.ContainsAny(addresses, "\r\n\x00") {
			t.Errorf("the envelope is %+v", e.Envelope)
		}
	})
}
