package xsd_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// Any schema is read, or refused as a fault of its file. Values are held against each of its types without an end that is none.
func FuzzParse(f *testing.F) {
	const head = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" xmlns="urn:x" targetNamespace="urn:x">`
	for _, content := range []string{
		``, `<xs:element name="a" type="xs:int"/>`, `<xs:element name="a" type="T"/><xs:complexType name="T"><xs:sequence><xs:element ref="a" minOccurs="0"/></xs:sequence></xs:complexType>`,
		`<xs:element name="a"><xs:simpleType><xs:restriction base="xs:string"><xs:pattern value="[a-z]{1,3}|\d+"/><xs:enumeration value="x"/><xs:maxLength value="9"/></xs:restriction></xs:simpleType></xs:element>`,
		`<xs:group name="g"><xs:choice><xs:element name="b"/><xs:group ref="g"/></xs:choice></xs:group><xs:element name="a"><xs:complexType><xs:group ref="g"/></xs:complexType></xs:element>`,
		`<xs:element name="a"><xs:complexType><xs:complexContent><xs:extension base="B"><xs:attribute name="c" use="required"/></xs:extension></xs:complexContent></xs:complexType></xs:element><xs:complexType name="B" mixed="true"><xs:all/></xs:complexType>`,
		`<xs:attributeGroup name="g"><xs:attributeGroup ref="g"/></xs:attributeGroup><xs:element name="a"><xs:complexType><xs:attributeGroup ref="g"/></xs:complexType></xs:element>`,
		`<xs:simpleType name="s"><xs:union memberTypes="xs:int s"/></xs:simpleType><xs:element name="a" type="s"/>`,
		`<xs:element name="a"><xs:simpleType><xs:restriction base="xs:decimal"><xs:totalDigits value="3"/><xs:minInclusive value="1e5"/></xs:restriction></xs:simpleType></xs:element>`,
		`<xs:element name="a"><xs:annotation><xs:appinfo><b:recordInfo structure="positional"/><b:properties><b:property name="p:q" xpath="/*"/></b:properties></xs:appinfo></xs:annotation></xs:element>`,
	} {
		f.Add([]byte(head+content+`</xs:schema>`), "12")
	}
	f.Fuzz(func(t *testing.T, body []byte, value string) {
		schema, err := xsd.Parse("x.xsd", body, nil)
		if err != nil {
			requireFault(t, err)
			return
		}
		for _, name := range schema.Elements {
			root, err := schema.Element(name)
			if err != nil {
				requireFault(t, err)
				continue
			}
			check(root, value)
		}
	})
}

func requireFault(t *testing.T, err error) {
	t.Helper()
	if f, is := fault.Of(err); !is || f.File != "x.xsd" || f.Remedy == "" {
		t.Fatalf("%v is no fault of the file", err)
	}
}

func check(e *xsd.Element, value string) {
	if e.Simple != nil {
		_ = e.Simple.Check(value)
	}
	for _, a := range e.Attributes {
		if a.Simple != nil {
			_ = a.Simple.Check(value)
		}
	}
	if e.Content != nil {
		checkGroup(e.Content, value)
	}
}

func checkGroup(g *xsd.Group, value string) {
	for _, part := range g.Parts {
		if part.Element != nil {
			check(part.Element, value)
		} else {
			checkGroup(part.Group, value)
		}
	}
}
