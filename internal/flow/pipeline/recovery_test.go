package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/fault"
)

// requireBad holds that one message is bad, with this body and code.
func requireBad(t *testing.T, c *collected, i int, content, code, text string) {
	t.Helper()
	_ = requireBadFault(t, c, i, content, code, text)
}

// requireBadFault gives its fault too.
func requireBadFault(t *testing.T, c *collected, i int, content, code, text string) *fault.Fault {
	t.Helper()
	if len(c.bad) <= i {
		t.Fatalf("%d messages are bad, and not %d", len(c.bad), i+1)
	}
	b := c.bad[i]
	if b.body != content {
		t.Errorf("bad message %d is %.200q and not %.200q", i, b.body, content)
	}
	f := requireFault(t, b.failure, code, text)
	if f.Number != b.Number {
		t.Errorf("bad message %d has number %d, and %d in its fault", i, b.Number, f.Number)
	}
	return f
}

const recoverXML = `{"disassemble": [{"component": "xml-disassembler", "settings": {"recoverable": true, "documents": ["urn:orders#Order"]}}]}`

func TestMessagesOfUnknownTypesAreSuspendedWithAllThatTheySay(t *testing.T) {
	t.Parallel()
	content := `<e:Batch xmlns:e="urn:env" xmlns:n="urn:n">` + order + `<n:Other><e:x/></n:Other>` + order + `</e:Batch>`
	c, err := run(t, receive(t, recoverXML), body(content))
	if err != nil || len(c.good) != 2 || c.good[1].Number != 3 || c.good[1].Promoted["urn:p#Id"] != "4711" {
		t.Fatalf("%d messages go on, %v", len(c.good), err)
	}
	requireBad(t, c, 0, `<n:Other xmlns:e="urn:env" xmlns:n="urn:n"><e:x/></n:Other>`, "receive.record", "message type urn:n#Other")
	if c.bad[0].Type != "urn:n#Other" || c.bad[0].ContentType != "application/xml" {
		t.Errorf("the bad message is %+v", c.bad[0].Message)
	}
	_, err = run(t, receive(t, strings.Replace(recoverXML, `"recoverable": true, `, "", 1)), body(content))
	f := requireFault(t, err, "receive.disassemble", "message type urn:n#Other")
	if f.Place.Byte != int64(strings.Index(content, "<n:Other>")) {
		t.Errorf("it is placed at %+v", f.Place)
	}
	p := receive(t, strings.Replace(recoverXML, `"recoverable": true`, `"allow_unrecognized": true`, 1))
	if c, err = run(t, p, body(content)); err != nil || len(c.good) != 3 || c.good[1].Type != "urn:n#Other" {
		t.Errorf("with allow_unrecognized %d go on, %v", len(c.good), err)
	}
}

func TestTheRestOfABrokenInterchangeIsOneBadPart(t *testing.T) {
	t.Parallel()
	rest := `<n:Other xmlns:n="urn:n">é<no></n:Other>` + order + `</e:Batch>`
	for _, encoded := range []func(string) string{func(s string) string { return s }, utf16} {
		c, err := run(t, receive(t, recoverXML), body(encoded(`<e:Batch xmlns:e="urn:env">`+order+rest)))
		if err != nil || len(c.good) != 1 || c.bodies() != strings.Replace(order, `xmlns:o=`, `xmlns:e="urn:env" xmlns:o=`, 1) {
			t.Fatalf("%d messages go on, %v: %s", len(c.good), err, c.bodies())
		}
		requireBad(t, c, 0, rest, "receive.disassemble", "end tag")
		if c.bad[0].Charset != "utf-8" {
			t.Errorf("its charset is %s", c.bad[0].Charset)
		}
	}
	_, err := run(t, receive(t, recoverXML), body(`<e:Batch xmlns:e="urn:env">`+rest))
	requireFailure(t, err, "receive.disassemble", "end tag") // nothing was good: all of it has failed
}

// utf16 writes a text in UTF-16 with its mark.
func utf16(content string) string {
	var b strings.Builder
	for _, r := range "\uFEFF" + content {
		b.WriteByte(byte(r))
		b.WriteByte(byte(r >> 8))
	}
	return b.String()
}

const recoverFile = `{"disassemble": [{"component": "flat-file-disassembler", "settings":
	{"document": "urn:file#File", "header": "urn:head#Head", "preserve_header": true, "recover_records": true, "validate": true}}]}`

func TestBadRecordsOfAFlatFileAreSuspendedOneByOne(t *testing.T) {
	t.Parallel()
	c, err := run(t, receive(t, recoverFile), body("HEADme\n1;a\nx;bad\n2;b\n"))
	if err != nil || len(c.good) != 1 || strings.Count(c.good[0].body, "<Line>") != 2 {
		t.Fatalf("%d messages go on, %v: %s", len(c.good), err, c.bodies())
	}
	m := c.good[0]
	header, _ := m.Written["urn:parley:pipeline#Header"].(string)
	if m.Type != "urn:file#File" || m.Written["urn:p#First"] != "a" || !strings.Contains(header, "<Sender>me</Sender>") {
		t.Errorf("the message is %+v", m.Message)
	}
	f := requireBadFault(t, c, 0, "x;bad\n", "receive.record", "File/Line")
	if f.Place.Line != 3 || f.Place.Column != 1 || f.Place.Byte != 11 || f.Field != "No" || f.Record != "File/Line" {
		t.Errorf("the fault is %+v", f)
	}
	_, err = run(t, receive(t, strings.Replace(recoverFile, `"recover_records": true`, `"recover_records": false`, 1)), body("HEADme\n1;a\nx;bad\n2;b\n"))
	if f := requireFault(t, err, "receive.disassemble", "flat-file-disassembler: "); f.Place.Line != 3 {
		t.Errorf("without a recovery the fault is %+v", f)
	}
}

func TestABadPartThatIsLongIsReadFromTheInputAgain(t *testing.T) {
	t.Parallel()
	long := "HEADme\n1;a\n" + strings.Repeat("no line at all ", 200_000)
	whole := strings.Replace(recoverFile, "recover_records", "recoverable", 1)
	for _, packed := range []bool{false, true} {
		stages, content := whole, long
		if packed {
			stages, content = strings.Replace(whole, `{"disassemble"`, `{"decode": [{"component": "gzip-decoder"}], "disassemble"`, 1), packedBy(t, long)
		}
		c, err := run(t, receive(t, stages), body(content))
		if err != nil || len(c.bad) != 1 || len(c.bad[0].body) < 1<<20 || !strings.HasSuffix(long, c.bad[0].body) {
			t.Fatalf("%d messages, %d bad, %v", len(c.good), len(c.bad), err)
		}
	}
}

func TestAnInputThatCannotBeReadAgainIsNoFailure(t *testing.T) {
	t.Parallel()
	source := body("HEADme\n1;a\n" + strings.Repeat("no line at all ", 200_000))
	whole := source.Open
	opened := 0
	source.Open = func(ctx context.Context) (io.ReadCloser, error) {
		if opened++; opened > 1 {
			return nil, errBroken
		}
		return whole(ctx)
	}
	_, err := run(t, receive(t, strings.Replace(recoverFile, "recover_records", "recoverable", 1)), source)
	if failure, is := errors.AsType[*adapter.Failure](err); is || !errors.Is(err, errBroken) {
		t.Errorf("it gives %v, failure %v", err, failure)
	}
}

func TestBadLinesOfCSVAreSuspendedBehindTheHeaderLine(t *testing.T) {
	t.Parallel()
	p := receive(t, `{"disassemble": [{"component": "csv-disassembler", "settings": {"as": "json", "split": true, "recoverable": true,
		"type": "order", "charset": "windows-1252", "delimiter": ";"}}]}`)
	c, err := run(t, p, body("id;name\n1;a\n2;b\xe9;c\n3;d\n4;\"x\" y\n5;z\n"))
	if err != nil || c.bodies() != `{"id":"1","name":"a"}|{"id":"3","name":"d"}` {
		t.Fatalf("it gives %s, %v", c.bodies(), err)
	}
	if m := c.good[1]; m.Number != 3 || m.Type != "order" || m.ContentType != "application/json" || m.Promoted["urn:p#Id"] != "3" {
		t.Errorf("the message is %+v", m.Message)
	}
	f := requireBadFault(t, c, 0, "id;name\n2;bé;c\n", "receive.record", "2 values")
	if f.Place.Line != 3 || c.bad[0].Charset != "utf-8" {
		t.Errorf("the fault is %+v", f)
	}
	requireBad(t, c, 1, "id;name\n4;\"x\" y\n5;z\n", "receive.disassemble", "quote") // nothing says where the next line begins
}

func TestMessagesOfJSONAreHeldAgainstTheirSchema(t *testing.T) {
	t.Parallel()
	stages := `{"disassemble": [{"component": "json-disassembler", "settings": {"type": "order", "path": "/batch/orders", "recoverable": true}}]}`
	content := `{"n": [1, {}], "batch": {"x": null, "orders": [{"id": 1, "buyer": {"name": "A\u0042"}, "lines": [1, 2.50]}, {"no": 1}, {"id": 3}], "y": [[]]}}`
	c, err := run(t, receive(t, stages), body(content))
	if err != nil || len(c.good) != 2 || c.good[1].Number != 3 || c.good[1].body != `{"id": 3}` {
		t.Fatalf("it gives %s, %v", c.bodies(), err)
	}
	requireProperties(t, "promoted properties", c.good[0].Promoted, map[string]any{"urn:p#Id": "1", "urn:p#Buyer": "AB"})
	requireProperties(t, "written properties", c.good[0].Written, map[string]any{"urn:p#Last": "2.50"})
	requireBad(t, c, 0, `{"no": 1}`, "receive.record", "id")
	c, err = run(t, receive(t, stages), body(content[:len(content)-14]+"}"))
	if err != nil || len(c.good) != 2 || len(c.bad) != 2 {
		t.Errorf("a document that breaks off: %d good, %d bad, %v", len(c.good), len(c.bad), err)
	}
	for broken, want := range map[string]string{
		`{"batch": {}}`: `no member "orders"`, `{"batch": {"orders": 1}}`: "no array", `[1]`: "no member of an object", `{"batch": {"orders": []}} 1`: "follows",
	} {
		_, err := run(t, receive(t, stages), body(broken))
		requireFailure(t, err, "receive.disassemble", want)
	}
	strict := receive(t, `{"disassemble": [{"component": "json-disassembler", "settings": {"type": "order", "assert_format": true}}]}`)
	_, err = run(t, strict, body(`{"id": 1, "day": "28.11.2026"}`))
	requireFailure(t, err, "receive.disassemble", "date")
	if _, err = run(t, receive(t, stages), body(`{"batch": {"orders": [{"id": 1, "day": "28.11.2026"}]}}`)); err != nil {
		t.Errorf("without assert_format: %v", err)
	}
	small := receive(t, `{"disassemble": [{"component": "json-disassembler", "settings": {"max_bytes": 100}}]}`)
	_, err = run(t, small, body(`["`+strings.Repeat("x", 1000)+`"]`))
	requireFailure(t, err, "receive.too-large", "100 bytes")
}

func TestAValidatorSuspendsTheMessageThatIsNotValid(t *testing.T) {
	t.Parallel()
	stages := `{"disassemble": [{"component": "json-disassembler", "settings": {"type": "order", "validate": false}}],
		"validate": [{"component": "json-validator", "settings": {"recoverable": true}}]}`
	c, err := run(t, receive(t, stages), body(`{"id": 1} {"id": "x"} {"id": 3}`))
	if err != nil || len(c.good) != 2 {
		t.Fatalf("%d messages go on, %v", len(c.good), err)
	}
	requireBad(t, c, 0, `{"id": "x"}`, "receive.validate", "json-validator")
	_, err = run(t, receive(t, strings.Replace(stages, `, "settings": {"recoverable": true}`, "", 1)), body(`{"id": 1} {"id": "x"}`))
	requireFailure(t, err, "receive.validate", "json-validator")
	untyped := `{"disassemble": [{"component": "json-disassembler"}], "validate": [{"component": "json-validator"}]}`
	_, err = run(t, receive(t, untyped), body(`{"id": 1}`))
	requireFailure(t, err, "receive.validate", "no JSON Schema")
	if _, err = run(t, receive(t, strings.Replace(untyped, `"json-validator"`, `"json-validator", "settings": {"require_schema": false}`, 1)),
		body(`{"id": 1}`)); err != nil {
		t.Errorf("where none is required: %v", err)
	}
	typed := body(`{"id": "x"}`)
	typed.Type = "order"
	_, err = run(t, receive(t, `{"validate": [{"component": "json-validator"}]}`), typed)
	requireFailure(t, err, "receive.validate", "json-validator")
}

func TestXMLIsHeldAgainstTheSchemaOfItsType(t *testing.T) {
	t.Parallel()
	bad := strings.Replace(order, "12.50", "much", 1)
	content := `<e:Batch xmlns:e="urn:env">` + order + bad + `<other/></e:Batch>`
	for component, stages := range map[string]string{
		"xml-disassembler": `{"disassemble": [{"component": "xml-disassembler", "settings": {"validate": true, "recoverable": true}}]}`,
		"xml-validator":    `{"disassemble": [{"component": "xml-disassembler"}], "validate": [{"component": "xml-validator", "settings": {"recoverable": true}}]}`,
	} {
		c, err := run(t, receive(t, stages), body(content))
		if err != nil || len(c.good) != 1 || len(c.bad) != 2 {
			t.Fatalf("%s: %d good, %d bad, %v", component, len(c.good), len(c.bad), err)
		}
		f := requireBadFault(t, c, 0, strings.Replace(bad, "xmlns:o", `xmlns:e="urn:env" xmlns:o`, 1), "receive.validate", component+": ")
		if want := int64(strings.LastIndex(content, "</Total>")); f.Place.Byte != want || !strings.Contains(f.Message, "much") {
			t.Errorf("%s: the fault is %v, and should be at %d", component, f, want)
		}
		requireBad(t, c, 1, `<other xmlns:e="urn:env"/>`, "receive.validate", "no XML schema for message type other")
		_, err = run(t, receive(t, strings.Replace(stages, `"recoverable": true`, `"recoverable": false`, 1)), body(content))
		requireFailure(t, err, "receive.validate", "much")
	}
	// Of messages that are made the validator reads what was made, and of others the body as it is.
	flat := receive(t, `{"disassemble": [{"component": "flat-file-disassembler", "settings": {"document": "urn:file#File"}}],
		"validate": [{"component": "xml-validator"}]}`)
	_, err := run(t, flat, body("1;a\nx;b\n"))
	requireFailure(t, err, "receive.validate", "xml-validator")
	if _, err := run(t, flat, body("1;a\n2;b\n")); err != nil {
		t.Error(err)
	}
	typed := body(bad)
	typed.Type = "urn:orders#Order"
	_, err = run(t, receive(t, `{"validate": [{"component": "xml-validator"}]}`), typed)
	requireFailure(t, err, "receive.validate", "much")
	only := receive(t, `{"disassemble": [{"component": "xml-disassembler"}],
		"validate": [{"component": "xml-validator", "settings": {"documents": ["urn:file#File"]}}]}`)
	_, err = run(t, only, body(order))
	requireFailure(t, err, "receive.validate", "not valid here")
}

func TestABadRecordComesWhileTheMessageAroundItIsWritten(t *testing.T) {
	t.Parallel()
	var file strings.Builder
	for i := range 20_000 {
		mark := ""
		if i%5000 == 4999 {
			mark = "x"
		}
		fmt.Fprintf(&file, "%s%d;name\n", mark, i)
	}
	p := receive(t, `{"disassemble": [{"component": "flat-file-disassembler", "settings":
		{"document": "urn:file#File", "validate": true, "recover_records": true}}]}`)
	c, err := run(t, p, body(file.String()))
	if err != nil || len(c.good) != 1 || len(c.bad) != 4 || strings.Count(c.good[0].body, "<Line>") != 19_996 {
		t.Fatalf("%d good, %d bad, %v", len(c.good), len(c.bad), err)
	}
	requireBad(t, c, 3, "x19999;name\n", "receive.record", "x19999")
}
