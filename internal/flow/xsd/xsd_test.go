package xsd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

func parse(t *testing.T, body string) (*xsd.Element, error) {
	t.Helper()
	s, err := xsd.Parse("s.xsd", []byte(`<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" xmlns="urn:x" targetNamespace="urn:x">`+body+`</xs:schema>`), nil)
	if err != nil {
		return nil, err
	}
	return s.Root("")
}

// outline writes the tree of an element.
func outline(e *xsd.Element) string {
	text := e.Name.Local
	for _, a := range e.Attributes {
		text += "@" + a.Name.Local
	}
	if e.Content != nil {
		text += group(e.Content)
	}
	return text
}

func group(g *xsd.Group) string {
	var parts []string
	for _, p := range g.Parts {
		if p.Group != nil {
			parts = append(parts, group(p.Group))
		} else {
			parts = append(parts, outline(p.Element))
		}
	}
	return map[xsd.Order]string{xsd.Sequence: "(", xsd.Choice: "<", xsd.All: "{"}[g.Order] + strings.Join(parts, " ") + ")"
}

func TestTypesGroupsReferencesAndExtensionsMakeOneTree(t *testing.T) {
	t.Parallel()
	root, err := parse(t, `<xs:element name="Root" type="Derived"/>
<xs:complexType name="Base"><xs:sequence><xs:element name="A" type="Code"/></xs:sequence><xs:attribute name="x"/></xs:complexType>
<xs:complexType name="Derived"><xs:complexContent><xs:extension base="Base"><xs:sequence><xs:group ref="G"/><xs:choice><xs:element name="C" type="xs:int"/><xs:element name="D"><xs:complexType><xs:all><xs:element name="E" type="xs:date"/></xs:all></xs:complexType></xs:element></xs:choice></xs:sequence><xs:attributeGroup ref="AG"/></xs:extension></xs:complexContent></xs:complexType>
<xs:group name="G"><xs:sequence><xs:element name="B" type="xs:string"/></xs:sequence></xs:group><xs:attributeGroup name="AG"><xs:attribute name="y" use="required"/><xs:attribute name="z" use="prohibited"/></xs:attributeGroup>
<xs:simpleType name="Code"><xs:restriction base="xs:string"><xs:length value="3"/></xs:restriction></xs:simpleType>`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := outline(root), "Root@x@y((A) ((B) <C D{E))))"; got != want {
		t.Errorf("the tree is %s and not %s", got, want)
	}
	if root.Name != (xsd.Name{Space: "urn:x", Local: "Root"}) || root.Content.Parts[0].Group.Parts[0].Element.Name.Space != "" {
		t.Error("a local element has a namespace although elements are not qualified")
	}
}

func TestASchemaReadsWhatItIncludesAndImportsBesideIt(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, body string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("main.xsd", `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="urn:x" xmlns:o="urn:other" targetNamespace="urn:x"><xs:include schemaLocation=".\types.xsd"/>
<xs:import namespace="urn:other" schemaLocation="other.xsd"/><xs:import namespace="urn:props" schemaLocation="absent.xsd"/><xs:element name="Root"><xs:complexType><xs:sequence><xs:element name="A" type="T"/><xs:element ref="o:B"/></xs:sequence></xs:complexType></xs:element></xs:schema>`)
	write("types.xsd", `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:include schemaLocation="main.xsd"/><xs:simpleType name="T"><xs:restriction base="xs:int"/></xs:simpleType></xs:schema>`)
	write("other.xsd", `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:other"><xs:element name="B" type="xs:string"/></xs:schema>`)
	s, err := xsd.Load(filepath.Join(folder, "main.xsd"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := s.Root("")
	if err != nil {
		t.Fatal(err)
	}
	parts := root.Content.Parts
	if parts[0].Element.Simple.Base != "int" || parts[1].Element.Name != (xsd.Name{Space: "urn:other", Local: "B"}) {
		t.Errorf("the parts are %+v and %+v", parts[0].Element, parts[1].Element)
	}
	write("main.xsd", `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:p="urn:p" targetNamespace="urn:x"><xs:import namespace="urn:p" schemaLocation="absent.xsd"/><xs:element name="Root" type="p:T"/></xs:schema>`)
	if s, err = xsd.Load(filepath.Join(folder, "main.xsd")); err == nil {
		_, err = s.Root("")
	}
	if f, ok := fault.Of(err); !ok || !strings.Contains(f.Remedy, "absent.xsd") {
		t.Errorf("a type of a schema that is not there is refused as %v", err)
	}
}

func TestASchemaThatIsWrongIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`<xs:element name="R" type="T"/><xs:complexType name="T"><xs:sequence><xs:element name="R2" type="T"/></xs:sequence></xs:complexType>`: "contains itself",
		`<xs:element name="R" type="Missing"/>`: "Missing is not declared",
		`<xs:element name="R" type="q:T"/>`:     "prefix q",
		`<xs:element name="R"><xs:complexType><xs:sequence><xs:element name="A" minOccurs="x"/></xs:sequence></xs:complexType></xs:element>`:               "minOccurs",
		`<xs:element name="R"><xs:complexType><xs:sequence><xs:element name="A" minOccurs="3" maxOccurs="2"/></xs:sequence></xs:complexType></xs:element>`: "more than maxOccurs",
		`<xs:element name="R" type="xs:nothing"/>`: "does not exist",
		`<xs:element name="R"><xs:simpleType><xs:restriction base="xs:string"><xs:pattern value="[a-z-[b]]"/></xs:restriction></xs:simpleType></xs:element>`: "cannot be checked",
		`<xs:redefine schemaLocation="x.xsd"/><xs:element name="R"/>`:                                                                                        "redefine",
		`<xs:element name="R"/><xs:element name="S"/>`:                                                                                                       "2 root elements",
	} {
		_, err := parse(t, body)
		f, ok := fault.Of(err)
		if !ok || !strings.Contains(f.Message, want) || f.File != "s.xsd" || f.Remedy == "" {
			t.Errorf("%s is refused as %v, want %q", body, err, want)
		}
	}
}

func TestValuesAreHeldAgainstTheirTypes(t *testing.T) {
	t.Parallel()
	for restriction, values := range map[string]struct{ good, bad []string }{
		`base="xs:int"`:      {[]string{"0", "-5", "+7", "2147483647", " 8 "}, []string{"", "x", "1.0", "2147483648", "+-1", "1_0"}},
		`base="xs:decimal"`:  {[]string{"1", "1.50", ".5", "-0.1"}, []string{"", "1e3", "1,5"}},
		`base="xs:double"`:   {[]string{"1e3", "INF", "-INF", "NaN"}, []string{"", "inf", "1e"}},
		`base="xs:date"`:     {[]string{"2026-11-28", "2024-02-29", "2026-11-28Z"}, []string{"2026-02-29", "2026-13-01", "28.11.2026", ""}},
		`base="xs:dateTime"`: {[]string{"2026-11-28T09:00:00", "1999-05-31T13:20:00.000-05:00"}, []string{"2026-11-28", "2026-11-28T25:00:00"}},
		`base="xs:time"`:     {[]string{"09:00:00", "23:59:59.999"}, []string{"24:01:00", "9:00"}},
		`base="xs:boolean"`:  {[]string{"true", "0"}, []string{"yes", ""}},
		`base="xs:NMTOKEN"`:  {[]string{"US", "a-b.c"}, []string{"a b", ""}},
		`base="xs:string"><xs:pattern value="\d{3}-[A-Z]{2}"/`:                       {[]string{"872-AA"}, []string{"872-aa", "x872-AA", "87-AA"}},
		`base="xs:string"><xs:enumeration value="a"/><xs:enumeration value="b"/`:     {[]string{"a", "b"}, []string{"", "c"}},
		`base="xs:string"><xs:minLength value="1"/><xs:maxLength value="2"/`:         {[]string{"é", "éé"}, []string{"", "abc"}},
		`base="xs:positiveInteger"><xs:maxExclusive value="100"/`:                    {[]string{"99", "1"}, []string{"100", "0"}},
		`base="xs:decimal"><xs:totalDigits value="4"/><xs:fractionDigits value="2"/`: {[]string{"12.34", "0012.30", "1000"}, []string{"123.45", "1.234", "10000"}},
		`base="xs:double"><xs:minInclusive value="-1.5"/`:                            {[]string{"-1.5", "0"}, []string{"-2"}},
		`base="xs:date"><xs:minInclusive value="2026-01-01"/`:                        {[]string{"2026-01-01"}, []string{"2025-12-31"}},
		`base="xs:string"><xs:pattern value="a^b$"/`:                                 {[]string{"a^b$"}, []string{"ab"}},
	} {
		root, err := parse(t, `<xs:element name="R"><xs:simpleType><xs:restriction `+restriction+`></xs:restriction></xs:simpleType></xs:element>`)
		if err != nil {
			t.Errorf("%s: %v", restriction, err)
			continue
		}
		for _, v := range values.good {
			if why := root.Simple.Check(v); why != "" {
				t.Errorf("%s refuses %q: %s", restriction, v, why)
			}
		}
		for _, v := range values.bad {
			if root.Simple.Check(v) == "" {
				t.Errorf("%s takes %q", restriction, v)
			}
		}
	}
}
