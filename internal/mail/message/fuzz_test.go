package message_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/mail/message"
)

// The envelope of any message has only addresses that can stand in a command.
func FuzzAddressees(f *testing.F) {
	for _, text := range []string{
		"From: Ann <a@b>\r\nTo: c@d, \"e, f\" <g@h>\r\n\r\n", "Sender: a@b\r\nFrom: c@d, e@f\r\nTo: friends: g@h, i@j;\r\nBcc: k@l\r\n\r\n",
		"From: =?utf-8?q?=0d=0aX:?= <a@b>\r\nTo: \"a\\\"b\"@c\r\n\r\n", "From: <>\r\nTo: undisclosed-recipients:;\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		header, _, _ := message.ParseHeader(text)
		sender, recipients, err := header.Addressees(10)
		if err != nil {
			return
		}
		if len(recipients) == 0 || len(recipients) > 10 {
			t.Errorf("%q has %d recipients", text, len(recipients))
		}
		for _, address := range append(recipients, sender) {
			again, rest, err := message.ParsePath("<" + address.String() + ">")
			if err != nil || rest != "" || again != address {
				t.Errorf("%q has the address %q, which is read as %q: %v", text, address, again, err)
			}
		}
		submitted := header.Submitted("mx.example.com", nil, time.Unix(1e9, 0))
		if len(submitted.All("Bcc")) > 0 || len(submitted.All("Message-Id")) == 0 || len(submitted.All("Date")) == 0 {
			t.Errorf("%q was completed to %q", text, submitted.Bytes())
		}
		_ = message.PriorityOf(header)
	})
}

// However a file is cut into pieces, its lines end with CRLF alone.
func FuzzLineEnds(f *testing.F) {
	f.Add([]byte("a\nb\r\nc\rd\r\r\n\n"), 3)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		convert := func(size int) string {
			var out bytes.Buffer
			ends := message.LineEnds{Write: func(p []byte) { out.Write(p) }}
			for rest := text; len(rest) > 0; {
				n := min(max(1, size), len(rest))
				ends.Add(rest[:n])
				rest = rest[n:]
			}
			return out.String()
		}
		whole, pieces := convert(len(text)), convert(size)
		if whole != pieces {
			t.Errorf("%q became %q whole and %q in pieces", text, whole, pieces)
		}
		want := strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n").Replace(string(text))
		if whole != want {
			t.Errorf("%q became %q, want %q", text, whole, want)
		}
	})
}

// A value that is read out of a parameter can stand in a field and in a database, however it was written.
func FuzzXText(f *testing.F) {
	for _, text := range []string{"a+2Bb", "rfc822;a+20b@c", `utf-8;b\x{FC}c\x{10FFFF}@d`, "a@b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		decoded, isValid := message.DecodeXText(text)
		if isValid && (len(decoded) > len(text) || strings.ContainsAny(decoded, "\r\n\x00")) {
			t.Errorf("%q: %q", text, decoded)
		}
		if strict, err := message.ParseXText(text); err == nil && (strict != decoded || !isValid) {
			t.Errorf("%q: %q and %q", text, strict, decoded)
		}
		if original, err := message.ParseOriginalRecipient(text); err == nil && (strings.ContainsAny(original, "\r\n\x00") || utf8.ValidString(text) && !utf8.ValidString(original)) {
			t.Errorf("%q: %q", text, original)
		}
	})
}
