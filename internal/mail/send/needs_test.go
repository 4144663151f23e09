package send_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
)

// The client's statement about a message does not count: 8BITMIME and SMTPUTF8 are asked for as far as the message needs them.
func TestHostThatKnowsNeitherExtensionGetsWhatNeedsNone(t *testing.T) {
	t.Parallel()
	const plain, header, body = "A: 1\r\n\r\nx\r\n", "A: \u00e4\r\n\r\nx\r\n", "A: 1\r\n\r\n\u00e4\r\n"
	for _, c := range []struct {
		name, text, to, want string
		converted            string // what arrives, where that is not as it was sent
		isEightBit, isUTF8   bool
		extensions           []string
	}{
		{name: "it was said without need", text: plain, isEightBit: true, isUTF8: true, want: "delivered 2.0.0"},
		{name: "the body needs it and nobody said so", text: body, want: "delivered 2.0.0", converted: "A: 1\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=C3=A4\r\n"},
		{name: "the body needs it and the client said so", text: body, isEightBit: true, want: "delivered 2.0.0", converted: "A: 1\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=C3=A4\r\n"},
		{name: "the header needs it and nobody said so", text: header, want: "delivered 2.0.0", converted: "A: =?utf-8?B?w6Q=?=\r\n\r\nx\r\n"},
		{name: "an address of the header needs it and nobody said so", text: "From: \u00e4@b.example\r\n\r\nx\r\n", want: "failed 5.6.9"},
		{name: "the host knows it", text: body, isEightBit: true, extensions: []string{"8BITMIME"}, want: "delivered 2.0.0", converted: body},
		{name: "a long line needs it", text: "A: 1\r\n\r\n" + strings.Repeat("x", 70_000) + "\u00e4\r\n", want: "delivered 2.0.0"},
		{name: "it cannot be converted", text: strings.Repeat("Content-Type: message/rfc822\r\n\r\n", 200) + "\u00e4\r\n", want: "failed 5.6.3"},
		{name: "the header needs it", text: header, isUTF8: true, extensions: []string{"8BITMIME"}, want: "failed 5.6.9"},
		{name: "only the body is beyond ASCII", text: body, isUTF8: true, extensions: []string{"8BITMIME"}, want: "delivered 2.0.0"},
		{name: "an address needs it and nobody said so", text: plain, to: "\u00e4@b.example", extensions: []string{"8BITMIME"}, want: "failed 5.6.7"},
		{name: "one of two needs it", text: plain, to: "\u00e4@b.example,a@b.example", isUTF8: true, extensions: []string{"8BITMIME"}, want: "failed 5.6.7, delivered 2.0.0"},
		{name: "one of two needs it, as does the header", text: header, to: "\u00e4@b.example,a@b.example", isUTF8: true, extensions: []string{"8BITMIME"}, want: "failed 5.6.9, failed 5.6.9"},
		{name: "an address that the host can take", text: plain, to: "\u00e4@b.example", extensions: []string{"8BITMIME", "SMTPUTF8"}, want: "delivered 2.0.0"},
		{name: "the header needs it and the host knows that alone", text: header, isUTF8: true, extensions: []string{"SMTPUTF8"}, want: "delivered 2.0.0", converted: header},
		{name: "the header needs it, nobody said so, and the host knows that alone", text: header, extensions: []string{"SMTPUTF8"}, want: "delivered 2.0.0", converted: "A: =?utf-8?B?w6Q=?=\r\n\r\nx\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := &host{extensions: c.extensions}
			connection, err := open(t, h, nil)
			if err != nil {
				t.Fatal(err)
			}
			message := letter(c.text, strings.Split(cmp.Or(c.to, "a@b.example"), ",")...)
			message.EightBit, message.UTF8 = c.isEightBit, c.isUTF8
			if got := outcome(connection.Send(context.Background(), message)); got != c.want {
				t.Errorf("result is %s, want %s", got, c.want)
			}
			messages, lines := h.received()
			if len(messages) != min(strings.Count(c.want, "delivered"), 1) {
				t.Errorf("%d messages arrived", len(messages))
			}
			if c.converted != "" && (len(messages) != 1 || messages[0] != c.converted) {
				t.Errorf("what arrived is %q, want %q", messages, c.converted)
			}
			hasUTF8 := slices.ContainsFunc(lines, func(line string) bool { return strings.HasSuffix(line, " SMTPUTF8") })
			if hasUTF8 != (slices.Contains(c.extensions, "SMTPUTF8") && (c.to != "" || c.isUTF8)) {
				t.Errorf("the host was asked %q", lines)
			}
		})
	}
}
