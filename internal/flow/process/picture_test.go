package process_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/process"
)

// The picture has a box for each shape, marks those that were passed and those where an instance stands, and asks for nothing outside.
func TestThePictureShowsEachShapeAndTheWay(t *testing.T) {
	t.Parallel()
	m, i := begun(t, `
- set: {count: "1"}
  name: first & "last"
- listen:
    - receive: {message: answer, follow: [number]}
      do: [{send: order}]
    - delay: 10 minutes
      do: [{throw: late}]
- scope: {do: [{send: order}], catch: [{code: x, do: [{terminate: <b>}]}], compensate: [{send: order}]}
`)
	drawn := m.program.Page(i.passed, i.step.At, [][2]string{{"state", "WAITING & <so>"}})
	svg := drawn[bytes.Index(drawn, []byte("<svg")) : bytes.Index(drawn, []byte("</svg>"))+6]
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	classes := map[string]string{}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, is := token.(xml.StartElement); is && start.Name.Local == "g" {
			classes[start.Attr[1].Value] = start.Attr[0].Value
		}
	}
	for place, want := range map[string]string{
		"body/0/receive": "shape passed", "body/1/set": "shape passed", "body/2/listen/0/receive": "shape at", "body/2/listen/1/delay": "shape at",
		"body/2/listen": "shape", "body/3/scope": "shape", "body/3/scope/catch/0/do/0/terminate": "shape", "body/3/scope/compensate/0/send": "shape",
	} {
		if classes[place] != want {
			t.Errorf("%s is of class %q and not %q", place, classes[place], want)
		}
	}
	if len(classes) != 11 {
		t.Errorf("there are %d boxes: %v", len(classes), classes)
	}
	outside := regexp.MustCompile(`(src|href)=|url\(|@import|<script`)
	if outside.Match(drawn) || !strings.Contains(string(drawn), "WAITING &amp; &lt;so&gt;") || bytes.Contains(drawn, []byte("<b>")) {
		t.Errorf("the page is %s", drawn)
	}
	_ = process.Waiting
}
