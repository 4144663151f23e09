package typing_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/typing"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

const (
	orderStep = "/*[local-name()='Order' and namespace-uri()='urn:orders']"
	idPath    = orderStep + "/*[local-name()='Id' and namespace-uri()='']"
	datePath  = orderStep + "/@*[local-name()='date' and namespace-uri()='']"
)

func path(t testing.TB, written string) *typing.Path {
	t.Helper()
	p, err := typing.ParsePath(written)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPathsOfTheCanonicalFormAreRead(t *testing.T) {
	t.Parallel()
	for _, written := range []string{orderStep, idPath, datePath, `/*[local-name()="it's" and namespace-uri()='']`} {
		if got := path(t, written).String(); got != written {
			t.Errorf("%s is read as %s", written, got)
		}
	}
	if p := path(t, datePath); !p.IsAttribute || p.Steps[1] != (xsd.Name{Local: "date"}) {
		t.Errorf("the path of an attribute is %+v", p)
	}
	if got := path(t, ` /*[ local-name() = "A"  and  namespace-uri()="" ]`[1:]).String(); got != "/*[local-name()='A' and namespace-uri()='']" {
		t.Errorf("blanks and other quotes make it %s", got)
	}
}

func TestAnyOtherPathIsRefusedWithItsPlaceAndTheRemedy(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]struct {
		message string
		column  int
	}{
		"":                          {"empty", 1},
		"/Order/Id":                 {"not in the canonical form", 1},
		"//*[local-name()='Order']": {"// searches", 1},
		"/*[local-name()='Order']":  {"namespace-uri() is missing", 24},
		orderStep + "/*[position()=1 and local-name()='Id']": {"position()", len(orderStep) + 4},
		orderStep + "/Id": {"not in the canonical form", len(orderStep) + 1},
		datePath + idPath: {"behind an attribute", len(datePath) + 1},
		"/*[local-name()='Order' and namespace-uri()='u' and position()='1']": {"more than the two tests", 49},
	} {
		_, err := typing.ParsePath(written)
		f, ok := fault.Of(err)
		if !ok || !strings.Contains(f.Message, want.message) || f.Place.Column != want.column || !strings.Contains(f.Remedy, "/*[local-name()='Name'") {
			t.Errorf("%q is refused as %v at column %d, want %q at %d", written, err, f.Place.Column, want.message, want.column)
		}
	}
}

func promoted(t testing.TB, document string, paths ...string) typing.Result {
	t.Helper()
	var properties []typing.Property
	for _, written := range paths {
		properties = append(properties, typing.Property{Name: written, Path: path(t, written)})
	}
	result, err := typing.NewPromoter(properties).NewRun().Read(xmlscan.New(strings.NewReader(document), xmlscan.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestTheTypeIsThatOfTheRootAndValuesAreThoseOfThePaths(t *testing.T) {
	t.Parallel()
	document := `<o:Order xmlns:o="urn:orders" date="2026-11-28"><x><Id>not this</Id></x><Id>4&amp;<![CDATA[2]]></Id><Id>43</Id></o:Order>`
	result := promoted(t, document, idPath, datePath, orderStep+"/*[local-name()='None' and namespace-uri()='']")
	if result.Type != "urn:orders#Order" || len(result.Values) != 2 {
		t.Fatalf("the result is %+v", result)
	}
	if v := result.Values[0]; v.Property != 1 || v.Text != "2026-11-28" {
		t.Errorf("the attribute is %+v", v)
	}
	if v := result.Values[1]; v.Property != 0 || v.Text != "4&2" || v.Times != 2 {
		t.Errorf("the element is %+v", v)
	}
	if got := promoted(t, "<plain/>").Type; got != "plain" {
		t.Errorf("a root without a namespace has type %s", got)
	}
}

func TestALongValueIsCarriedAndNotPromoted(t *testing.T) {
	t.Parallel()
	for size, isLong := range map[int]bool{typing.PromotedMost: false, typing.PromotedMost + 1: true, 300_000: true, typing.KeptMost + 1: true} {
		result := promoted(t, `<o:Order xmlns:o="urn:orders"><Id>`+strings.Repeat("x", size)+`</Id></o:Order>`, idPath)
		if v := result.Values[0]; v.IsLong != isLong || v.Bytes != int64(size) || len(v.Text) != min(size, typing.KeptMost) || v.IsCut != (size > typing.KeptMost) {
			t.Errorf("a value of %d bytes has %d, long %v, and %d are kept", size, v.Bytes, v.IsLong, len(v.Text))
		}
	}
}

func TestTheAnnotationOfASchemaSaysWhatIsPromoted(t *testing.T) {
	t.Parallel()
	schema := func(path string) string {
		return `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" xmlns:p="urn:properties" targetNamespace="urn:orders">
<xs:element name="Order"><xs:annotation><xs:appinfo><b:properties><b:property name="p:OrderId" xpath="` + path + `"/><b:property distinguished="true" xpath="/any"/></b:properties></xs:appinfo></xs:annotation>
<xs:complexType><xs:sequence><xs:element name="Id" type="xs:int"/></xs:sequence></xs:complexType></xs:element></xs:schema>`
	}
	read := func(path string) ([]typing.Property, error) {
		source, err := xsd.Parse("order.xsd", []byte(schema(path)), nil)
		if err != nil {
			t.Fatal(err)
		}
		root, err := source.Root("")
		if err != nil {
			t.Fatal(err)
		}
		return typing.FromSchema(root)
	}
	properties, err := read(idPath)
	if err != nil || len(properties) != 1 || properties[0].Name != "OrderId" || properties[0].Namespace != "urn:properties" {
		t.Errorf("the properties are %+v, %v", properties, err)
	}
	_, err = read("/Order/Id")
	if f, ok := fault.Of(err); !ok || f.File != "order.xsd" || f.Place.Line != 2 || f.Field != "OrderId" {
		t.Errorf("another form of path is refused as %v", err)
	}
}
