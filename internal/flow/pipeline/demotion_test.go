package pipeline_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/pipeline"
)

// path writes a path of elements without a namespace but that of the root.
func path(root string, steps ...string) string {
	space, local, _ := strings.Cut(root, "#")
	written := fmt.Sprintf("/*[local-name()='%s' and namespace-uri()='%s']", local, space)
	for _, s := range steps {
		if name, isAttribute := strings.CutPrefix(s, "@"); isAttribute {
			written += fmt.Sprintf("/@*[local-name()='%s' and namespace-uri()='']", name)
		} else {
			written += fmt.Sprintf("/*[local-name()='%s' and namespace-uri()='']", s)
		}
	}
	return written
}

// letterSchema describes an envelope with a head, of which Sent is optional, and a type.
const letterSchema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" targetNamespace="urn:letter">
<xs:annotation><xs:appinfo><b:schemaInfo is_envelope="yes"/></xs:appinfo></xs:annotation>
<xs:element name="Letter"><xs:annotation><xs:appinfo><b:recordInfo body_xpath="/*[local-name()='Letter' and namespace-uri()='urn:letter']/*[local-name()='Body' and namespace-uri()='']"/>
</xs:appinfo></xs:annotation><xs:complexType><xs:sequence><xs:element name="Head"><xs:complexType><xs:sequence>
<xs:element name="From" type="xs:string"/><xs:element name="Sent" type="xs:date" minOccurs="0"/><xs:element name="Note" type="xs:string" minOccurs="0"/>
</xs:sequence><xs:attribute name="version" default="1" use="required"/></xs:complexType></xs:element>
<xs:element name="Body"><xs:complexType><xs:sequence><xs:any maxOccurs="unbounded"/></xs:sequence></xs:complexType></xs:element>
<xs:element name="End" type="xs:string" fixed="."/></xs:sequence></xs:complexType></xs:element></xs:schema>`

// endSchema describes the last line of a flat file.
const endSchema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" targetNamespace="urn:end">
<xs:annotation><xs:appinfo><b:schemaInfo standard="Flat File" root_reference="End"/></xs:appinfo></xs:annotation>
<xs:element name="End"><xs:annotation><xs:appinfo><b:recordInfo structure="delimited" tag_name="END" child_delimiter_type="char"
 child_delimiter=";" child_order="prefix"/></xs:appinfo></xs:annotation><xs:complexType><xs:sequence>
<xs:element name="Sender" type="xs:string"/></xs:sequence></xs:complexType></xs:element></xs:schema>`

func demotingTypes() map[string]any {
	all := messageTypes()
	maps.Copy(all, map[string]any{
		"urn:letter#Letter": map[string]any{"schema": schema("letter.xsd", letterSchema), "promotions": map[string]string{
			"urn:p#From": path("urn:letter#Letter", "Head", "From"), "urn:p#Sent": path("urn:letter#Letter", "Head", "Sent"),
		}},
		"urn:head#Head": map[string]any{"schema": schema("head.xsd", headerSchema), "promotions": map[string]string{"urn:p#From": path("urn:head#Head", "Sender")}},
		"urn:end#End":   map[string]any{"schema": schema("end.xsd", endSchema), "promotions": map[string]string{"urn:p#From": path("urn:end#End", "Sender")}},
		"urn:file#File": map[string]any{"schema": schema("file.xsd", fileSchema), "promotions": map[string]string{"urn:p#First": path("urn:file#File", "Line", "Name")}},
	})
	return all
}

// Assemblers write back what message types promote: into the message where it is there and empty, and into envelope, header and trailer.
func TestPropertiesAreWrittenBackIntoWhatIsAssembled(t *testing.T) {
	t.Parallel()
	const xml, flat = `{"assemble": [{"component": "xml-assembler", "settings": {%s}}]}`, `{"assemble": [{"component": "flat-file-assembler", "settings": {%s}}]}`
	const order, file = `<o:Order xmlns:o="urn:orders" date=""><Id/><Id/><Total></Total></o:Order>`, `<f:File xmlns:f="urn:file"><Line><No>1</No><Name></Name></Line></f:File>`
	const letter = `<env0:Letter xmlns:env0="urn:letter"><Head version="1">%s</Head><Body><a/></Body><End>.</End></env0:Letter>`
	for name, c := range map[string]struct {
		stages, kind, body string
		properties         map[string]any
		want               string
	}{
		"the first place of each path, of elements and attributes": {
			fmt.Sprintf(xml, ""), "urn:orders#Order", order,
			map[string]any{"urn:p#Id": "<7>", "urn:p#Date": `"2026-11-28"`, "urn:annotated#Total": 8.5},
			`<o:Order xmlns:o="urn:orders" date="&quot;2026-11-28&quot;"><Id>&lt;7&gt;</Id><Id/><Total>8.5</Total></o:Order>`,
		},
		"no other than empty ones": {
			fmt.Sprintf(xml, ""), "urn:orders#Order", `<o:Order xmlns:o="urn:orders" date = '1' ><Id>1</Id><Id/></o:Order>`,
			map[string]any{"urn:p#Id": "7", "urn:p#Date": "2026-11-28", "urn:annotated#Total": "8"},
			`<o:Order xmlns:o="urn:orders" date = '1' ><Id>1</Id><Id/></o:Order>`,
		},
		"values and tags with blanks": {
			fmt.Sprintf(xml, ""), "urn:orders#Order", "<o:Order a='x = \"' xmlns:o='urn:orders'\n date = ''\t><Id\n/></o:Order >",
			map[string]any{"urn:p#Id": "a\rb", "urn:p#Date": "it's"},
			"<o:Order a='x = \"' xmlns:o='urn:orders'\n date = 'it&apos;s'\t><Id\n>a&#13;b</Id></o:Order >",
		},
		"nothing where it is switched off": {
			fmt.Sprintf(xml, `"demote": false`), "urn:orders#Order", order, map[string]any{"urn:p#Id": "7"}, order,
		},
		"nothing that is distinguished": {
			fmt.Sprintf(xml, ""), "urn:orders#Order", `<o:Order xmlns:o="urn:orders"><Remark/></o:Order>`,
			map[string]any{"http://schemas.microsoft.com/BizTalk/2003/btsDistinguishedFields#Order.Remark": "x"},
			`<o:Order xmlns:o="urn:orders"><Remark/></o:Order>`,
		},
		"an envelope has what its schema requires": {fmt.Sprintf(xml, `"envelope": "urn:letter#Letter"`), "a", "<a/>", nil, fmt.Sprintf(letter, "<From></From>")},
		"and what it promotes, a time as the schema asks": {
			fmt.Sprintf(xml, `"envelope": "urn:letter#Letter"`), "a", "<a/>",
			map[string]any{"urn:p#From": "me & you", "urn:p#Sent": "2026-11-28T23:30:00-02:00"},
			fmt.Sprintf(letter, "<From>me &amp; you</From><Sent>2026-11-29Z</Sent>"),
		},
		"a flat file": {fmt.Sprintf(flat, ""), "urn:file#File", file, map[string]any{"urn:p#First": "é"}, "1;é\n"},
		"a header and a trailer of their schemas": {
			fmt.Sprintf(flat, `"header": "urn:head#Head", "trailer": "urn:end#End"`), "urn:file#File", file, map[string]any{"urn:p#From": "me"}, "HEADme\n1;\nEND;me",
		},
		"a header that was received, where it is empty": {
			fmt.Sprintf(flat, `"header": "urn:head#Head"`), "urn:file#File", file,
			map[string]any{"urn:p#From": "me", pipeline.HeaderProperty: `<h:Head xmlns:h="urn:head"><Sender/></h:Head>`},
			"HEADme\n1;\n",
		},
		"and no other": {
			fmt.Sprintf(flat, `"header": "urn:head#Head"`), "urn:file#File", file,
			map[string]any{"urn:p#From": "me", pipeline.HeaderProperty: `<h:Head xmlns:h="urn:head"><Sender>you</Sender></h:Head>`},
			"HEADyou\n1;\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := pipeline.CompileSend(defined(t, "send", c.stages), types(t, demotingTypes()), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int64{int64(len(c.body)), -1} { // at once, and while it is read
				source := body(c.body)
				source.Type, source.Written, source.Size = c.kind, c.properties, size
				if got, _, err := made(t, p, source); err != nil || got != c.want {
					t.Errorf("made %q, %v; want %q", got, err, c.want)
				}
			}
		})
	}
}

// A value that XML cannot carry is refused, and a trailer for which there is no value at all.
func TestWhatCannotBeWrittenBackIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stages, kind, body, property, want string }{
		"a character": {`{"assemble": [{"component": "xml-assembler"}]}`, "urn:orders#Order", `<o:Order xmlns:o="urn:orders"><Id/></o:Order>`, "\x01", "XML does not have"},
		"no value": {
			`{"assemble": [{"component": "flat-file-assembler", "settings": {"trailer": "urn:end#End"}}]}`, "urn:file#File",
			`<f:File xmlns:f="urn:file"><Line><No>1</No><Name>a</Name></Line></f:File>`, "", "the trailer has no value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := pipeline.CompileSend(defined(t, "send", c.stages), types(t, demotingTypes()), nil)
			if err != nil {
				t.Fatal(err)
			}
			source := body(c.body)
			source.Type, source.Promoted = c.kind, map[string]any{"urn:p#Id": c.property}
			_, _, err = made(t, p, source)
			requireFailure(t, err, "send.pipeline", c.want)
		})
	}
}

// sheetSchema describes a flat file that is an envelope: a line of its own, and lines that are messages.
const sheetSchema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" targetNamespace="urn:sheet">
<xs:annotation><xs:appinfo><b:schemaInfo standard="Flat File" root_reference="Sheet" is_envelope="yes"/></xs:appinfo></xs:annotation>
<xs:element name="Sheet"><xs:annotation><xs:appinfo><b:recordInfo structure="delimited" child_delimiter_type="hex" child_delimiter="0x0A" child_order="postfix"
 body_xpath="/*[local-name()='Sheet' and namespace-uri()='urn:sheet']/*[local-name()='Lines' and namespace-uri()='']"/></xs:appinfo></xs:annotation>
<xs:complexType><xs:sequence><xs:element name="Title" type="xs:string"/>
<xs:element name="Lines"><xs:annotation><xs:appinfo><b:recordInfo structure="delimited" child_delimiter_type="char" child_delimiter="|" child_order="infix"/></xs:appinfo>
</xs:annotation><xs:complexType><xs:sequence><xs:element name="Line" maxOccurs="unbounded"><xs:annotation>
<xs:appinfo><b:recordInfo structure="delimited" child_delimiter_type="char" child_delimiter=";" child_order="infix"/></xs:appinfo></xs:annotation>
<xs:complexType><xs:sequence><xs:element name="No" type="xs:int"/><xs:element name="Name" type="xs:string"/></xs:sequence></xs:complexType>
</xs:element></xs:sequence></xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element></xs:schema>`

// The schema of a flat file that is an envelope says in which element the messages are; each has the type of its root, and what that promotes.
func TestAFlatFileThatIsAnEnvelopeIsTakenApart(t *testing.T) {
	t.Parallel()
	all := messageTypes()
	all["urn:sheet#Sheet"] = map[string]any{"schema": schema("sheet.xsd", sheetSchema)}
	all["Line"] = map[string]any{"promotions": map[string]string{"urn:p#Id": path("#Line", "No")}}
	p, err := pipeline.CompileReceive(defined(t, "receive", `{"disassemble": [{"component": "flat-file-disassembler", "settings": {"envelope": "urn:sheet#Sheet"}}]}`),
		types(t, all), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := run(t, p, body("Nov\n1;é|2;b\n"))
	if want := `<Line xmlns:ns0="urn:sheet"><No>1</No><Name>é</Name></Line>|<Line xmlns:ns0="urn:sheet"><No>2</No><Name>b</Name></Line>`; err != nil || got.bodies() != want {
		t.Fatalf("the messages are %q, %v; want %q", got.bodies(), err, want)
	}
	for i, want := range []string{"1", "2"} {
		if m := got.good[i]; m.Type != "Line" || m.Promoted["urn:p#Id"] != want || m.ContentType != "application/xml" || m.Charset != "utf-8" {
			t.Errorf("message %d is %+v", i+1, m.Message)
		}
	}
	_, err = run(t, p, body("Nov\n1;a|x\n"))
	if f := requireFault(t, err, "receive.disassemble", ""); f.Place.Line != 2 {
		t.Errorf("the place is %+v, and not in line 2 of the file", f.Place)
	}
	for settings, want := range map[string]string{
		`{"envelope": "urn:sheet#Sheet", "document": "urn:lines#Line"}`: "both say what the file is",
		`{"envelope": "urn:sheet#Sheet", "recoverable": true}`:          "read as a whole",
		`{"envelope": "urn:lines#Line"}`:                                "describes no envelope",
	} {
		_, err := pipeline.CompileReceive(defined(t, "receive", `{"disassemble": [{"component": "flat-file-disassembler", "settings": `+settings+`}]}`), types(t, all), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", settings, err, want)
		}
	}
}

// Each message of a flat file has what its header promotes, also without the header itself.
func TestMessagesHaveWhatTheirHeaderPromotes(t *testing.T) {
	t.Parallel()
	p, err := pipeline.CompileReceive(defined(t, "receive", `{"disassemble": [{"component": "flat-file-disassembler", "settings": {
		"document": "urn:file#File", "header": "urn:head#Head"}}]}`), types(t, demotingTypes()), nil)
	if err != nil {
		t.Fatal(err)
	}
	source := body("HEADme\n1;a\n2;b\n")
	source.Promoted = map[string]any{"SourceFileName": "f"}
	got, err := run(t, p, source)
	if err != nil || len(got.good) != 1 {
		t.Fatalf("got %d messages, %v", len(got.good), err)
	}
	for _, m := range got.good {
		requireProperties(t, "promoted", m.Promoted, map[string]any{"SourceFileName": "f", "urn:p#From": "me", "urn:p#First": "a"})
		requireProperties(t, "written", m.Written, nil)
	}
	requireProperties(t, "those of the source", source.Promoted, map[string]any{"SourceFileName": "f"})
}
