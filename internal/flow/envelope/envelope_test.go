package envelope_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/envelope"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

const schema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="http://schemas.microsoft.com/BizTalk/2003" targetNamespace="urn:env">
<xs:annotation><xs:appinfo><b:schemaInfo is_envelope="yes"/></xs:appinfo></xs:annotation>
<xs:element name="Batch"><xs:annotation><xs:appinfo><b:recordInfo body_xpath="/*[local-name()='Batch' and namespace-uri()='urn:env']/*[local-name()='Orders' and namespace-uri()='']"/></xs:appinfo></xs:annotation>
<xs:complexType><xs:sequence><xs:element name="Source" type="xs:string"/><xs:element name="Orders"><xs:complexType><xs:sequence><xs:any maxOccurs="unbounded"/></xs:sequence></xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element>
<xs:element name="Inner"><xs:annotation><xs:appinfo><b:recordInfo body_xpath="/*[local-name()='Inner' and namespace-uri()='urn:env']"/></xs:appinfo></xs:annotation><xs:complexType/></xs:element></xs:schema>`

func envelopes(t *testing.T) []envelope.Envelope {
	t.Helper()
	source, err := xsd.Parse("env.xsd", []byte(schema), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := envelope.FromSchema(source)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

type collected struct {
	messages, types []string
	bad             []interchange.Bad
	current         bytes.Buffer
	aborted         int
}

func (c *collected) Begin(int64) (io.Writer, error) { c.current.Reset(); return &c.current, nil }

func (c *collected) End(m interchange.Message) error {
	c.messages, c.types = append(c.messages, c.current.String()), append(c.types, m.Type)
	return nil
}

func (c *collected) Abort(int64) error { c.aborted++; return nil }

func (c *collected) Bad(bad interchange.Bad) error { c.bad = append(c.bad, bad); return nil }

func split(t *testing.T, body string, settings envelope.Settings) (*collected, envelope.Summary, error) {
	t.Helper()
	c := &collected{}
	summary, err := envelope.Split(t.Context(), strings.NewReader(body), settings, c)
	return c, summary, err
}

// names gives the names of a document as encoding/xml reads them.
func names(t *testing.T, document string) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(document))
	var all []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(all, " ")
		}
		if err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		if start, ok := token.(xml.StartElement); ok {
			all = append(all, "{"+start.Name.Space+"}"+start.Name.Local)
		}
	}
}

func TestMessagesAreTakenOutOfTheirEnvelopesWithTheBytesThatTheyHave(t *testing.T) {
	t.Parallel()
	body := `<?xml version="1.0"?><e:Batch xmlns:e="urn:env" xmlns:o="urn:orders" xmlns:d="urn:d&amp;&quot;"><Source>x<Orders><no/></Orders></Source><Orders>
 <o:Order  id='1' ><Line><![CDATA[<x>]]></Line ></o:Order>
 <e:Inner><Order xmlns="urn:orders" xmlns:d="urn:own"/></e:Inner><e:Inner xmlns="urn:default"><Sub/></e:Inner><plain/></Orders></e:Batch>`
	c, summary, err := split(t, body, envelope.Settings{Envelopes: envelopes(t)})
	if err != nil {
		t.Fatal(err)
	}
	if summary.Messages != 4 || summary.Envelope != "urn:env#Batch" || strings.Join(c.types, " ") != "urn:orders#Order urn:orders#Order urn:default#Sub plain" {
		t.Fatalf("the messages are of types %q, %+v", c.types, summary)
	}
	want := `<o:Order xmlns:e="urn:env" xmlns:o="urn:orders" xmlns:d="urn:d&amp;&quot;"  id='1' ><Line><![CDATA[<x>]]></Line ></o:Order>`
	if c.messages[0] != want {
		t.Errorf("the first message is\n%s\nand not\n%s", c.messages[0], want)
	}
	for i, want := range []string{"{urn:orders}Order {}Line", "{urn:orders}Order", "{urn:default}Sub", "{}plain"} {
		if got := names(t, c.messages[i]); got != want {
			t.Errorf("message %d alone has the names %s and not %s", i, got, want)
		}
	}
}

func TestADocumentWithoutAnEnvelopeIsOneMessage(t *testing.T) {
	t.Parallel()
	c, _, err := split(t, "<a>\n<b/>\r\n</a>\n", envelope.Settings{Envelopes: envelopes(t)})
	if err != nil || len(c.messages) != 1 || c.messages[0] != "<a>\n<b/>\r\n</a>" {
		t.Errorf("it gives %q, %v", c.messages, err)
	}
}

func TestMessagesOfUnknownTypesAreRefusedOrPassedOver(t *testing.T) {
	t.Parallel()
	body := `<e:Batch xmlns:e="urn:env"><Orders><a/><b><c/></b><a/></Orders></e:Batch>`
	settings := envelope.Settings{Envelopes: envelopes(t), Documents: []string{"a"}}
	_, _, err := split(t, body, settings)
	if f, ok := fault.Of(err); !ok || !strings.Contains(f.Message, "message type b") || f.Place.Byte != int64(strings.Index(body, "<b>")) {
		t.Errorf("the unknown type is refused as %v", err)
	}
	settings.Recover = interchange.Messages
	c, summary, err := split(t, body, settings)
	if err != nil || summary.Messages != 2 || len(c.bad) != 1 || body[c.bad[0].From:c.bad[0].To] != "<b><c/></b>" {
		t.Errorf("with a recovery: %+v, bad %+v, %v", summary, c.bad, err)
	}
}

func TestAnEnvelopeWithoutItsBodyAndADocumentThatBreaksOffAreRefused(t *testing.T) {
	t.Parallel()
	settings := envelope.Settings{Envelopes: envelopes(t), Recover: interchange.Messages}
	if _, _, err := split(t, `<e:Batch xmlns:e="urn:env"><Source/></e:Batch>`, settings); err == nil || !strings.Contains(err.Error(), "no element at its body_xpath") {
		t.Errorf("without its body it is refused as %v", err)
	}
	c, _, err := split(t, `<e:Batch xmlns:e="urn:env"><Orders><a/><b><c></Orders></e:Batch>`, settings)
	if err == nil || len(c.messages) != 1 || c.aborted != 1 {
		t.Errorf("broken off: %d messages, %d taken back, %v", len(c.messages), c.aborted, err)
	}
}

func TestSchemasThatDescribeNoEnvelopeAreRefused(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		strings.Replace(schema, `is_envelope="yes"`, "", 1):                                      "no envelope",
		strings.ReplaceAll(schema, "body_xpath", "other"):                                        "no root",
		strings.Replace(schema, "/*[local-name()='Batch' and namespace-uri()='urn:env']", "", 1): "does not lead",
		strings.Replace(schema, " and namespace-uri()=''", "", 1):                                "namespace-uri() is missing",
	} {
		source, err := xsd.Parse("env.xsd", []byte(body), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = envelope.FromSchema(source)
		if f, ok := fault.Of(err); !ok || !strings.Contains(f.Message, want) || f.Remedy == "" || f.File != "env.xsd" {
			t.Errorf("want %q, it is refused as %v", want, err)
		}
	}
}

func TestWhatIsWrappedIsSplitIntoTheSame(t *testing.T) {
	t.Parallel()
	e := envelopes(t)
	messages := []string{`<o:Order xmlns:o="urn:orders"><Line>é</Line></o:Order>`, "<plain>\n</plain>", `<Order xmlns="urn:env"/>`}
	for _, output := range []text.Output{{}, {Declaration: true}, {Charset: "utf-16", Mark: true, Declaration: true}, {Charset: "iso-8859-1", Declaration: true}} {
		var body bytes.Buffer
		w, err := envelope.NewWrapper(&body, &e[0], output)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			if err := w.Add(strings.NewReader(`<?xml version="1.0" encoding="utf-8"?><!-- c -->`+m+"\n"), "", nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		c, _, err := split(t, body.String(), envelope.Settings{Envelopes: e})
		if err != nil || len(c.messages) != len(messages) {
			t.Fatalf("%+v: %q gives %q, %v", output, body.String(), c.messages, err)
		}
		for i, m := range messages {
			if got, want := names(t, c.messages[i]), names(t, m); got != want {
				t.Errorf("%+v: message %d has the names %s and not %s", output, i, got, want)
			}
		}
		if !output.Declaration && !strings.HasPrefix(body.String(), "<env0:Batch") {
			t.Errorf("without settings the body begins with %.30q: UTF-8 without mark and declaration is the default", body.String())
		}
	}
}
