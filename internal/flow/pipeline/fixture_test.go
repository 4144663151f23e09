package pipeline_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/pipeline"
)

const orderSchema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003"
 xmlns:p="urn:annotated" targetNamespace="urn:orders"><xs:element name="Order"><xs:annotation><xs:appinfo><b:properties>
<b:property name="p:Total" xpath="/*[local-name()='Order' and namespace-uri()='urn:orders']/*[local-name()='Total' and namespace-uri()='']"/>
<b:property distinguished="true" xpath="/*[local-name()='Order' and namespace-uri()='urn:orders']/*[local-name()='Remark' and namespace-uri()='']"/>
</b:properties></xs:appinfo></xs:annotation><xs:complexType><xs:sequence><xs:element name="Id" type="xs:string"/>
<xs:element name="Total" type="xs:decimal"/><xs:element name="Remark" type="xs:string" minOccurs="0"/></xs:sequence>
<xs:attribute name="date" type="xs:date"/></xs:complexType></xs:element></xs:schema>`

const batchSchema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" targetNamespace="urn:env">
<xs:annotation><xs:appinfo><b:schemaInfo is_envelope="yes"/></xs:appinfo></xs:annotation>
<xs:element name="Batch"><xs:annotation><xs:appinfo><b:recordInfo body_xpath="/*[local-name()='Batch' and namespace-uri()='urn:env']"/>
</xs:appinfo></xs:annotation><xs:complexType><xs:sequence><xs:any maxOccurs="unbounded"/></xs:sequence></xs:complexType></xs:element></xs:schema>`

// linesSchema describes a flat file: each line a message of two values.
const linesSchema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" targetNamespace="urn:lines">
<xs:annotation><xs:appinfo><b:schemaInfo standard="Flat File" root_reference="Line"/></xs:appinfo></xs:annotation>
<xs:element name="Line"><xs:annotation><xs:appinfo><b:recordInfo structure="delimited" child_delimiter_type="char" child_delimiter=";"
 child_order="infix"/></xs:appinfo></xs:annotation><xs:complexType><xs:sequence>
<xs:element name="No" type="xs:int"/><xs:element name="Name" type="xs:string"/></xs:sequence></xs:complexType></xs:element></xs:schema>`

// fileSchema describes a flat file that is one message of lines.
const fileSchema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" targetNamespace="urn:file">
<xs:annotation><xs:appinfo><b:schemaInfo standard="Flat File" root_reference="File"/></xs:appinfo></xs:annotation>
<xs:element name="File"><xs:annotation><xs:appinfo><b:recordInfo structure="delimited" child_delimiter_type="hex" child_delimiter="0x0A"
 child_order="postfix"/></xs:appinfo></xs:annotation><xs:complexType><xs:sequence><xs:element name="Line" maxOccurs="unbounded"><xs:annotation>
<xs:appinfo><b:recordInfo structure="delimited" child_delimiter_type="char" child_delimiter=";" child_order="infix"/></xs:appinfo></xs:annotation>
<xs:complexType><xs:sequence><xs:element name="No" type="xs:int"/><xs:element name="Name" type="xs:string"/></xs:sequence></xs:complexType>
</xs:element></xs:sequence></xs:complexType></xs:element></xs:schema>`

const headerSchema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" targetNamespace="urn:head">
<xs:annotation><xs:appinfo><b:schemaInfo standard="Flat File" root_reference="Head"/></xs:appinfo></xs:annotation>
<xs:element name="Head"><xs:annotation><xs:appinfo><b:recordInfo structure="delimited" tag_name="HEAD" child_delimiter_type="hex"
 child_delimiter="0x0A" child_order="postfix"/></xs:appinfo></xs:annotation><xs:complexType><xs:sequence>
<xs:element name="Sender" type="xs:string"/></xs:sequence></xs:complexType></xs:element></xs:schema>`

const jsonSchema = `{"$id": "https://shop.example/order.json", "type": "object", "required": ["id"],
 "properties": {"id": {"type": "integer"}, "buyer": {"type": "object"}, "day": {"type": "string", "format": "date"}}}`

// schema is the schema of a message type as a definition carries it.
func schema(file, text string) map[string]any {
	return map[string]any{"file": file, "documents": map[string]string{file: text}}
}

func messageTypes() map[string]any {
	return map[string]any{
		"urn:orders#Order": map[string]any{
			"schema": schema("order.xsd", orderSchema),
			"promotions": map[string]string{
				"urn:p#Id":   "/*[local-name()='Order' and namespace-uri()='urn:orders']/*[local-name()='Id' and namespace-uri()='']",
				"urn:p#Date": "/*[local-name()='Order' and namespace-uri()='urn:orders']/@*[local-name()='date' and namespace-uri()='']",
			},
		},
		"urn:env#Batch":   map[string]any{"schema": schema("batch.xsd", batchSchema)},
		"urn:lines#Line":  map[string]any{"schema": schema("lines.xsd", linesSchema)},
		"urn:head#Head":   map[string]any{"schema": schema("head.xsd", headerSchema)},
		"urn:other#Thing": nil,
		"urn:file#File": map[string]any{
			"schema": schema("file.xsd", fileSchema),
			"written": map[string]string{
				"urn:p#First": "/*[local-name()='File' and namespace-uri()='urn:file']/*[local-name()='Line' and namespace-uri()='']" +
					"/*[local-name()='Name' and namespace-uri()='']",
			},
		},
		"order": map[string]any{
			"format": "json", "schema": schema("order.json", jsonSchema),
			"promotions": map[string]string{"urn:p#Id": "/id", "urn:p#Buyer": "/buyer/name"},
			"written":    map[string]string{"urn:p#Last": "/lines/1"},
		},
	}
}

func types(t testing.TB, messageTypes map[string]any) *pipeline.Types {
	t.Helper()
	all, err := pipeline.NewTypes(encode(t, messageTypes), json.RawMessage(`{"urn:p": {"properties": {"Id": {}, "Date": {"sensitive": true}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func encode(t testing.TB, value any) json.RawMessage {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// receive compiles a pipeline of stages written as JSON.
func receive(t testing.TB, stages string) *pipeline.Receive {
	t.Helper()
	p, err := pipeline.CompileReceive(defined(t, "receive", stages), types(t, messageTypes()), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func defined(t testing.TB, direction, stages string) pipeline.Definition {
	t.Helper()
	d := pipeline.Definition{Name: "P", Direction: direction}
	if err := json.Unmarshal([]byte(stages), &d.Stages); err != nil {
		t.Fatal(err)
	}
	return d
}

// body is a source of these bytes.
func body(content string) pipeline.Source {
	return pipeline.Source{Size: int64(len(content)), Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

// taken is a message as a sink got it.
type taken struct {
	pipeline.Message
	body    string
	failure error
}

// collected is a sink that keeps what it gets, and holds the pipeline to the order of its calls.
type collected struct {
	good, bad []taken
	open      map[int64]*bytes.Buffer
	last      int64
}

func (c *collected) Begin(number int64) (io.Writer, error) {
	if c.open == nil {
		c.open = map[int64]*bytes.Buffer{}
	}
	if _, again := c.open[number]; !again && number != c.last+1 {
		return nil, fmt.Errorf("message %d begins behind %d", number, c.last)
	}
	c.last = max(c.last, number)
	c.open[number] = &bytes.Buffer{}
	return c.open[number], nil
}

func (c *collected) End(m pipeline.Message) error {
	b, isOpen := c.open[m.Number]
	if !isOpen {
		return fmt.Errorf("message %d ends and was not begun", m.Number)
	}
	delete(c.open, m.Number)
	c.good = append(c.good, taken{Message: m, body: b.String()})
	return nil
}

func (c *collected) Bad(m pipeline.Message, raw []byte, failure error) error {
	content := string(raw)
	b, isOpen := c.open[m.Number]
	switch {
	case raw == nil && !isOpen:
		return fmt.Errorf("bad message %d has no body", m.Number)
	case raw == nil:
		content = b.String()
	case !isOpen && m.Number != c.last+1:
		return fmt.Errorf("bad message %d comes behind %d", m.Number, c.last)
	}
	c.last = max(c.last, m.Number)
	delete(c.open, m.Number)
	c.bad = append(c.bad, taken{Message: m, body: content, failure: failure})
	return nil
}

func run(t testing.TB, p *pipeline.Receive, source pipeline.Source) (*collected, error) {
	t.Helper()
	c := &collected{}
	err := p.Run(t.Context(), source, c)
	if err == nil && len(c.open) > 0 {
		t.Errorf("%d messages were begun and not ended", len(c.open))
	}
	return c, err
}

func (c *collected) bodies() string {
	var all []string
	for _, m := range c.good {
		all = append(all, m.body)
	}
	return strings.Join(all, "|")
}

// requireFailure holds that an error is a failure of this code, with a text in its message and a remedy.
func requireFailure(t testing.TB, err error, code, text string) {
	t.Helper()
	_ = requireFault(t, err, code, text)
}

// requireFault gives the fault of it too.
func requireFault(t testing.TB, err error, code, text string) *fault.Fault {
	t.Helper()
	failure, is := errors.AsType[*adapter.Failure](err)
	if !is {
		t.Fatalf("the error is no failure: %v", err)
	}
	f, hasFault := fault.Of(err)
	if !strings.HasPrefix(failure.Code, code) || !strings.Contains(err.Error(), text) || !hasFault || f.Remedy == "" {
		t.Fatalf("the failure is %v, with fault %+v, and not %s with %q and a remedy", err, f, code, text)
	}
	return f
}

func requireProperties(t testing.TB, of string, got, want map[string]any) {
	t.Helper()
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s are %v and not %v", of, got, want)
	}
}

func packedBy(t testing.TB, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, content)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
