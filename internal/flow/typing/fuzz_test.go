package typing_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/typing"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// Any path is read, or refused with its place. One that is read is written in the canonical form, which is read as the same.
func FuzzPathsAreReadAndWritten(f *testing.F) {
	for _, path := range []string{
		"", "/", "//a", `/*[local-name()='a' and namespace-uri()='']`, `/*[local-name()="a'b" and namespace-uri()="u"]/@*[local-name()='b' and namespace-uri()='']`,
		`/*[ local-name() = 'a'  and  namespace-uri() = 'x' ]`, "/*[position()=1]", "/@*[local-name()='a' and namespace-uri()='']/*[local-name()='b' and namespace-uri()='']",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		p, err := typing.ParsePath(path)
		if err != nil {
			if found, is := fault.Of(err); !is || found.Remedy == "" || found.Place.Byte > int64(len(path)) || found.Place.Column < 1 {
				t.Fatalf("%q is refused as %v", path, err)
			}
			return
		}
		again, err := typing.ParsePath(p.String())
		if err != nil || again.String() != p.String() || again.IsAttribute != p.IsAttribute || len(again.Steps) != len(p.Steps) {
			t.Fatalf("%q is written as %q, which is read as %v, %v", path, p.String(), again, err)
		}
	})
}

// The values that are promoted are those that a reading by encoding/xml finds.
func FuzzValuesAreThoseOfEncodingXML(f *testing.F) {
	for _, body := range []string{
		`<a/>`, `<a><b>1</b><b>2</b></a>`, `<a><b c="x">1<d/>2</b></a>`, `<a><b>&lt;<![CDATA[&]]></b></a>`, `<n:a xmlns:n="u"><n:b/></n:a>`, `<a><x><b>1</b></x></a>`, `<a><b><b>1</b></b></a>`,
	} {
		f.Add(body)
	}
	element := typing.Property{Name: "b", Path: &typing.Path{Steps: []xsd.Name{{Local: "a"}, {Local: "b"}}}}
	attribute := typing.Property{Name: "c", Path: &typing.Path{Steps: []xsd.Name{{Local: "a"}, {Local: "b"}, {Local: "c"}}, IsAttribute: true}}
	promoter := typing.NewPromoter([]typing.Property{element, attribute})
	f.Fuzz(func(t *testing.T, body string) {
		if strings.ContainsAny(body, "\r\n\t") {
			return // line ends in attributes, which encoding/xml reads as they stand
		}
		result, err := promoter.NewRun().Read(xmlscan.New(strings.NewReader(body), xmlscan.Limits{}))
		if err != nil {
			return
		}
		wantType, wanted, err := values(body)
		if err != nil {
			return // names of the fifth edition, which encoding/xml does not know
		}
		got := map[int]string{}
		for _, v := range result.Values {
			got[v.Property] = v.Text
		}
		for property, want := range wanted {
			if have, has := got[property]; !has || len(want) <= typing.PromotedMost && have != want {
				t.Fatalf("%q promotes %v, and encoding/xml finds %v", body, got, wanted)
			}
		}
		if len(got) != len(wanted) || result.Type != wantType {
			t.Fatalf("%q is %q with %v, and encoding/xml finds %q with %v", body, result.Type, got, wantType, wanted)
		}
	})
}

// values reads the type of a document, the text of its first /a/b, and the first attribute c of one.
func values(body string) (typ string, found map[int]string, err error) {
	d := xml.NewDecoder(strings.NewReader(body))
	found = map[int]string{}
	var open []xml.Name
	isIn := func() bool {
		return len(open) == 2 && open[0] == xml.Name{Local: "a"} && open[1] == xml.Name{Local: "b"}
	}
	isTaken, isDone := false, false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return typ, found, nil
		}
		if err != nil {
			return "", nil, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if len(open) == 0 {
				typ = typing.TypeOf(token.Name.Space, token.Name.Local)
			}
			if open = append(open, token.Name); !isIn() {
				continue
			}
			if !isDone {
				found[0], isTaken = "", true
			}
			for _, a := range token.Attr {
				if _, has := found[1]; !has && a.Name.Local == "c" && a.Name.Space == "" {
					found[1] = a.Value
				}
			}
		case xml.EndElement:
			if isIn() {
				isTaken, isDone = false, true
			}
			open = open[:len(open)-1]
		case xml.CharData:
			if isTaken && isIn() {
				found[0] += string(token)
			}
		}
	}
}
