package pipeline_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/pipeline"
	"github.com/parley-broker/parley/internal/flow/typing"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// twoKilobytes is an order of 2 KB.
func twoKilobytes() string {
	var b strings.Builder
	b.WriteString(`<o:Order xmlns:o="urn:orders" date="2026-11-28"><Id>4711</Id><Total>1489.50</Total>`)
	for i := 0; b.Len() < 1950; i++ {
		fmt.Fprintf(&b, "\n  <Line no=\"%d\"><Part>872-AA</Part><Name>Lawn &amp; garden</Name><Price>148.95</Price></Line>", i)
	}
	return b.String() + "</o:Order>"
}

// discarding is a sink that keeps nothing.
type discarding struct{ good, bad int }

func (d *discarding) Begin(int64) (io.Writer, error) { return io.Discard, nil }
func (d *discarding) End(pipeline.Message) error     { d.good++; return nil }

func (d *discarding) Bad(pipeline.Message, []byte, error) error { d.bad++; return nil }

// BenchmarkXMLReceive is held against BenchmarkParser of the same run: the same order typed and promoted by the parser alone.
func BenchmarkXMLReceive(b *testing.B) {
	p := receive(b, xmlOnly)
	document := twoKilobytes()
	source, sink := body(document), &discarding{}
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Run(context.Background(), source, sink); err != nil {
			b.Fatal(err)
		}
	}
	if sink.good == 0 {
		b.Fatal("nothing was received")
	}
}

func BenchmarkParser(b *testing.B) {
	document := twoKilobytes()
	var properties []typing.Property
	for _, path := range []string{
		"/*[local-name()='Order' and namespace-uri()='urn:orders']/*[local-name()='Id' and namespace-uri()='']",
		"/*[local-name()='Order' and namespace-uri()='urn:orders']/*[local-name()='Total' and namespace-uri()='']",
		"/*[local-name()='Order' and namespace-uri()='urn:orders']/@*[local-name()='date' and namespace-uri()='']",
	} {
		parsed, err := typing.ParsePath(path)
		if err != nil {
			b.Fatal(err)
		}
		properties = append(properties, typing.Property{Path: parsed})
	}
	run, scanner := typing.NewPromoter(properties).NewRun(), xmlscan.New(strings.NewReader(""), xmlscan.Limits{})
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		scanner.Reset(strings.NewReader(document))
		if result, err := run.Read(scanner); err != nil || len(result.Values) != 3 {
			b.Fatal(result, err)
		}
	}
}

func BenchmarkPassThruReceive(b *testing.B) {
	p := receive(b, passThrough)
	document := twoKilobytes()
	source, sink := body(document), &discarding{}
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Run(context.Background(), source, sink); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkXMLTransmit(b *testing.B) {
	p := send(b, `{"assemble": [{"component": "xml-assembler"}]}`)
	document := twoKilobytes()
	source := body(document)
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		r, _, err := p.Open(context.Background(), source)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			b.Fatal(err)
		}
		_ = r.Close() // nothing is behind it
	}
}

// repeated is a body that begins, repeats a part and ends.
type repeated struct {
	begin, part, end string
	left             int64 // bytes of parts
	rest             string
	ended            bool
}

func (r *repeated) Read(p []byte) (int, error) {
	for r.rest == "" {
		switch {
		case r.begin != "":
			r.rest, r.begin = r.begin, ""
		case r.left > 0:
			r.rest = r.part
			r.left -= int64(len(r.part))
		case !r.ended:
			r.rest, r.ended = r.end, true
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// peak samples the heap until it is stopped.
func peak(stop <-chan struct{}) *atomic.Uint64 {
	var most atomic.Uint64
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most.Store(max(most.Load(), now.HeapInuse))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return &most
}

// An input and a message of a gigabyte go through in 128 MB; without PARLEY_TEST_LONG they have 32 MB, and may take less than that.
func TestLargeBodiesGoThroughInBoundedMemory(t *testing.T) {
	size, limit := int64(32<<20), uint64(28<<20)
	if os.Getenv("PARLEY_TEST_LONG") != "" {
		size, limit = 1<<30, 128<<20
	}
	line := "4711;a name of some length\n"
	for _, c := range []struct {
		name, receive, send string
		body                repeated
	}{
		{"one message of XML", xmlOnly, "", repeated{begin: `<o:Order xmlns:o="urn:orders">`, part: "<Id>4711</Id>\n", end: "</o:Order>"}},
		{
			"one message of XML with a validator", `{"disassemble": [{"component": "xml-disassembler"}], "validate": [{"component": "xml-validator",
			"settings": {"require_schema": false}}]}`, "", repeated{begin: `<a>`, part: "<b c='d'>text</b>\n", end: "</a>"},
		},
		{"one long text", xmlOnly, "", repeated{begin: `<o:Order xmlns:o="urn:orders"><Id>`, part: strings.Repeat("x", 1000), end: "</Id></o:Order>"}},
		{"an envelope", xmlOnly, "", repeated{begin: `<e:Batch xmlns:e="urn:env">`, part: order, end: "</e:Batch>"}},
		{
			"one message of a flat file", `{"disassemble": [{"component": "flat-file-disassembler", "settings": {"document": "urn:file#File"}}]}`, "",
			repeated{part: line},
		},
		{"rows of CSV", `{"disassemble": [{"component": "csv-disassembler", "settings": {"delimiter": ";"}}]}`, "", repeated{begin: "a;b\n", part: line}},
		{
			"an array of JSON", `{"disassemble": [{"component": "json-disassembler", "settings": {"split": true, "type": "order"}}]}`, "",
			repeated{begin: `[{"id":1}`, part: `,{"id":2,"note":"` + strings.Repeat("x", 2000) + `"}`, end: "]"},
		},
		{
			"a broken rest", recoverXML, "",
			repeated{begin: `<e:Batch xmlns:e="urn:env">` + order + "</b>", part: strings.Repeat("x", 1000)},
		},
		{
			"XML in an envelope, packed", "", `{"assemble": [{"component": "xml-assembler", "settings": {"envelope": "urn:env#Batch"}}],
			"encode": [{"component": "gzip-encoder"}]}`, repeated{begin: `<a>`, part: "<b c='d'>text</b>\n", end: "</a>"},
		},
		{
			"XML as a flat file", "", `{"assemble": [{"component": "flat-file-assembler", "settings": {"document": "urn:file#File"}}]}`,
			repeated{begin: `<f:File xmlns:f="urn:file">`, part: "<Line><No>1</No><Name>name</Name></Line>", end: "</f:File>"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			runtime.GC()
			stop := make(chan struct{})
			most := peak(stop)
			c.body.left = size
			source := pipeline.Source{Size: -1, Open: func(context.Context) (io.ReadCloser, error) {
				again := c.body
				return io.NopCloser(&again), nil
			}}
			if c.receive != "" {
				sink := &discarding{}
				if err := receive(t, c.receive).Run(t.Context(), source, sink); err != nil || sink.good == 0 {
					t.Fatalf("%d messages, %v", sink.good, err)
				}
			} else {
				r, _, err := send(t, c.send).Open(t.Context(), source)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, r); err != nil || n < size/1000 {
					t.Fatalf("%d bytes, %v", n, err)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			close(stop)
			t.Logf("%d MB with %d MB of heap", size>>20, most.Load()>>20)
			if most.Load() > limit {
				t.Errorf("%d MB took %d MB of heap", size>>20, most.Load()>>20)
			}
		})
	}
}
