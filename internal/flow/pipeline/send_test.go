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

func send(t testing.TB, stages string) *pipeline.Send {
	t.Helper()
	p, err := pipeline.CompileSend(defined(t, "send", stages), types(t, messageTypes()), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// made reads what a send pipeline makes of a message.
func made(t testing.TB, p *pipeline.Send, source pipeline.Source) (string, pipeline.Result, error) {
	t.Helper()
	r, result, err := p.Open(t.Context(), source)
	if err != nil {
		return "", result, err
	}
	content, err := io.ReadAll(r)
	if closeErr := r.Close(); closeErr != nil {
		t.Error(closeErr)
	}
	return string(content), result, err
}

func TestMessagesAreAssembledAsSettingsSay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, stages, body, want, contentType, charset string }{
		{"pass through", `{}`, "\x00\xff", "\x00\xff", "", ""},
		{
			"XML without settings", `{"assemble": [{"component": "xml-assembler"}]}`, "\xef\xbb\xbf<?xml version='1.0'?> " + order + "\n", order,
			"application/xml", "utf-8",
		},
		{
			"XML with all settings", `{"assemble": [{"component": "xml-assembler", "settings": {"envelope": "urn:env#Batch", "charset": "iso-8859-1",
				"declaration": true, "processing_instructions": ["xml-stylesheet href=\"a.css\""]}}]}`, "<a>é</a>",
			`<?xml version="1.0" encoding="iso-8859-1"?><?xml-stylesheet href="a.css"?><env0:Batch xmlns:env0="urn:env"><a>` + "\xe9</a></env0:Batch>",
			"application/xml", "iso-8859-1",
		},
		{
			"XML with a mark", `{"assemble": [{"component": "xml-assembler", "settings": {"mark": true}}]}`, "<a/>", "\xef\xbb\xbf<a/>",
			"application/xml", "utf-8",
		},
		{
			"a flat file by the type of the message", `{"assemble": [{"component": "flat-file-assembler"}]}`,
			`<f:File xmlns:f="urn:file"><Line><No>1</No><Name>é</Name></Line><Line><No>2</No><Name>b</Name></Line></f:File>`, "1;é\n2;b\n", "text/plain", "utf-8",
		},
		{
			"a flat file with a header", `{"assemble": [{"component": "flat-file-assembler", "settings": {"document": "urn:file#File", "charset": "windows-1252",
				"header": "urn:head#Head", "header_document": "<h:Head xmlns:h=\"urn:head\"><Sender>me</Sender></h:Head>"}}]}`,
			`<f:File xmlns:f="urn:file"><Line><No>1</No><Name>é</Name></Line></f:File>`, "HEADme\n1;\xe9\n", "text/plain", "windows-1252",
		},
		{
			"a flat file with the header that was received",
			`{"assemble": [{"component": "flat-file-assembler", "settings": {"document": "urn:file#File", "header": "urn:head#Head"}}]}`,
			`<f:File xmlns:f="urn:file"><Line><No>1</No><Name>a</Name></Line></f:File>`, "HEADyou\n1;a\n", "text/plain", "utf-8",
		},
		{
			"CSV of XML", `{"assemble": [{"component": "csv-assembler", "settings": {"delimiter": ";", "crlf": true}}]}`,
			"<Rows><Row><a>1</a><b>x;y</b></Row></Rows>", "a;b\r\n1;\"x;y\"\r\n", "text/csv", "utf-8",
		},
		{
			"CSV of JSON", `{"assemble": [{"component": "csv-assembler", "settings": {"columns": ["b", "a"]}}]}`, ` [{"a": 1, "b": true}]`, "b,a\ntrue,1\n",
			"text/csv", "utf-8",
		},
		{"JSON", `{"assemble": [{"component": "json-assembler"}]}`, ` {"a" : 1e9 }`, ` {"a" : 1e9 }`, "application/json", "utf-8"},
		{
			"JSON in an array", `{"assemble": [{"component": "json-assembler", "settings": {"as_array": true, "charset": "utf-16le", "mark": true}}]}`, `{}`,
			"\xff\xfe[\x00{\x00}\x00]\x00", "application/json", "utf-16le",
		},
		{
			"another charset", `{"encode": [{"component": "charset-encoder", "settings": {"charset": "windows-1252"}}]}`, "é", "\xe9", "", "windows-1252",
		},
		{
			"two stages", `{"encode": [{"component": "charset-encoder", "settings": {"charset": "utf-16le"}}], "assemble": [{"component": "csv-assembler"}]}`,
			`{"a": 1}`, "a\x00\n\x001\x00\n\x00", "text/csv", "utf-16le",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, isKnown := range []bool{true, false} {
				source := body(c.body)
				source.Type, source.Written = "urn:file#File", map[string]any{
					"urn:parley:pipeline#Header": `<h:Head xmlns:h="urn:head"><Sender>you</Sender></h:Head>`,
				}
				if !isKnown {
					source.Size = -1
				}
				got, result, err := made(t, send(t, c.stages), source)
				if err != nil || got != c.want || result.ContentType != c.contentType || result.Charset != c.charset {
					t.Errorf("it is %q, %+v, %v\nand not %q", got, result, err, c.want)
				}
				if result.Size != -1 && result.Size != int64(len(got)) || isKnown && result.Size == -1 {
					t.Errorf("its size is said to be %d", result.Size)
				}
			}
		})
	}
}

func TestWhatAPipelineRefusesToSendIsAPermanentFailure(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(" ", 100_000)
	for _, c := range []struct{ stages, body, want string }{
		{`{"assemble": [{"component": "xml-assembler"}]}`, "<a><b></a>", "xml-assembler"},
		{`{"assemble": [{"component": "xml-assembler"}]}`, "", "xml-assembler"},
		{`{"assemble": [{"component": "xml-assembler", "settings": {"charset": "iso-8859-1"}}]}`, "<a>€</a>", "no character"},
		{`{"assemble": [{"component": "json-assembler"}]}`, `{"a": 1`, "no JSON"},
		{`{"assemble": [{"component": "json-assembler"}]}`, `{} {}`, "second document"},
		{`{"assemble": [{"component": "csv-assembler"}]}`, `{"a": {}}`, "csv-assembler"},
		{`{"assemble": [{"component": "flat-file-assembler"}]}`, `<x/>`, "no schema of a flat file for message type none"},
		{`{"assemble": [{"component": "flat-file-assembler", "settings": {"document": "urn:file#File"}}]}`, `<x/>`, "the document is x"},
		{`{"assemble": [{"component": "flat-file-assembler", "settings": {"document": "urn:file#File", "header": "urn:head#Head"}}]}`, `<x/>`, "no property"},
		{`{"encode": [{"component": "charset-encoder", "settings": {"charset": "1252"}}, {"component": "gzip-encoder"}]}`, "a€\u0416", "no character"},
	} {
		for _, padding := range []string{"", long} {
			_, _, err := made(t, send(t, c.stages), body(padding+c.body))
			requireFailure(t, err, "send.pipeline", c.want)
			if failure, _ := errors.AsType[*adapter.Failure](err); !failure.Permanent {
				t.Errorf("%s is tried again", c.want)
			}
		}
	}
}

func TestABodyThatIsCutOffOrABrokenSourceIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, stages := range []string{`{}`, `{"assemble": [{"component": "xml-assembler"}], "encode": [{"component": "gzip-encoder"}]}`} {
		for _, size := range []int{10, 200_000} {
			content := "<a>" + strings.Repeat("x", size) + "</a>"
			source := body(content)
			source.Size++
			_, _, err := made(t, send(t, stages), source)
			if failure, is := errors.AsType[*adapter.Failure](err); !is || failure.Permanent {
				t.Errorf("a body that is cut off gives %v", err)
			}
			source = body(content)
			whole := source.Open
			source.Open = func(ctx context.Context) (io.ReadCloser, error) {
				r, err := whole(ctx)
				return io.NopCloser(breaking{r}), err
			}
			_, _, err = made(t, send(t, stages), source)
			if _, is := errors.AsType[*adapter.Failure](err); is || !errors.Is(err, errBroken) {
				t.Errorf("a broken source gives %v", err)
			}
		}
	}
}

// closing counts how often a body was closed.
type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

func TestABodyThatIsClosedBeforeItsEndLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	p := send(t, `{"assemble": [{"component": "xml-assembler"}], "encode": [{"component": "charset-encoder", "settings": {"charset": "utf-16"}}]}`)
	for _, size := range []int64{-1, 10 << 20} {
		from := &closing{Reader: strings.NewReader("<a>" + strings.Repeat("x", 10<<20))}
		r, result, err := p.Open(t.Context(), pipeline.Source{Size: size, Open: func(context.Context) (io.ReadCloser, error) { return from, nil }})
		if err != nil || result.Size != -1 {
			t.Fatal(result, err)
		}
		if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(r.Close(), r.Close()); err != nil || from.closed != 1 {
			t.Errorf("closed %d times, %v", from.closed, err)
		}
	}
}

func TestWhatIsAssembledIsDisassembledToTheSame(t *testing.T) {
	t.Parallel()
	content := `<ns0:File xmlns:ns0="urn:file"><Line><No>1</No><Name>a</Name></Line><Line><No>2</No><Name>b</Name></Line></ns0:File>`
	source := body(content)
	source.Type = "urn:file#File"
	flat, _, err := made(t, send(t, `{"assemble": [{"component": "flat-file-assembler"}], "encode": [{"component": "gzip-encoder"}]}`), source)
	if err != nil {
		t.Fatal(err)
	}
	c, err := run(t, receive(t, `{"decode": [{"component": "gzip-decoder"}],
		"disassemble": [{"component": "flat-file-disassembler", "settings": {"document": "urn:file#File"}}]}`), body(flat))
	if err != nil || c.bodies() != content {
		t.Errorf("it is %s, %v\nand not %s", c.bodies(), err, content)
	}
}

func TestMessagesAreHeldAgainstTheirSchemaBeforeTheyAreAssembled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ stages, kind, good, bad, want string }{
		{
			`{"pre_assemble": [{"component": "xml-validator"}], "assemble": [{"component": "xml-assembler"}]}`, "urn:orders#Order", order,
			strings.Replace(order, "12.50", "much", 1), "much",
		},
		{`{"pre_assemble": [{"component": "json-validator"}]}`, "order", `{"id": 1}`, `{"id": "x"}`, "json-validator"},
		{`{"pre_assemble": [{"component": "xml-validator"}]}`, "", order, order, "no XML schema"},
		{`{"pre_assemble": [{"component": "json-validator", "settings": {"require_schema": false}}]}`, "", "no JSON", "", ""},
	} {
		for _, isKnown := range []bool{true, false} {
			for _, content := range []string{c.good, c.bad} {
				source := body(content)
				source.Type = c.kind
				if !isKnown {
					source.Size = -1
				}
				got, _, err := made(t, send(t, c.stages), source)
				if content == c.good && c.want != "no XML schema" || c.want == "" {
					if err != nil || got != content {
						t.Errorf("%s gives %q, %v", c.stages, got, err)
					}
					continue
				}
				requireFailure(t, err, "send.pipeline", c.want)
			}
		}
	}
}
