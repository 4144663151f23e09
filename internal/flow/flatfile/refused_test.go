package flatfile_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/flatfile"
)

const optionalNote = `<xs:element name="Order"><b:recordInfo child_delimiter_type="hex" child_delimiter="0x0A" child_order="postfix"/>
<xs:complexType><xs:sequence><xs:element name="Note" type="xs:string" minOccurs="0"/>
<xs:element name="Item" minOccurs="0"><b:recordInfo tag_name="IT" child_delimiter_type="char" child_delimiter="," child_order="infix"/>
<xs:complexType><xs:sequence><xs:element name="A" type="xs:string"/></xs:sequence></xs:complexType></xs:element>
<xs:element name="Item2" minOccurs="0"><b:recordInfo tag_name="IT2" child_delimiter_type="char" child_delimiter="," child_order="infix"/>
<xs:complexType><xs:sequence><xs:element name="B" type="xs:string"/></xs:sequence></xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element>`

// Documents whose file would be read otherwise, or not at all, are refused with their place and a remedy.
func TestDocumentsThatCouldNotBeReadAgainAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, document, message string }{
		{optionalNote, "<Order><Note>ITx</Note></Order>", `begins with "IT", the tag of record Item`},
		{optionalNote, "<Order><Item><A>2x</A></Item></Order>", `begins with "IT2", the tag of another record`},
		{optionalNote, "<Order><Note>a\nb</Note></Order>", `contains the delimiter "\n"`},
		{optionalNote, "<Order><Other/></Order>", "has no element Other in the schema"},
		{optionalNote, "<Order><Note>a</Note><Note>b</Note></Order>", "more than 1 of field Note"},
		{optionalNote, "<Order>text</Order>", "text in record Order"},
		{optionalNote, "<Order x='1'/>", "has no attribute x"},
		{optionalNote, `<Order><Note xmlns="urn:x">a</Note></Order>`, `is of namespace "urn:x", and in the schema of ""`},
		{lines, "<File/>", "record Line is missing: there are 0 of at least 1"},
		{lines, "<File><Line><Id>1</Id><Day>d</Day></Line></File>", "field Name is missing"},
		{lines, "<Wrong/>", "the document is Wrong"},
		{fuzzed[4], "<P><L><X>abcd</X><Y>1</Y></L></P>", `the value "abcd" has 4 characters, and its place 3`},
	} {
		_, err := assembled(t, compiled(t, c.schema, flatfile.Settings{}), flatfile.WriteSettings{}, named(c.document))
		if f, ok := fault.Of(err); !ok || !strings.Contains(f.Message, c.message) || f.Remedy == "" || f.Place.Line == 0 {
			t.Errorf("%s is refused as %v, want %q", c.document, err, c.message)
		}
	}
	out, err := assembled(t, compiled(t, fuzzed[4], flatfile.Settings{}), flatfile.WriteSettings{Truncate: true}, named("<P><L><X>abcd</X><Y>123</Y></L></P>"))
	if err != nil || out != "abc 23\n" {
		t.Errorf("where values may be cut it is %q, %v", out, err)
	}
}

func TestSchemasThatCannotBeFollowedAreRefused(t *testing.T) {
	t.Parallel()
	for element, want := range map[string]string{
		strings.Replace(lines, "postfix", "sideways", 1):                  `child_order is "sideways"`,
		strings.Replace(lines, "0x0D 0x0A", "newline", 1):                 "not hexadecimal",
		strings.Replace(fuzzed[4], `pos_length="3"`, `pos_length="x"`, 1): `pos_length is "x"`,
		`<xs:element name="R"><b:recordInfo structure="positional"/><xs:complexType><xs:sequence><xs:element name="S"><b:recordInfo structure="delimited"/><xs:complexType><xs:sequence><xs:element name="A"/></xs:sequence></xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element>`: "positional record R contains delimited record S",
		`<xs:element name="R" type="xs:string"/>`: "the root element has no content",
		`<xs:element name="R"><b:recordInfo escape_char_type="char" escape_char="ab"/><xs:complexType/></xs:element>`: "escape_char is \"ab\"",
	} {
		err := compileError(element)
		if f, ok := fault.Of(err); !ok || !strings.Contains(f.Message, want) || f.File != "test.xsd" || f.Remedy == "" {
			t.Errorf("%s is refused as %v, want %q", element, err, want)
		}
	}
}
