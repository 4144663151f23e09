package pipeline_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/pipeline"
)

// fuzzed are the pipelines that inputs are put through, those that recover and those that do not.
var fuzzed = []string{
	`{"disassemble": [{"component": "xml-disassembler", "settings": {"recoverable": true, "documents": ["urn:orders#Order"]}}],
		"validate": [{"component": "xml-validator", "settings": {"recoverable": true}}]}`,
	`{"disassemble": [{"component": "xml-disassembler", "settings": {"recoverable": true}}]}`,
	`{"disassemble": [{"component": "flat-file-disassembler", "settings": {"document": "urn:file#File", "recover_records": true, "validate": true}}]}`,
	`{"disassemble": [{"component": "flat-file-disassembler", "settings": {"document": "urn:lines#Line", "header": "urn:head#Head", "recoverable": true,
		"newline": "any"}}], "validate": [{"component": "xml-validator"}]}`,
	`{"disassemble": [{"component": "csv-disassembler", "settings": {"recoverable": true, "split": true}}]}`,
	`{"disassemble": [{"component": "csv-disassembler", "settings": {"as": "json", "type": "order", "recoverable": true}}]}`,
	`{"disassemble": [{"component": "json-disassembler", "settings": {"type": "order", "split": true, "recoverable": true, "max_bytes": 1000}}]}`,
	`{"disassemble": [{"component": "json-disassembler", "settings": {"path": "/a/b", "validate": false}}], "validate": [{"component": "json-validator",
		"settings": {"require_schema": false}}]}`,
	`{"decode": [{"component": "gzip-decoder", "settings": {"max_bytes": 100000}}], "disassemble": [{"component": "xml-disassembler"},
		{"component": "json-disassembler"}, {"component": "flat-file-disassembler", "settings": {"document": "urn:file#File"}},
		{"component": "csv-disassembler", "settings": {"recoverable": true}}]}`,
	`{"decode": [{"component": "zip-decoder", "settings": {"max_packed_bytes": 100000, "max_bytes": 100000, "max_entries": 5}}],
		"disassemble": [{"component": "xml-disassembler"}]}`,
	`{"decode": [{"component": "mime-decoder", "settings": {"max_packed_bytes": 100000}}], "disassemble": [{"component": "xml-disassembler"},
		{"component": "csv-disassembler"}]}`,
	`{"disassemble": [{"component": "xml-disassembler", "settings": {"documents": ["urn:orders#Order"]}}, {"component": "json-disassembler"},
		{"component": "flat-file-disassembler", "settings": {"document": "urn:file#File"}},
		{"component": "csv-disassembler", "settings": {"recoverable": true}}]}`,
}

// Each message is begun and ended once, whatever comes in: a good one is what its content type says, a bad input is a permanent failure
// with a remedy, and the same comes of it however it is read.
func FuzzReceive(f *testing.F) {
	for i := range fuzzed {
		for _, content := range []string{
			order, `<e:Batch xmlns:e="urn:env">` + order + `<x/></e:Batch>`, "1;a\nx;b\n2;c\n", "HEADme\n1;a2;b", "a,b\n1,2\n3\n\"", `[{"id":1},{"id":"x"}]`,
			`{"a":{"b":[{"id":1}]}}`, "\xef\xbb\xbf<a>\xff</a>", utf16(order), packedBy(f, order), packedBy(f, "a,b\n1,2\n"), "",
			archiveOf(f, map[string]string{"order.xml": order}), archiveOf(f, map[string]string{"a": "1", "b": "2"}), entityOf(order),
			"--b\r\nContent-Type: text/csv\r\n\r\na,b\n1,2\n\r\n--b--\r\n",
		} {
			f.Add(uint8(i), content)
		}
	}
	var compiled []*pipeline.Receive
	for _, stages := range fuzzed {
		compiled = append(compiled, receive(f, stages))
	}
	f.Fuzz(func(t *testing.T, which uint8, content string) {
		p := compiled[int(which)%len(compiled)]
		c, err := run(t, p, body(content))
		requireFailureOrNone(t, err)
		for _, m := range c.good {
			requireContent(t, m)
		}
		for _, m := range c.bad {
			requireFailureOrNone(t, m.failure)
		}
		source := pipeline.Source{Size: -1, Open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(&piecemeal{content}), nil
		}}
		again, againErr := run(t, p, source)
		if (err == nil) != (againErr == nil) || len(again.good) != len(c.good) || len(again.bad) != len(c.bad) || again.bodies() != c.bodies() {
			t.Errorf("read in pieces it gives %d good and %d bad messages, %v, and not %d and %d, %v",
				len(again.good), len(again.bad), againErr, len(c.good), len(c.bad), err)
		}
	})
}

func requireFailureOrNone(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	failure, is := errors.AsType[*adapter.Failure](err)
	if f, hasFault := fault.Of(err); !is || !failure.Permanent || !hasFault || f.Remedy == "" {
		t.Errorf("the failure is %#v: %v", failure, err)
	}
}

func requireContent(t *testing.T, m taken) {
	t.Helper()
	switch m.ContentType {
	case "application/json":
		if !json.Valid([]byte(m.body)) {
			t.Errorf("a message is no JSON: %q", m.body)
		}
	case "application/xml":
		d := xml.NewDecoder(strings.NewReader(m.body))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Errorf("a message is no XML: %q: %v", m.body, err)
				return
			}
		}
	default:
		t.Errorf("a message is of type %q", m.ContentType)
	}
}

// piecemeal gives a few bytes at a time.
type piecemeal struct{ content string }

func (p *piecemeal) Read(to []byte) (int, error) {
	if p.content == "" {
		return 0, io.EOF
	}
	n := copy(to[:min(len(to), 1+len(p.content)%7)], p.content)
	p.content = p.content[n:]
	return n, nil
}
