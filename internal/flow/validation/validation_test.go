package validation_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/validation"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

const head = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="urn:x" targetNamespace="urn:x">`

func validator(t testing.TB, content string) *validation.Validator {
	t.Helper()
	schema, err := xsd.Parse("x.xsd", []byte(head+content+`</xs:schema>`), nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := validation.New(schema)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const order = `<xs:element name="Order"><xs:complexType><xs:sequence><xs:element name="Id" type="xs:int"/>
<xs:element name="Note" type="xs:string" minOccurs="0"/><xs:choice><xs:element name="Cash"><xs:complexType/></xs:element><xs:element name="Card" type="Card" nillable="true"/></xs:choice>
<xs:element name="Line" maxOccurs="3"><xs:complexType><xs:all><xs:element name="Part"><xs:simpleType><xs:restriction base="xs:string"><xs:pattern value="[A-Z]+"/></xs:restriction></xs:simpleType></xs:element>
<xs:element name="Count" type="xs:positiveInteger" minOccurs="0" default="1"/></xs:all><xs:attribute name="no" type="xs:int" use="required"/></xs:complexType></xs:element>
<xs:any namespace="##other" processContents="skip" minOccurs="0"/></xs:sequence><xs:attribute name="kind" fixed="web"/></xs:complexType></xs:element>
<xs:complexType name="Card"><xs:simpleContent><xs:extension base="xs:string"><xs:attribute name="type" type="xs:string"/></xs:extension></xs:simpleContent></xs:complexType>`

func TestMessagesAreHeldAgainstTheirSchema(t *testing.T) {
	t.Parallel()
	v := validator(t, order)
	line := `<Line no="1"><Count>2</Count><Part>AB</Part></Line>`
	for content, want := range map[string]string{
		`<Id>1</Id><Cash/>` + line: "",
		`<Id> 1 </Id><Note>x</Note><Card type="v">9</Card>` + line + line + line:                         "",
		`<Id>1</Id><Cash/><Line no="1"><Part>A</Part><Count/></Line><o:x xmlns:o="urn:o"><a/>text</o:x>`: "",
		`<Id>1</Id><Card xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:nil="true"/>` + line:      "",
		``:                                `/{urn:x}Order: the element ends too early; expected element Id`,
		`<Id>x</Id>`:                      `/{urn:x}Order/Id: "x" is no xs:int; expected xs:int`,
		`<Id>1</Id>` + line:               `/{urn:x}Order: element Line is not expected here; expected element Card, Cash, Note`,
		`<Id>1</Id><Id>2</Id>`:            `/{urn:x}Order: element Id is not expected here; expected element Card, Cash, Note`,
		`<Id>1</Id><Cash/>`:               `/{urn:x}Order: the element ends too early; expected element Line`,
		`<Id>1</Id><Cash>5</Cash>`:        `/{urn:x}Order/Cash: text stands between the elements; expected the end of the element`,
		`<Id>1</Id>pay<Cash/>`:            `/{urn:x}Order: text stands between the elements; expected element Card, Cash, Note`,
		`<Id>1</Id><Card no="1"/>`:        `/{urn:x}Order/Card: attribute no is not declared; expected attribute type`,
		`<Id>1</Id><Card><b/></Card>`:     `/{urn:x}Order/Card: the element has a value, and no elements in it, but b begins`,
		`<Id>1</Id><Cash/><Line/>`:        `/{urn:x}Order/Line: attribute no is missing; expected attribute no`,
		`<Id>1</Id><Cash/><Line no="a"/>`: `/{urn:x}Order/Line/@no: "a" is no xs:int; expected xs:int`,
		`<Id>1</Id><Cash/><Line no="1"><Part>ab</Part></Line>`:                   `/{urn:x}Order/Line/Part: "ab" breaks pattern [A-Z]+; expected xs:string`,
		`<Id>1</Id><Cash/><Line no="1"><Count>2</Count></Line>`:                  `/{urn:x}Order/Line: the element ends too early; expected element Part`,
		`<Id>1</Id><Cash/>` + line + line + line + line:                          `/{urn:x}Order: element Line is not expected here; expected element any of ##other, or the end of the element`,
		`<Id>1</Id><Cash/>` + line + `<x xmlns="urn:x"/>`:                        `/{urn:x}Order: element {urn:x}x is not expected here; expected element Line, any of ##other, or the end of the element`,
		`<Id xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:nil="true"/>`: `/{urn:x}Order/Id: xsi:nil stands at an element that may not be nil`,
		`<Id xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:type="b"/>`:   `/{urn:x}Order/Id: xsi:type names another type, which cannot be checked`,
	} {
		err := v.Check(strings.NewReader(`<x:Order xmlns:x="urn:x" kind="web">`+"\n"+content+`</x:Order>`), "")
		f, _ := fault.Of(err)
		switch {
		case err == nil && want == "":
		case f == nil || f.Place.Line < 1 || f.Place.Column < 1 || f.Remedy == "":
			t.Errorf("%s: %v, and not a fault %q", content, err, want)
		case !strings.Contains(strings.ReplaceAll(err.Error(), "field ", ""), want) || want == "":
			t.Errorf("%s:\n%v\nand not\n%s", content, err, want)
		}
	}
	for document, want := range map[string]string{
		`<Order/>`:                               "the schema has no root element of this name; expected element {urn:x}Order",
		`<x:Order xmlns:x="urn:x" kind="post"/>`: "the value is fixed as web",
	} {
		if err := v.Check(strings.NewReader(document), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, and not %q", document, err, want)
		}
	}
}

func TestTypesMayContainThemselves(t *testing.T) {
	t.Parallel()
	v := validator(t, `<xs:element name="Node" type="Node"/><xs:complexType name="Node"><xs:sequence><xs:group ref="Inner" minOccurs="0" maxOccurs="2"/></xs:sequence></xs:complexType>
<xs:group name="Inner"><xs:choice><xs:element name="leaf" type="xs:int"/><xs:element ref="Node"/><xs:element name="list"><xs:complexType><xs:group ref="Inner"/></xs:complexType></xs:element></xs:choice></xs:group>`)
	if err := v.Check(strings.NewReader(`<n:Node xmlns:n="urn:x"><list><n:Node><leaf>1</leaf><n:Node/></n:Node></list></n:Node>`), ""); err != nil {
		t.Error(err)
	}
	err := v.Check(strings.NewReader(`<n:Node xmlns:n="urn:x"><n:Node><leaf>1</leaf><leaf>2</leaf><leaf>3</leaf></n:Node></n:Node>`), "")
	if err == nil || !strings.Contains(err.Error(), "/{urn:x}Node/{urn:x}Node: element leaf is not expected here; expected the end of the element") {
		t.Errorf("the third is refused as %v", err)
	}
}

func TestWhatCannotBeCheckedIsSaidWhenTheSchemaIsRead(t *testing.T) {
	t.Parallel()
	v := validator(t, `<xs:element name="A"><xs:complexType><xs:sequence><xs:any maxOccurs="2"/><xs:any processContents="skip"/></xs:sequence></xs:complexType>
<xs:key name="k"><xs:selector xpath="a"/><xs:field xpath="b"/></xs:key></xs:element><xs:element name="B" substitutionGroup="A" type="L"/>
<xs:simpleType name="L"><xs:list itemType="xs:int"/></xs:simpleType>`)
	got := []string{}
	for _, f := range v.Unchecked() {
		if f.File != "x.xsd" || f.Place.Line < 1 || f.Remedy == "" {
			t.Errorf("%+v has no place or remedy", f)
		}
		got = append(got, f.Message)
	}
	want := []string{
		"the content of elements that a wildcard takes is not checked", "a key is not checked", "element B in place of A is not checked",
		"the type of the items of a list is not checked",
	}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("it says %q", got)
	}
}

// model is a content model with the regular expression of its words, of one letter an element.
func model(t *rapid.T, depth int) (declared, expression string) {
	least := rapid.IntRange(0, 2).Draw(t, "least")
	most := least + rapid.IntRange(0, 2).Draw(t, "more")
	occurs, times := fmt.Sprintf(` minOccurs="%d" maxOccurs="%d"`, least, most), fmt.Sprintf("{%d,%d}", least, most)
	if rapid.IntRange(0, 4).Draw(t, "unbounded") == 0 {
		occurs, times = fmt.Sprintf(` minOccurs="%d" maxOccurs="unbounded"`, least), fmt.Sprintf("{%d,}", least)
	}
	if depth == 0 || rapid.IntRange(0, 2).Draw(t, "leaf") == 0 {
		name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
		return `<xs:element name="` + name + `" type="xs:string"` + occurs + `/>`, "(?:" + name + ")" + times
	}
	order := rapid.SampledFrom([]string{"sequence", "choice"}).Draw(t, "order")
	inner, parts := "", []string{}
	for range rapid.IntRange(1, 3).Draw(t, "parts") {
		d, e := model(t, depth-1)
		inner, parts = inner+d, append(parts, e)
	}
	between := ""
	if order == "choice" {
		between = "|"
	}
	return "<xs:" + order + occurs + ">" + inner + "</xs:" + order + ">", "(?:" + strings.Join(parts, between) + ")" + times
}

func TestContentIsTakenAsARegularExpressionTakesIt(t *testing.T) {
	t.Parallel()
	taken := 0
	rapid.Check(t, func(r *rapid.T) {
		declared, expression := model(r, 3)
		if strings.HasPrefix(declared, "<xs:element") {
			return
		}
		v := validator(t, `<xs:element name="r"><xs:complexType>`+declared+`</xs:complexType></xs:element>`)
		compiled, err := regexp.Compile("^" + expression + "$")
		if err != nil {
			return // a repetition of more than 1,000
		}
		for range 20 {
			word := rapid.StringMatching("[abc]{0,6}").Draw(r, "word")
			document := `<x:r xmlns:x="urn:x">`
			for _, name := range word {
				document += "<" + string(name) + "/>"
			}
			err := v.Check(strings.NewReader(document+`</x:r>`), "")
			if want := compiled.MatchString(word); want != (err == nil) {
				r.Fatalf("%s takes %q: %v, and by %s %v", declared, word, err, expression, want)
			}
			if err == nil {
				taken++
			}
		}
	})
	if taken < 100 {
		t.Errorf("only %d words were taken", taken)
	}
}

func TestASchemaThatLeadsToAPlaceInManyWaysTakesLongContent(t *testing.T) {
	t.Parallel()
	v := validator(t, `<xs:element name="r"><xs:complexType><xs:sequence minOccurs="2" maxOccurs="unbounded"><xs:element name="a" minOccurs="2" maxOccurs="unbounded"/>
<xs:sequence minOccurs="0" maxOccurs="unbounded"><xs:element name="a" minOccurs="0" maxOccurs="unbounded"/><xs:element name="a" minOccurs="0" maxOccurs="unbounded"/>
</xs:sequence></xs:sequence></xs:complexType></xs:element>`)
	for length, isTaken := range map[int]bool{3: false, 4: true, 5: true, 10_000: true} {
		err := v.Check(strings.NewReader(`<x:r xmlns:x="urn:x">`+strings.Repeat("<a/>", length)+`</x:r>`), "")
		if (err == nil) != isTaken {
			t.Errorf("%d elements: %v", length, err)
		}
	}
}

func TestASchemaOfTooManyReadingsIsNamed(t *testing.T) {
	t.Parallel()
	part := strings.Repeat(`<xs:element name="a" minOccurs="0" maxOccurs="400"/>`, 8)
	v := validator(t, `<xs:element name="r"><xs:complexType><xs:sequence>`+part+`</xs:sequence></xs:complexType></xs:element>`)
	err := v.Check(strings.NewReader(`<x:r xmlns:x="urn:x">`+strings.Repeat("<a/>", 400)+`</x:r>`), "")
	if err == nil || !strings.Contains(err.Error(), "readings of the content") {
		t.Errorf("it ends with %v", err)
	}
}

// Any document ends, with a fault or without, whatever the schema.
func FuzzDocumentsAreHeldAgainstSchemas(f *testing.F) {
	f.Add([]byte(head+order+`</xs:schema>`), `<x:Order xmlns:x="urn:x"><Id>1</Id><Cash/><Line no="1"><Part>A</Part></Line></x:Order>`)
	f.Add([]byte(head+`<xs:element name="a" type="T"/><xs:complexType name="T"><xs:complexContent><xs:extension base="T"/></xs:complexContent></xs:complexType></xs:schema>`), `<a/>`)
	f.Add([]byte(head+`<xs:element name="a"><xs:complexType><xs:choice maxOccurs="unbounded"><xs:sequence maxOccurs="unbounded"/><xs:any/></xs:choice></xs:complexType></xs:element></xs:schema>`), `<a xmlns="urn:x"><b/></a>`)
	f.Fuzz(func(t *testing.T, body []byte, document string) {
		schema, err := xsd.Parse("x.xsd", body, nil)
		if err != nil {
			return
		}
		v, err := validation.New(schema)
		if err == nil {
			err = v.Check(strings.NewReader(document), "")
		}
		if found, is := fault.Of(err); err != nil && (!is || found.Remedy == "") {
			t.Fatalf("it ends with %v, which is no fault with a remedy", err)
		}
	})
}
