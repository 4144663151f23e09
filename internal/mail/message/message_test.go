package message_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/mail/message"
)

func TestPathsAreReadStrictly(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"<ann@example.com>": "ann@example.com", "<>": "", "<@a,@b:ann@example.com>": "ann@example.com", `<"a b"@example.com>`: `"a b"@example.com`,
		`<"ann"@example.com>`: "ann@example.com", `<"a\"@b"@[192.0.2.1]>`: `"a\"@b"@[192.0.2.1]`, "<ä@bücher.example>": "ä@bücher.example",
		"<a@[IPv6:2001:db8::1]>": "a@[IPv6:2001:db8::1]", "<Postmaster>": "Postmaster", "<a.@x>": "a.@x", "<a@x_y.example>": "a@x_y.example",
		`<"a@b"@c>`: `"a@b"@c`,
	} {
		address, rest, err := message.ParsePath(path + " SIZE=1")
		if err != nil || address.String() != want || rest != " SIZE=1" {
			t.Errorf("%s: got %q, rest %q: %v", path, address, rest, err)
		}
	}
	for _, path := range []string{
		"", "ann@example.com", "<ann", "<ann>", "<@b>", "<a@>", "<a@b@c>", "<a b@c>", "<a\x00@b>", "<a@b\r\n>", `<"a"b@c>`, `<"a@c>`, `<""@c>`, "<a@-b>", "<a@b->", "<a@b..c>",
		"<a@.b>", "<a@[1.2.3]>", "<a@[IPv6:1.2.3.4]>", "<@a ann@b>", "<a@b(c)>", "<" + strings.Repeat("a", 400) + "@b>", "<a@" + strings.Repeat("a.", 200) + "b>",
		"<a@" + strings.Repeat("a", 64) + ">", "<\xff@b>", "<a@\xff>", `<"a` + "\n" + `"@b>`, "<a<b@c>", "<a@b c>",
	} {
		if address, rest, err := message.ParsePath(path); err == nil && rest == "" {
			t.Errorf("%q was read as %q", path, address)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, path := range []string{"<a@b>", `<"a\"b"@c> X=1`, "<@a:b@c>", "<>", "<postmaster>", "<ä@ö>"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		address, rest, err := message.ParsePath(path)
		if err != nil {
			return
		}
		again, restAgain, err := message.ParsePath("<" + address.String() + ">")
		if err != nil || again != address || restAgain != "" || !strings.HasSuffix(path, rest) {
			t.Errorf("%q was read as %q, and that as %q: %v", path, address, again, err)
		}
		if text := address.String(); strings.ContainsAny(text, "\r\n\x00") || !utf8.ValidString(text) {
			t.Errorf("%q was read as %q", path, text)
		}
	})
}

func TestHeaderEndsWhereItEnds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		names      string
		length     int
		isComplete bool
	}{
		"A: 1\r\nB : 2\r\n 3\r\n\r\nbody\r\n": {"A,B", 19, true},
		"\r\nbody":                            {"", 2, true},
		"A: 1\r\nno field\r\nC: 3\r\n\r\n":    {"A", 6, true},
		" folded\r\nA: 1\r\n\r\n":             {"", 0, true},
		"A: 1\r\nB":                           {"A", 6, false},
		"A: 1\nB: 2\r\n\r\n":                  {"A", 13, true},
		": x\r\n\r\n":                         {"", 0, true},
		"A b: x\r\n\r\n":                      {"", 0, true},
		"":                                    {"", 0, false},
	} {
		header, length, isComplete := message.ParseHeader([]byte(text))
		var names []string
		for _, field := range header {
			names = append(names, field.Name)
		}
		if strings.Join(names, ",") != want.names || length != want.length || isComplete != want.isComplete {
			t.Errorf("%q: %q, %d, %v", text, names, length, isComplete)
		}
	}
}

func FuzzHeader(f *testing.F) {
	for _, text := range []string{"A: 1\r\nB : 2\r\n 3\r\n\r\nbody", "Received: x\r\n\r\n", "A: 1\nB: 2\r\nbad\r\n", "X-Parley-Organization-X : 1\r\n\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		header, length, isComplete := message.ParseHeader(text)
		if length > len(text) {
			t.Fatalf("%d of %d bytes were read", length, len(text))
		}
		written := header.Bytes()
		if isComplete && !bytes.HasPrefix(text, written[:len(written)-2]) {
			t.Errorf("%q was written as %q", text, written)
		}
		again, lengthAgain, isCompleteAgain := message.ParseHeader(written)
		if !isCompleteAgain || lengthAgain != len(written) || len(again) != len(header) {
			t.Errorf("what was written is not what was read: %q", written)
		}
		for _, field := range header {
			if value := field.Value(); !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
				t.Errorf("the value is %q", value)
			}
		}
		for _, field := range header.Firewall(message.Trusted{}) {
			if name := strings.ToLower(field.Name); strings.HasPrefix(name, "x-parley-organization-") || strings.HasPrefix(name, "resent-") || name == "received" {
				t.Errorf("%q came through the firewall", field.Name)
			}
		}
		_, _ = header.Hops(), header.HopsBy(func(string) bool { return true })
		_ = header.Completed("x", time.Time{})
	})
}

func TestFirewallTakesOutWhatTheSenderMayNotSet(t *testing.T) {
	t.Parallel()
	header, _, _ := message.ParseHeader([]byte("Received: a\r\nX-PARLEY-organization-scl : -1\r\nX-Parley-Forest-B: c\r\nResent-To: d\r\nReceived-SPF: e\r\nX-Parley-Other: f\r\n\r\n"))
	names := func(trusted message.Trusted) (names []string) {
		for _, field := range header.Firewall(trusted) {
			names = append(names, field.Name)
		}
		return names
	}
	if got := names(message.Trusted{}); !slices.Equal(got, []string{"Received-SPF", "X-Parley-Other"}) {
		t.Errorf("kept were %q", got)
	}
	if got := names(message.Trusted{Routing: true, Organization: true, Forest: true}); len(got) != 6 {
		t.Errorf("kept were %q", got)
	}
}

func TestTraceCannotBeBrokenByWhatAPeerSays(t *testing.T) {
	t.Parallel()
	field := message.Trace{
		Helo: "a)\r\nX: y (", PeerName: "b;c", Peer: netip.MustParseAddr("2001:db8::1"), By: "mx.example.com", With: "ESMTP", ID: "1", For: "x@y\r\nZ: 1", At: time.Unix(0, 0).UTC(),
	}.Field()
	want := "Received: from aX: y  (bc [IPv6:2001:db8::1])\r\n\tby mx.example.com with ESMTP\r\n\tid 1 for <x@y  Z: 1>;\r\n\tThu, 01 Jan 1970 00:00:00 +0000\r\n"
	if string(field.Raw) != want {
		t.Errorf("the field is %q", field.Raw)
	}
	header, _, isComplete := message.ParseHeader(append(field.Raw, '\r', '\n'))
	if !isComplete || len(header) != 1 || header.HopsBy(func(name string) bool { return name == "mx.example.com" }) != 1 ||
		header.HopsBy(func(name string) bool { return name == "mx" }) != 0 {
		t.Errorf("it reads as %q", header)
	}
	if got := string(message.NewField("A", "b\r\nC: d\r\n e\x00").Raw); got != "A: b  C: d\r\n e \r\n" {
		t.Errorf("the field is %q", got)
	}
}

func TestSubmissionCompletesAHeader(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0).UTC()
	for text, isKept := range map[string]bool{
		"Message-Id: <a@b>\r\nDate: Sun, 09 Sep 2001 01:46:40 +0000\r\n\r\n": true,
		"Message-Id: a@b\r\nDate: yesterday\r\n\r\n":                         false,
		"Message-Id: <a b@c>\r\n\r\n":                                        false,
		"\r\n":                                                               false,
	} {
		header, _, _ := message.ParseHeader([]byte(text))
		done := header.Completed("mx.example.com", now)
		if got := string(done.Bytes()) == text; got != isKept {
			t.Errorf("%q became %q", text, done.Bytes())
		}
		if len(done.All("Message-Id")) != 1 || len(done.All("Date")) != 1 || done.Value("Date") != "Sun, 09 Sep 2001 01:46:40 +0000" {
			t.Errorf("%q became %q", text, done.Bytes())
		}
	}
}

func TestNetworkMessageIDsAreUUIDsInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	last := ""
	for i := range 1000 {
		id := message.NewNetworkMessageID(time.UnixMilli(1_700_000_000_000 + int64(i)*7919))
		if !form.MatchString(id) || id <= last {
			t.Fatalf("%s follows %s", id, last)
		}
		last = id
	}
}

func TestPriorityIsReadFromAnyField(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]message.Priority{
		"": "normal", "Importance: High\r\n": "high", "X-Priority: 5 (lowest)\r\n": "low", "Priority: urgent\r\n": "high", "X-Priority: 1\r\nImportance: low\r\n": "low",
		"Priority: non-urgent\r\n": "low", "X-Priority: 3\r\n": "normal", "Importance:\r\n": "normal",
	} {
		header, _, _ := message.ParseHeader([]byte(text + "\r\n"))
		if got := message.PriorityOf(header); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Another parser may show a field that this one cannot read: a restriction on authors must see it.
func TestAuthorsThatCannotBeReadAreNoEmptyGroup(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ann@example.org\r\nFrom: Boss <boss@example.org>;": "refused", "Boss <boss@example.org>;": "refused", "ann@example.org\r\nFrom: boss@example.org": "ann@example.org boss@example.org",
		"nobody:;": "", "ann@example.org, nobody:;": "ann@example.org", "ann@example.org <boss@example.org>": "refused", `"ann@example.org" <boss..@example.org> (me)`: "boss..@example.org",
		"ann@example.org, Boss": "refused", "Boss <boss@example.org> <ann@example.org>": "refused", "Boss <boss>": "refused", "ann@example.org boss@example.org@": "refused",
	} {
		header, _, _ := message.ParseHeader([]byte("From: " + text + "\r\n\r\n"))
		authors, err := header.Authors()
		got := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(authors), "[]")), " ")
		if err != nil {
			got = "refused"
		}
		if got != want {
			t.Errorf("%q: the authors are %q, want %q: %v", text, got, want, err)
		}
	}
}
