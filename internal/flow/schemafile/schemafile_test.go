package schemafile_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/schemafile"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

const orders = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:o="urn:o" targetNamespace="urn:o">
<xs:include schemaLocation="parts\types.xsd"/><xs:import namespace="urn:none" schemaLocation="http://example.com/none.xsd"/>
<xs:element name="Order" type="o:Order"/></xs:schema>`

const orderType = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:o"><xs:complexType name="Order"><xs:sequence>
<xs:element name="Größe" type="xs:int"/></xs:sequence></xs:complexType></xs:schema>`

func folder(files map[string]string) fstest.MapFS {
	all := fstest.MapFS{}
	for name, content := range files {
		all[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return all
}

func TestASchemaIsCarriedWithTheFilesThatItNamesInWhateverCharset(t *testing.T) {
	t.Parallel()
	windows := `<?xml version="1.0" encoding="iso-8859-1"?>` + strings.NewReplacer("ö", "\xf6", "ß", "\xdf").Replace(orderType)
	s, err := schemafile.Read(folder(map[string]string{"a/orders.xsd": orders, "a/parts/types.xsd": windows, "a/other.xsd": "<x/>"}), "./a/orders.xsd")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.Names(), " "); got != "a/orders.xsd a/parts/types.xsd" {
		t.Errorf("it carries %s", got)
	}
	read, err := s.XSD()
	if err != nil {
		t.Fatal(err)
	}
	root, err := read.Element(xsd.Name{Space: "urn:o", Local: "Order"})
	if err != nil || root.Content.Parts[0].Element.Name.Local != "Größe" {
		t.Errorf("the root is %+v, %v", root, err)
	}
	j, err := schemafile.Read(folder(map[string]string{"s.json": `{"$ref": "parts/id.json"}`, "parts/id.json": "\uFEFF" + `{"type": "integer"}`}), "s.json")
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := j.JSON(false)
	if err != nil || compiled.Check([]byte("1")) != nil || compiled.Check([]byte(`"a"`)) == nil {
		t.Errorf("the JSON Schema does not hold what its part says: %v", err)
	}
}

func TestSchemasThatCannotBeCarriedAreRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(" ", schemafile.BytesMost)
	for name, c := range map[string]struct {
		files      map[string]string
		file, want string
	}{
		"no file":           {map[string]string{}, "a.xsd", "read the schema"},
		"outside":           {map[string]string{}, "../a.xsd", "not below the folder"},
		"absolute":          {map[string]string{}, "/etc/passwd", "not below the folder"},
		"no XML":            {map[string]string{"a.xsd": "text"}, "a.xsd", ""},
		"no JSON":           {map[string]string{"a.json": "text"}, "a.json", "no JSON"},
		"a type is missing": {map[string]string{"orders.xsd": orders}, "orders.xsd", "Order"},
		"too long":          {map[string]string{"a.xsd": orders + long}, "a.xsd", "too long"},
		"too long together": {map[string]string{"a.xsd": orders, "parts/types.xsd": orderType + long[:len(long)-300]}, "a.xsd", "too long"},
		"other characters":  {map[string]string{"a.xsd": "<a>\xff</a>"}, "a.xsd", "0xFF"},
	} {
		_, err := schemafile.Read(folder(c.files), c.file)
		if f, is := fault.Of(err); !is || !strings.Contains(f.Message, c.want) || f.Remedy == "" {
			t.Errorf("%s: it is refused as %v", name, err)
		}
	}
}

func TestADefinitionThatDoesNotCarryItsSchemaIsRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []schemafile.Schema{
		{},
		{File: "a.xsd"},
		{File: "a.xsd", Documents: map[string]string{"b.xsd": "<x/>"}},
		{File: "a.xsd", Documents: map[string]string{"a.xsd": orders, "../b.xsd": "<x/>"}},
		{File: "a.xsd", Documents: map[string]string{"a.xsd": orders + strings.Repeat(" ", schemafile.BytesMost)}},
	} {
		if _, err := s.XSD(); err == nil {
			t.Errorf("%+.100v is taken", s)
		}
		if f := s.Check(); f == nil || f.Remedy == "" {
			t.Errorf("%+.100v is taken as %v", s, f)
		}
	}
}
