package parts_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"

	"github.com/parley-broker/parley/internal/mail/parts"
	"github.com/parley-broker/parley/internal/mail/parts/corpus"
)

// lines writes a message with the line ends of mail.
func lines(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

func read(t *testing.T, text string) *parts.Message {
	t.Helper()
	m, err := parts.Read(strings.NewReader(text), parts.Usual)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// outline describes a message in one line: state and problems, text and HTML, and each attachment.
func outline(m *parts.Message) string {
	var said []string
	said = append(said, m.Parsed.State)
	for _, p := range m.Parsed.Problems {
		said = append(said, strings.TrimPrefix(p.Part+":"+p.Problem, ":"))
	}
	show := func(kind string, text *string, part *parts.Part) {
		if text != nil {
			said = append(said, fmt.Sprintf("%s(%s)=%.60q", kind, part.Number, *text))
		}
	}
	show("text", m.Text, m.Parsed.Text)
	show("html", m.HTML, m.Parsed.HTML)
	for _, a := range m.Attachments {
		said = append(said, strings.TrimRight(fmt.Sprintf("%s %s %d %s %s", a.Number, a.Type, a.Size, a.Name, a.ContentID), " "))
	}
	return strings.Join(said, "; ")
}

const wholeHTML = `From: Ann <ann@a.example>
Subject: =?iso-8859-1?q?Gr=FC=DFe?=
Content-Type: multipart/mixed; boundary="out"

preamble
--out
Content-Type: multipart/alternative; boundary=in

--in
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

Gr=C3=BC=C3=9Fe =
und =3D
--in
Content-Type: multipart/related; boundary=rel

--rel
Content-Type: text/html

<img src="cid:logo">
--rel
Content-Type: image/png; name=logo.png
Content-ID: <logo>
Content-Disposition: inline
Content-Transfer-Encoding: base64

aGVsbG8=
--rel--
--in--

--out
Content-Type: application/pdf
Content-Disposition: attachment; filename*=utf-8''a%C3%A4.pdf
Content-Transfer-Encoding: base64

JVBERi0x
LjQK
--out
Content-Type: message/rfc822

Subject: inner
Content-Type: multipart/mixed; boundary=none

--none
--out--
epilogue
`

var readings = []struct{ name, text, want string }{
	{"a letter", "Subject: a\n\nHello,\nBob\n", `COMPLETE; text(1)="Hello,\nBob\n"`},
	{"text, HTML and attachments", wholeHTML, `COMPLETE; text(1.1)="Grüße und ="; html(1.2.1)="<img src=\"cid:logo\">"; 1.2.2 image/png 5 logo.png logo; ` +
		`2 application/pdf 9 aä.pdf; 3 message/rfc822 70`},
	{"HTML alone", "Content-Type: text/html; charset=windows-1252\n\n\x80", `COMPLETE; html(1)="€"`},
	{"an attachment alone", "Content-Type: application/zip\nContent-Transfer-Encoding: base64\n\naGk=\n", `COMPLETE; 1 application/zip 2`},
	{"a text with a name", "Content-Type: text/plain; name=a.txt\n\nx", `COMPLETE; text(1)="x"`},
	{"a text that is attached", "Content-Type: text/plain; name=a.txt\nContent-Disposition: attachment\n\nx", `COMPLETE; 1 text/plain 1 a.txt`},
	{
		"blanks at line ends", "Content-Transfer-Encoding: quoted-printable\n\na" + strings.Repeat(" ", 255) + "\nb" + strings.Repeat("\t", 256) + "\nc =  \n = \td \r \n=  ",
		`COMPLETE; text(1)="a\nb` + strings.Repeat(`\t`, 57) + `"`,
	},
	{"the second text is an attachment", "Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--b\n\ntwo\n--b--", `COMPLETE; text(1)="one"; 2 text/plain 3`},
	{"the parts of a digest are messages", "Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: x\n\n--b--", `COMPLETE; 1 message/rfc822 12`},
	{"no header", "\nbody", `COMPLETE; text(1)="body"`},
	{"no body", "Subject: x\n", `COMPLETE; text(1)=""`},
	{"nothing", "", `COMPLETE; text(1)=""`},
	{"a header that ends in the middle", "Subject: x\nno field\n\nbody", `COMPLETE; text(1)="no field\n\nbody"`},
	// Deviations from the standards.
	{"no end", "Content-Type: multipart/mixed; boundary=b\n\n--b\n\none", `DAMAGED; UNCLOSED; text(1)="one"`},
	{
		"an inner part without an end", "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\none\n--b\n\ntwo\n--b--",
		`DAMAGED; 1:UNCLOSED; text(1.1)="one"; 2 text/plain 3`,
	},
	{"no boundary", "Content-Type: multipart/mixed\n\n--b\n\none", `DAMAGED; MISSING_BOUNDARY; 1 multipart/mixed 10`},
	{"no part", "Content-Type: multipart/mixed; boundary=b\n\nnothing", `DAMAGED; UNCLOSED`},
	{
		"an inner boundary that the outer one begins with", "Content-Type: multipart/mixed; boundary=bb\n\n--bb\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--bb--",
		`DAMAGED; 1:UNCLOSED; text(1.1)="one"`,
	},
	{"a boundary within a header", "Content-Type: multipart/mixed; boundary=b\n\n--b\nX: y\n--b--", `COMPLETE; text(1)=""`},
	{
		"the same boundary twice", "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--b--\n--b--",
		`COMPLETE; text(1.1)="one"`,
	},
	{"an unknown charset", "Content-Type: text/plain; charset=klingon\n\na\xffb", `DAMAGED; 1:UNKNOWN_CHARSET; text(1)="a�b"`},
	{"a charset that browsers do not read", "Content-Type: text/plain; charset=iso-2022-kr\n\na", `COMPLETE; text(1)="a"`},
	{"bytes that are no characters", "Content-Type: text/plain; charset=utf-8\n\na\xff\xfe\x00b", `DAMAGED; 1:INVALID_CHARACTERS; text(1)="a���b"`},
	{"an unknown encoding", "Content-Transfer-Encoding: x-uuencode\n\nbegin", `DAMAGED; UNKNOWN_ENCODING; text(1)="begin"`},
	{"base64 with other characters", "Content-Transfer-Encoding: base64\n\naGVs*bG8=!!", `DAMAGED; 1:INVALID_ENCODING; text(1)="hello"`},
	{"base64 that is cut off", "Content-Transfer-Encoding: base64\n\naGVsbG8", `COMPLETE; text(1)="hello"`},
	{"base64 behind its padding", "Content-Transfer-Encoding: base64\n\naGk=aGk=", `DAMAGED; 1:INVALID_ENCODING; text(1)="hi"`},
	{"signs that quote nothing", "Content-Transfer-Encoding: quoted-printable\n\na=b= \nc==41=4\n=", `COMPLETE; text(1)="a=bc=A=4\n="`},
	{"no addresses", "From: <<a\nDate: yesterday\n\n", `DAMAGED; INVALID_ADDRESSES; INVALID_DATE; text(1)=""`},
	{"a file name that leads elsewhere", "Content-Disposition: attachment; filename=\"../../etc/pass\\\\w\x01d\u202etxt\"\n\n", `COMPLETE; 1 text/plain 0 wdtxt`},
	{"a type that is none", "Content-Type: text\n\nx", `COMPLETE; text(1)="x"`},
	{
		"parameters that are none", "Content-Type: multipart/mixed; boundary=b; boundary=c\n\n--b\nContent-Type: a/b; name=two words.txt\n\nx\n--b--",
		`COMPLETE; 1 a/b 1 two words.txt`,
	},
	// Limits.
	{"a long text", "Content-Type: text/plain\n\n" + strings.Repeat("ä", 200_000), `TRUNCATED; 1:TEXT_TRUNCATED; text(1)="` + strings.Repeat("ä", 60) + `"`},
	{"many parts", "Content-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat("--b\nContent-Type: a/b\n\n", 5000), ``},
	{"deep parts", deep(300), ``},
	{"a long header", "X: " + strings.Repeat("x", 300_000) + "\nSubject: a\n\nb", `TRUNCATED; HEADER_TRUNCATED; text(1)="b"`},
	{"a long header of a part", "Content-Type: multipart/mixed; boundary=b\n\n--b\n" + strings.Repeat("X: y\n", 9000) + "\none\n--b--", `TRUNCATED; 1:HEADER_TRUNCATED; text(1)="one"`},
	{
		"a long field", "Subject: " + strings.Repeat("x", 20_000) + "\nTo: " + strings.Repeat("a@b,", 5_000) + "\n\nb",
		`TRUNCATED; HEADER_TRUNCATED; HEADER_TRUNCATED; text(1)="b"`,
	},
	{"a long line", "Subject: a\n\n--" + strings.Repeat("x", 200_000), `COMPLETE; text(1)="--` + strings.Repeat("x", 58) + `"`},
}

func deep(depth int) string {
	var text strings.Builder
	for i := range depth {
		fmt.Fprintf(&text, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i)
	}
	return text.String() + "\nbottom"
}

func TestMessagesAreReadWhateverTheyAre(t *testing.T) {
	t.Parallel()
	for _, c := range readings {
		m := read(t, lines(c.text))
		if got := outline(m); c.want != "" && got != c.want {
			t.Errorf("%s: %s\n want %s", c.name, got, c.want)
		}
		// However it comes, a byte at a time too, it is read alike.
		if len(c.text) < 10_000 {
			again, err := parts.Read(iotest.OneByteReader(strings.NewReader(lines(c.text))), parts.Usual)
			if err != nil || outline(again) != outline(m) {
				t.Errorf("%s: %s, a byte at a time %s: %v", c.name, outline(m), outline(again), err)
			}
		}
	}
	if m := read(t, lines(readings[1].text)); m.Subject != "Grüße" || len(m.From) != 1 || m.From[0] != (parts.Address{Name: "Ann", Address: "ann@a.example"}) {
		t.Errorf("the header is %q %v", m.Subject, m.From)
	}
	bombs := map[string]string{"many parts": "TOO_MANY_PARTS", "deep parts": "TOO_DEEP"}
	for _, c := range readings {
		if bombs[c.name] == "" {
			continue
		}
		m := read(t, lines(c.text))
		if m.Parsed.State != parts.Truncated || !strings.Contains(fmt.Sprint(m.Parsed.Problems), bombs[c.name]) || len(m.Attachments) > parts.Usual.Parts {
			t.Errorf("%s: %s with %d attachments: %v", c.name, m.Parsed.State, len(m.Attachments), m.Parsed.Problems)
		}
	}
	if _, err := parts.Read(iotest.ErrReader(errors.New("gone")), parts.Usual); err == nil {
		t.Error("a message that could not be read was read")
	}
}

// The content of any message is JSON that a database takes, within the limits, and each part is where it says.
func FuzzRead(f *testing.F) {
	for _, c := range readings {
		if len(c.text) < 10_000 {
			f.Add([]byte(lines(c.text)))
		}
	}
	messages, err := corpus.Messages()
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range messages {
		f.Add(m.Text)
	}
	limits := parts.Limits{Depth: 3, Parts: 9, HeaderBytes: 2000, PartHeader: 500, FieldBytes: 300, Addresses: 5, Text: 100, Problems: 5}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parts.Read(bytes.NewReader(text), limits)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(m)
		if err != nil || bytes.Contains(encoded, []byte(`\u0000`)) && !bytes.Contains(encoded, []byte(`\\u0000`)) {
			t.Errorf("%q: %s: %v", text, encoded, err)
		}
		if len(m.Attachments) > limits.Parts || len(m.Parsed.Problems) > limits.Problems {
			t.Errorf("%q has %d attachments, %d problems", text, len(m.Attachments), len(m.Parsed.Problems))
		}
		for _, text := range []*string{m.Text, m.HTML} {
			if text != nil && len(*text) > limits.Text {
				t.Errorf("a text has %d bytes", len(*text))
			}
		}
		described := append([]parts.Part(nil), m.Attachments...)
		for _, part := range []*parts.Part{m.Parsed.Text, m.Parsed.HTML} {
			if part != nil {
				described = append(described, *part)
			}
		}
		end := int64(0)
		for _, part := range described {
			if part.Offset < 0 || part.Bytes < 0 || part.Offset+part.Bytes > int64(len(text)) || part.Size > part.Bytes {
				t.Fatalf("%q: a part lies at %+v", text, part)
			}
			end = max(end, part.Offset+part.Bytes)
			body := text[part.Offset : part.Offset+part.Bytes]
			switch part.Encoding {
			case "quoted-printable":
				continue
			case "base64":
				var err error
				if body, err = base64.StdEncoding.DecodeString(string(body)); err != nil {
					continue
				}
			}
			if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != part.SHA256 || int64(len(body)) != part.Size {
				t.Errorf("%q: part %+v is %q", text, part, body)
			}
		}
	})
}

// An id in a comment or in a quoted string is none, nor is what stands between ids.
func TestMessageIDs(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{
		"<1@x> <2@x>":                                "<1@x> <2@x>",
		"<1@x><2@x>":                                 "<1@x> <2@x>",
		"your message <1@x> of today":                "<1@x>",
		"(was (of <8@x>) <9@x>) <1@x>":               "<1@x>",
		`"<9@x>" wrote <1@x>`:                        "<1@x>",
		`"a \"<9@x>" (b \) <8@x>) <1@x>`:             "<1@x>",
		`("no string) <1@x> (" <9@x>)`:               "<1@x>",
		`"(no comment" <1@x> ")"`:                    "<1@x>",
		"an open (comment <1@x>":                     "<1@x>",
		`an open "string (<9@x>) <1@x>`:              "<9@x> <1@x>",
		`<"a>b"@x> <(c)@x>`:                          `<"a>b"@x> <(c)@x>`,
		"<> < 1@x> <1 @x> <a<1@x> <b":                "<1@x>",
		"1@x":                                        "",
		"<1@x>\r\n (folded\r\n <9@x>)\r\n <2@x>\r\n": "<1@x> <2@x>",
	} {
		m := read(t, "References: "+field+"\n\n")
		if got := strings.Join(m.References, " "); got != want {
			t.Errorf("%q has %q, want %q", field, got, want)
		}
	}
}

// The ids of any field are pieces of it, in their order, within the limit.
func FuzzMessageIDs(f *testing.F) {
	for _, field := range []string{"<1@x> (a (b) <2@x>) \"<3@x>\" <4@x>", "((((<", `"\`, "<<>>"} {
		f.Add(field)
	}
	f.Fuzz(func(t *testing.T, field string) {
		if strings.Contains(field, "=?") {
			return // An encoded word may have ids.
		}
		field = strings.Map(func(c rune) rune {
			if unicode.IsControl(c) {
				return ' '
			}
			return c
		}, field)
		m := read(t, "In-Reply-To: "+field+"\n\n")
		rest := strings.ToValidUTF8(field, "\ufffd")
		for _, id := range m.InReplyTo {
			if !strings.HasPrefix(id, "<") || !strings.HasSuffix(id, ">") || len(id) < 3 {
				t.Errorf("%q is an id", id)
			}
			if strings.ContainsRune(id, '\ufffd') || strings.ContainsRune(field, 0) {
				return
			}
			at := strings.Index(rest, id)
			if at < 0 {
				t.Fatalf("%q is not in what is left of %q", id, field)
			}
			rest = rest[at+len(id):]
		}
	})
}
