package pipeline_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/pipeline"
)

const (
	passThrough = `{}`
	xmlOnly     = `{"disassemble": [{"component": "xml-disassembler"}]}`
	order       = `<o:Order xmlns:o="urn:orders" date="2026-11-28"><Id>4711</Id><Total>12.50</Total><Remark>soon</Remark></o:Order>`
)

func TestPassThroughMakesOneMessageWithoutReadingIt(t *testing.T) {
	t.Parallel()
	source := body("\x00\xffno text")
	source.ContentType, source.Charset, source.Type = "x/y", "klingon", "urn:orders#Order"
	source.Promoted, source.Written = map[string]any{"A": "1"}, map[string]any{"B": 2}
	c, err := run(t, receive(t, passThrough), source)
	if err != nil || c.bodies() != "\x00\xffno text" {
		t.Fatalf("it gives %q, %v", c.bodies(), err)
	}
	m := c.good[0]
	if m.Type != "urn:orders#Order" || m.ContentType != "x/y" || m.Charset != "klingon" {
		t.Errorf("the message is %+v", m.Message)
	}
	requireProperties(t, "promoted properties", m.Promoted, source.Promoted)
	requireProperties(t, "written properties", m.Written, source.Written)
	if c, err := run(t, receive(t, passThrough), body("")); err != nil || len(c.good) != 1 {
		t.Errorf("an empty body gives %d messages, %v", len(c.good), err)
	}
}

func TestXMLIsTypedAndPromotedByDefinitionAndSchema(t *testing.T) {
	t.Parallel()
	source := body("<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\n" + strings.Replace(order, "soon", "b\xe4ld &amp; <![CDATA[<gut>]]>", 1) + "\n")
	source.Promoted = map[string]any{"SourceFileName": "a.xml"}
	c, err := run(t, receive(t, xmlOnly), source)
	if err != nil || len(c.good) != 1 {
		t.Fatalf("%d messages, %v", len(c.good), err)
	}
	m := c.good[0]
	if m.Type != "urn:orders#Order" || m.Charset != "utf-8" || m.ContentType != "application/xml" {
		t.Errorf("the message is %+v", m.Message)
	}
	if want := strings.Replace(order, "soon", "bäld &amp; <![CDATA[<gut>]]>", 1); m.body != want {
		t.Errorf("the body is %q and not %q", m.body, want)
	}
	requireProperties(t, "promoted properties", m.Promoted, map[string]any{
		"SourceFileName": "a.xml", "urn:p#Id": "4711", "urn:p#Date": "2026-11-28", "urn:annotated#Total": "12.50",
	})
	requireProperties(t, "written properties", m.Written, map[string]any{
		"http://schemas.microsoft.com/BizTalk/2003/btsDistinguishedFields#Order.Remark": "bäld & <gut>",
	})
	if len(source.Promoted) != 1 {
		t.Errorf("the properties of the source were changed: %v", source.Promoted)
	}
}

func TestADefinitionComesBeforeTheAnnotationOfASchema(t *testing.T) {
	t.Parallel()
	all := messageTypes()
	all["urn:orders#Order"] = map[string]any{
		"schema": schema("order.xsd", orderSchema),
		"written": map[string]string{
			"urn:annotated#Total": "/*[local-name()='Order' and namespace-uri()='urn:orders']/*[local-name()='Id' and namespace-uri()='']",
		},
	}
	p, err := pipeline.CompileReceive(defined(t, "receive", xmlOnly), types(t, all), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := run(t, p, body(order))
	if err != nil {
		t.Fatal(err)
	}
	requireProperties(t, "promoted properties", c.good[0].Promoted, nil)
	if got := c.good[0].Written["urn:annotated#Total"]; got != "4711" {
		t.Errorf("the definition writes %v", got)
	}
}

func TestLongValuesAreGivenWholeAndVeryLongOnesStayInTheBody(t *testing.T) {
	t.Parallel()
	for size, isGiven := range map[int]bool{8192: true, 8193: true, 1 << 20: true, 1<<20 + 1: false} {
		value := strings.Repeat("x", size)
		c, err := run(t, receive(t, xmlOnly), body(strings.Replace(order, "4711", value, 1)))
		if err != nil {
			t.Fatal(err)
		}
		m := c.good[0]
		_, isWarned := m.Written[pipeline.WarningProperty]
		if got, has := m.Promoted["urn:p#Id"]; has != isGiven || has && got != value || isWarned == isGiven {
			t.Errorf("a value of %d bytes: given %v, written %v", size, has, isWarned)
		}
	}
}

func TestCharsetsThatDisagreeAreSaidInAProperty(t *testing.T) {
	t.Parallel()
	source := body("\xef\xbb\xbf" + `<?xml version="1.0" encoding="windows-1252"?><a>é</a>`)
	c, err := run(t, receive(t, xmlOnly), source)
	if err != nil || c.bodies() != "<a>é</a>" {
		t.Fatalf("it gives %q, %v", c.bodies(), err)
	}
	if warning, _ := c.good[0].Written[pipeline.WarningProperty].(string); !strings.Contains(warning, "byte-order mark") {
		t.Errorf("the warning is %q", warning)
	}
	source = body("<a>\xe9</a>")
	source.Charset = "utf-8"
	c, err = run(t, receive(t, `{"disassemble": [{"component": "xml-disassembler", "settings": {"charset": "windows-1252"}}]}`), source)
	if err != nil || c.bodies() != "<a>é</a>" || c.good[0].Written[pipeline.WarningProperty] == nil {
		t.Errorf("the setting does not come before the source: %q, %v", c.bodies(), err)
	}
	_, err = run(t, receive(t, xmlOnly), body("<a>\xe9</a>"))
	requireFailure(t, err, "receive.charset", "0xE9")
}

func TestASourceOfAnotherSizeFails(t *testing.T) {
	t.Parallel()
	for _, stages := range []string{passThrough, xmlOnly} {
		for _, difference := range []int64{-1, 1, -5000} {
			source := body(order + strings.Repeat(" ", 10_000))
			source.Size += difference
			_, err := run(t, receive(t, stages), source)
			requireFailure(t, err, "receive.incomplete", "bytes")
		}
		source := body(order)
		source.Size = -1
		if _, err := run(t, receive(t, stages), source); err != nil {
			t.Errorf("a source whose size is not known: %v", err)
		}
	}
}

// breaking is a reader whose source breaks.
type breaking struct{ r io.Reader }

var errBroken = errors.New("the disk is broken")

func (b breaking) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = errBroken
	}
	return n, err
}

func TestErrorsOfTheSourceOfTheSinkAndOfTheContextAreNoFailures(t *testing.T) {
	t.Parallel()
	for _, stages := range []string{
		passThrough, xmlOnly, `{"disassemble": [{"component": "json-disassembler"}]}`,
		`{"disassemble": [{"component": "csv-disassembler", "settings": {"delimiter": ";"}}]}`,
		`{"disassemble": [{"component": "flat-file-disassembler", "settings": {"document": "urn:file#File", "recover_records": true}}]}`,
		`{"disassemble": [{"component": "xml-disassembler", "settings": {"recoverable": true}}, {"component": "csv-disassembler"}]}`,
	} {
		content := order
		if strings.Contains(stages, "json") {
			content = `{"id": 1}`
		} else if !strings.Contains(stages, "xml") {
			content = "1;a\n2;b\n"
		}
		source := body(content)
		source.Size = -1
		whole := source.Open
		source.Open = func(ctx context.Context) (io.ReadCloser, error) {
			r, err := whole(ctx)
			return io.NopCloser(breaking{r}), err
		}
		requireError := func(what string, err, want error) {
			t.Helper()
			if failure, is := errors.AsType[*adapter.Failure](err); is || !errors.Is(err, want) {
				t.Errorf("%s: %s gives %v, failure %v", stages, what, err, failure)
			}
		}
		_, err := run(t, receive(t, stages), source)
		requireError("a broken source", err, errBroken)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		requireError("a context that ended", receive(t, stages).Run(ctx, body(content), &collected{}), context.Canceled)
		requireError("a sink that begins nothing", receive(t, stages).Run(t.Context(), body(content), full{atBegin: true}), errFull)
		requireError("a sink that ends nothing", receive(t, stages).Run(t.Context(), body(content), full{}), errFull)
		requireError("a sink that writes nothing", receive(t, stages).Run(t.Context(), body(content), full{atWrite: true}), errFull)
	}
}

// full is a sink that takes nothing.
type full struct{ atBegin, atWrite bool }

var errFull = errors.New("the sink is full")

func (f full) Begin(int64) (io.Writer, error) {
	if f.atBegin {
		return nil, errFull
	}
	return f, nil
}

func (f full) Write(p []byte) (int, error) {
	if f.atWrite {
		return 0, errFull
	}
	return len(p), nil
}

func (full) End(pipeline.Message) error                { return errFull }
func (full) Bad(pipeline.Message, []byte, error) error { return errFull }

func TestAnEmptyBodyIsNothingThatCanBeDisassembled(t *testing.T) {
	t.Parallel()
	for _, stages := range []string{
		xmlOnly, `{"disassemble": [{"component": "json-disassembler"}]}`, `{"disassemble": [{"component": "csv-disassembler"}]}`,
		`{"disassemble": [{"component": "flat-file-disassembler", "settings": {"document": "urn:file#File", "recoverable": true}}]}`,
		`{"disassemble": [{"component": "xml-disassembler"}, {"component": "csv-disassembler"}]}`,
	} {
		_, err := run(t, receive(t, stages), body(""))
		requireFailure(t, err, "receive.empty", "empty")
	}
}

func TestTheFirstDisassemblerThatTakesABodyGetsItWhole(t *testing.T) {
	t.Parallel()
	p := receive(t, `{"disassemble": [
		{"component": "xml-disassembler", "settings": {"documents": ["urn:orders#Order"]}},
		{"component": "json-disassembler", "settings": {"type": "order"}},
		{"component": "flat-file-disassembler", "settings": {"document": "urn:file#File"}},
		{"component": "csv-disassembler", "settings": {"root": "Table"}}]}`)
	long := strings.Repeat("12;abcdefghijklmnopqrstuvwxyz\n", 10_000)
	for content, kind := range map[string]string{
		order: "urn:orders#Order", "\n " + `{"id": 4711}`: "order", "1;a\n2;b\n": "urn:file#File", long: "urn:file#File",
		"a,b\n1,2\n": "Table", `<Batch xmlns="urn:env">` + order + `</Batch>`: "urn:orders#Order",
		strings.Replace(order, "soon", strings.Repeat("x", 100_000), 1): "urn:orders#Order",
	} {
		c, err := run(t, p, body(content))
		if err != nil || len(c.good) != 1 || c.good[0].Type != kind {
			t.Errorf("%.40q gives %d messages, %v, and not one of type %s", content, len(c.good), err, kind)
			continue
		}
		if kind == "urn:file#File" && strings.Count(c.good[0].body, "<Line>") != strings.Count(content, "\n") {
			t.Errorf("%.40q lost lines", content)
		}
	}
	f := requireFault(t, func() error { _, err := run(t, p, body("<other/>")); return err }(), "receive.disassemble", "no disassembler")
	for _, want := range []string{"xml-disassembler: message type other", "json-disassembler: this is no JSON", "csv-disassembler: it begins as XML"} {
		if !strings.Contains(f.Message, want) {
			t.Errorf("%q does not say %q", f.Message, want)
		}
	}
}

func TestGzipIsUnpackedBeforeABodyIsDisassembled(t *testing.T) {
	t.Parallel()
	packed := packedBy(t, order)
	p := receive(t, `{"decode": [{"component": "gzip-decoder"}], "disassemble": [{"component": "xml-disassembler"}]}`)
	c, err := run(t, p, body(packed))
	if err != nil || c.bodies() != order {
		t.Errorf("it gives %q, %v", c.bodies(), err)
	}
	for _, broken := range []string{order, packed[:len(packed)-9]} {
		_, err = run(t, p, body(broken))
		requireFailure(t, err, "receive.", "gzip")
	}
	small := receive(t, `{"decode": [{"component": "gzip-decoder", "settings": {"max_bytes": 50}}]}`)
	_, err = run(t, small, body(packed))
	requireFailure(t, err, "receive.too-large", "50 bytes")
}
