package xmlscan_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// read writes a document as one line a token, and gives its raw bytes.
func read(r io.Reader, limits xmlscan.Limits) (tokens []string, raw []byte, err error) {
	s := xmlscan.New(r, limits)
	for {
		kind, err := s.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return tokens, raw, err
		}
		raw = append(raw, s.Raw()...)
		switch kind {
		case xmlscan.StartElement:
			text := fmt.Sprintf("<{%s}%s", s.Name().Space, s.Name().Local)
			for _, a := range s.Attrs() {
				text += fmt.Sprintf(" {%s}%s=%q", a.Name.Space, a.Name.Local, a.Value)
			}
			tokens = append(tokens, text+">")
		case xmlscan.EndElement:
			tokens = append(tokens, fmt.Sprintf("</{%s}%s>", s.Name().Space, s.Name().Local))
		case xmlscan.Text, xmlscan.CDATA:
			if n := len(tokens); n > 0 && strings.HasPrefix(tokens[n-1], "text ") {
				tokens[n-1] += string(s.Text())
				continue
			}
			tokens = append(tokens, "text "+string(s.Text()))
		case xmlscan.Comment:
			tokens = append(tokens, "comment "+string(s.Text()))
		case xmlscan.Instruction:
			tokens = append(tokens, "instruction "+s.Target())
		}
	}
}

func TestTokensSayWhatTheDocumentSays(t *testing.T) {
	t.Parallel()
	document := `<?xml version="1.0" encoding="utf-8"?>` + "\n" + `<!-- an order --><o:Order xmlns:o="urn:orders" xmlns="urn:plain" o:id='7' note="a&#10;b
c&quot;"><Line/><Line n="1">5 &lt; 6 &amp; 7` + "\r\n" + `<![CDATA[<raw> & ]] ]]><![CDATA[<![CDATA[ again]]></Line><empty xmlns=""></empty></o:Order>` + "\n"
	want := []string{
		"instruction xml", "text \n", "comment  an order ",
		`<{urn:orders}Order {http://www.w3.org/2000/xmlns/}o="urn:orders" {http://www.w3.org/2000/xmlns/}xmlns="urn:plain" {urn:orders}id="7" {}note="a\nb c\"">`,
		"<{urn:plain}Line>", "</{urn:plain}Line>", `<{urn:plain}Line {}n="1">`, "text 5 < 6 & 7\n<raw> & ]] <![CDATA[ again", "</{urn:plain}Line>",
		`<{}empty {http://www.w3.org/2000/xmlns/}xmlns="">`, "</{}empty>", "</{urn:orders}Order>", "text \n",
	}
	for name, reader := range map[string]io.Reader{
		"at once": strings.NewReader(document), "byte by byte": iotest.OneByteReader(strings.NewReader(document)),
	} {
		tokens, raw, err := read(reader, xmlscan.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.Join(tokens, "\n"); got != strings.Join(want, "\n") {
			t.Errorf("%s: the tokens are\n%s\nand not\n%s", name, got, strings.Join(want, "\n"))
		}
		if string(raw) != document {
			t.Errorf("%s: the raw bytes of the tokens are %q, and not the document", name, raw)
		}
	}
}

func TestWhatIsNotWellFormedIsRefusedWithItsPlaceAndARemedy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		document, message string
		line              int64
		column            int
	}{
		{"<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", "a document type declaration", 1, 1},
		{"<a>\n  <b></a>", "not that of element b", 2, 6},
		{"<a>é<b x='1' x='2'/></a>", "attribute x is there twice", 1, 14},
		{"<a xmlns:p='u' xmlns:q='u'><b p:x='1' q:x='2'/></a>", "attribute x of namespace u", 1, 39},
		{"<p:a/>", "prefix p is not declared", 1, 2},
		{"<a p:x='1'/>", "prefix p is not declared", 1, 4},
		{"<a>&nbsp;</a>", "entity nbsp is not defined", 1, 4},
		{"<a>&#0;</a>", "&#0; is no character", 1, 4},
		{"<a>x & y</a>", "begins no reference", 1, 6},
		{"<a x='&#xD800;'/>", "is no character", 1, 7},
		{"<a x='<'/>", "a < in the value", 1, 7},
		{"<a x=1/>", "not in quotes", 1, 6},
		{"<a x='1'y='2'/>", "no blank before", 1, 9},
		{"<a>]]></a>", "]]> in a text", 1, 4},
		{"<a>\n\x01</a>", "U+0001", 2, 1},
		{"<a>\uFFFF</a>", "U+FFFF", 1, 4},
		{"<a/><b/>", "a second root element", 1, 5},
		{"<a/>x", "text outside of the root", 1, 5},
		{"", "no root element", 1, 1},
		{"<a>", "element a is open", 1, 4},
		{"<a", "ends within a tag", 1, 1},
		{"<a><!-- x -- y --></a>", "-- within a comment", 1, 11},
		{"<a/><?xml version='1.0'?>", "behind the beginning", 1, 5},
		{"<?xml version='1.1'?><a/>", "version \"1.1\"", 1, 1},
		{"<a xmlns:p=''/>", "bound to no namespace", 1, 4},
		{"<a xmlns:xml='u'/>", "cannot be bound", 1, 4},
		{"<1a/>", "not the name of an element", 1, 2},
		{"<a:b:c xmlns:a='u'/>", "no name with a prefix", 1, 2},
	} {
		_, _, err := read(strings.NewReader(c.document), xmlscan.Limits{})
		f, ok := fault.Of(err)
		if !ok {
			t.Errorf("%q is not refused as a fault: %v", c.document, err)
			continue
		}
		if !strings.Contains(f.Message, c.message) || f.Remedy == "" || f.Place.Line != c.line || f.Place.Column != c.column {
			t.Errorf("%q is refused as %v at line %d, column %d (remedy %q), want %q at %d, %d",
				c.document, f.Message, f.Place.Line, f.Place.Column, f.Remedy, c.message, c.line, c.column)
		}
	}
}

func TestLimitsRefuseWhatIsTooDeepTooWideOrTooLong(t *testing.T) {
	t.Parallel()
	limits := xmlscan.Limits{Depth: 3, Attributes: 2, NameBytes: 8, TokenBytes: 100}
	for document, message := range map[string]string{
		"<a><a><a><a/></a></a></a>": "more than 3 elements",
		"<a x='' y='' z=''/>":       "more than 2 attributes",
		"<abcdefghi/>":              "more than 8 bytes",
		"<a x='" + strings.Repeat("x", windowOf(100)) + "'/>":      "more than 100 bytes",
		"<a><!--" + strings.Repeat("x", windowOf(100)) + "--></a>": "more than 100 bytes",
	} {
		_, _, err := read(iotest.HalfReader(strings.NewReader(document)), limits)
		if f, ok := fault.Of(err); !ok || !strings.Contains(f.Message, message) {
			t.Errorf("%.40q is refused as %v, want %q", document, err, message)
		}
	}
}

// windowOf is more than the window holds, so that the limit counts and not the document's end.
func windowOf(limit int) int { return 256<<10 + limit }

func TestALongTextIsReadInBoundedMemory(t *testing.T) {
	s := xmlscan.New(io.MultiReader(strings.NewReader("<a>"), io.LimitReader(repeat("text &lt; and é ]] more\r\n"), 16<<20), strings.NewReader("\n</a>")), xmlscan.Limits{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var bytesRead int64
	for {
		_, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		bytesRead += int64(len(s.Text()))
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("a text of 16 MB took %d bytes of memory in all", used)
	}
	if bytesRead < 12<<20 {
		t.Errorf("only %d bytes of text were read", bytesRead)
	}
}

type repeated struct {
	unit []byte
	at   int
}

func repeat(unit string) io.Reader { return &repeated{unit: []byte(unit)} }

func (r *repeated) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		copied := copy(p[n:], r.unit[r.at:])
		n += copied
		r.at = (r.at + copied) % len(r.unit)
	}
	return n, nil
}

func TestPlacesAreRightBehindMuchText(t *testing.T) {
	t.Parallel()
	document := "<a>\n" + strings.Repeat("0123456789\n", 30_000) + "  <b></c></a>"
	_, _, err := read(strings.NewReader(document), xmlscan.Limits{})
	f, ok := fault.Of(err)
	if !ok {
		t.Fatal(err)
	}
	at := int64(strings.Index(document, "</c>"))
	if f.Place != (fault.Place{Byte: at, Line: 30_002, Column: 6}) {
		t.Errorf("the place is %+v", f.Place)
	}
}

func TestAScannerIsUsedAgain(t *testing.T) {
	t.Parallel()
	s := xmlscan.New(strings.NewReader("<a xmlns='u'><b>"), xmlscan.Limits{})
	for {
		if _, err := s.Next(); err != nil {
			break
		}
	}
	s.Reset(bytes.NewReader([]byte("<b/>")))
	if _, err := s.Next(); err != nil || !s.Name().Is("", "b") || s.Depth() != 1 {
		t.Errorf("the second document begins with %v at depth %d, %v", s.Name(), s.Depth(), err)
	}
}
