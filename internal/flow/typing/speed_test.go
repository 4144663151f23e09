package typing_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/typing"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// twoKilobytes is an order of 2 KB.
func twoKilobytes() string {
	var b strings.Builder
	b.WriteString(`<o:Order xmlns:o="urn:orders" date="2026-11-28"><Id>4711</Id>`)
	for i := 0; b.Len() < 1950; i++ {
		fmt.Fprintf(&b, "\n  <Line no=\"%d\"><Part>872-AA</Part><Name>Lawn &amp; garden</Name><Price>148.95</Price></Line>", i)
	}
	return b.String() + "</o:Order>"
}

// BenchmarkTyping is held against BenchmarkEncodingXML of the same run: type and promoted values of 2 KB, and the tokens of encoding/xml.
func BenchmarkTyping(b *testing.B) {
	document := twoKilobytes()
	promoter := typing.NewPromoter([]typing.Property{{Path: path(b, idPath)}, {Path: path(b, datePath)}})
	run, scanner := promoter.NewRun(), xmlscan.New(strings.NewReader(""), xmlscan.Limits{})
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		scanner.Reset(strings.NewReader(document))
		result, err := run.Read(scanner)
		if err != nil || len(result.Values) != 2 {
			b.Fatal(result, err)
		}
	}
}

func BenchmarkEncodingXML(b *testing.B) {
	document := twoKilobytes()
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		d := xml.NewDecoder(strings.NewReader(document))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}
