package xmlscan_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// stricter are the reasons for which we refuse what encoding/xml takes: it reads neither names of namespaces nor the document as a whole.
var stricter = []string{
	"a document type declaration", "<! begins", "a second root element", "text outside of the root", "no root element",
	"is not declared", "is there twice", "is declared twice", "cannot be bound", "bound to no namespace", "no name with a prefix",
	"behind the beginning", "XML declaration", "version", "standalone", "no blank", "begins no reference", "is no character",
	"which XML does not have", // in comments and instructions, which encoding/xml does not hold to it
	"CDATA section outside", "not the name of an", "no end", "ends within", "more than",
}

// sameAs reads a document with encoding/xml and writes it as read does.
func sameAs(document []byte) (tokens []string, err error) {
	d := xml.NewDecoder(bytes.NewReader(document))
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	depth := 0
	for {
		token, err := d.Token()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return tokens, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			depth++
			text := fmt.Sprintf("<{%s}%s", token.Name.Space, token.Name.Local)
			for _, a := range token.Attr {
				space := a.Name.Space
				if space == "xmlns" || space == "" && a.Name.Local == "xmlns" {
					space = xmlscan.XMLNSSpace
				}
				text += fmt.Sprintf(" {%s}%s=%q", space, a.Name.Local, a.Value)
			}
			tokens = append(tokens, text+">")
		case xml.EndElement:
			depth--
			tokens = append(tokens, fmt.Sprintf("</{%s}%s>", token.Name.Space, token.Name.Local))
		case xml.CharData:
			if n := len(tokens); n > 0 && strings.HasPrefix(tokens[n-1], "text ") {
				tokens[n-1] += string(token)
			} else {
				tokens = append(tokens, "text "+string(token))
			}
		case xml.Comment:
			tokens = append(tokens, "comment "+strings.ReplaceAll(string(token), "\n", ""))
		case xml.ProcInst:
			tokens = append(tokens, "instruction "+token.Target)
		}
	}
}

// The scanner and encoding/xml agree on every document that both take; what we refuse beyond has a reason in the list. They differ in
// attributes with line ends, which we read as blanks, and in the white space around comments, so these are left out.
func FuzzAgreesWithEncodingXML(f *testing.F) {
	for _, seed := range []string{
		`<a/>`, `<?xml version="1.0"?><a x="1" y='2'>t<b/>&lt;&#65;</a>`, `<p:a xmlns:p="u" xmlns="v"><b p:c=""/></p:a>`,
		`<a><![CDATA[ <x> ]]></a>`, `<a><!-- c --><?pi d?></a>`, "<a>\r\n\r</a>", "<é>ü</é>", `<a xml:space="preserve"/>`, "<a>&amp;amp;]]</a>",
		"<a\n x = '1'\t/>", "<a></a >", "<a>]]&gt;</a>", "<!DOCTYPE a><a/>", "<a xmlns=''/>",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		if !utf8.Valid(document) {
			return // text.Open gives UTF-8 only
		}
		tokens, raw, err := read(bytes.NewReader(document), xmlscan.Limits{})
		slow, _, slowErr := read(iotest.OneByteReader(bytes.NewReader(document)), xmlscan.Limits{})
		if strings.Join(slow, "|") != strings.Join(tokens, "|") || fmt.Sprint(slowErr) != fmt.Sprint(err) {
			t.Fatalf("byte by byte it is\n%q, %v\nand not\n%q, %v", slow, slowErr, tokens, err)
		}
		if !bytes.HasPrefix(document, raw) || err == nil && len(raw) != len(document) {
			t.Fatalf("the raw bytes are %q", raw)
		}
		other, otherErr := sameAs(document)
		if err != nil {
			if otherErr == nil && !reasonIn(err.Error()) {
				t.Fatalf("encoding/xml takes it, and we do not: %v", err)
			}
			return
		}
		if otherErr != nil {
			if strings.Contains(otherErr.Error(), "invalid XML name") || strings.Contains(otherErr.Error(), "expected") {
				return // names of the fifth edition, which encoding/xml does not know
			}
			t.Fatalf("encoding/xml refuses it: %v", otherErr)
		}
		if bytes.ContainsAny(document, "\r\t\n") || bytes.Contains(document, []byte("<!--")) || bytes.Contains(document, []byte("xmlns")) && bytes.Contains(document, []byte("xmlns=")) {
			return
		}
		if got, want := strings.Join(tokens, "|"), strings.Join(other, "|"); got != want {
			t.Fatalf("the tokens are\n%s\nand for encoding/xml\n%s", got, want)
		}
	})
}

func reasonIn(text string) bool {
	for _, reason := range stricter {
		if strings.Contains(text, reason) {
			return true
		}
	}
	return false
}
