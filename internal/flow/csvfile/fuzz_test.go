package csvfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/csvfile"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// Any file becomes XML or JSON that others read, or ends with a fault. The messages, written as CSV, become the same messages.
func FuzzFilesBecomeMessagesAndFilesAgain(f *testing.F) {
	for _, file := range []string{
		"a,b\n1,2\n", "a\n\"x\ny\"\n", "\"a \"\"b\"\"\",_x0020_\r\n<&>,\r\n", "a;b\n1;\n;2\n", "\ufeffa,b\n1\n3,4\n", "a\n\n\"\"\n", "a,a\n", ",\n", "1a,é\n\x01,x\n", "a\n\"b",
	} {
		f.Add(file, false, false, ',')
		f.Add(file, true, true, ';')
	}
	f.Fuzz(func(t *testing.T, file string, asJSON, split bool, delimiter rune) {
		settings := csvfile.Settings{AsJSON: asJSON, Split: split, Delimiter: delimiter, Namespace: "urn:x"}
		if (delimiter == '\x00') || strings.ContainsRune("\r\n\"\ufffd", delimiter) {
			delimiter = '|'
		}
		settings.Delimiter = delimiter
		for _, settings.Recover = range []interchange.Recovery{interchange.Nothing, interchange.Records} {
			c, summary, err := read(t, file, settings)
			if err != nil {
				if found, is := fault.Of(err); !is || found.Remedy == "" || found.Message == "" {
					t.Fatalf("%q ends with %v, which is no fault with a remedy", file, err)
				}
				continue
			}
			last := int64(0)
			for _, bad := range c.bad {
				if bad.From < last || bad.To < bad.From || bad.To > int64(len(file)) {
					t.Fatalf("%q: a bad part is bytes %d to %d", file, bad.From, bad.To)
				}
				last = bad.To
			}
			if int64(len(c.messages)) != summary.Messages || int64(len(c.bad)) != summary.Bad {
				t.Fatalf("the summary is %+v of %d messages", summary, len(c.messages))
			}
			requireReadable(t, c.messages, asJSON)
			again := written(t, c.messages, summary.Columns, settings)
			second, _, err := read(t, again, settings)
			if len(c.messages) == 0 {
				continue
			}
			if err != nil || strings.Join(second.messages, "\n") != strings.Join(c.messages, "\n") {
				t.Fatalf("%q gives\n%q\nwhich is written as %q and read as\n%q, %v", file, c.messages, again, second.messages, err)
			}
		}
	})
}

func requireReadable(t *testing.T, messages []string, asJSON bool) {
	t.Helper()
	for _, m := range messages {
		if asJSON {
			if !json.Valid([]byte(m)) {
				t.Fatalf("%s is no JSON", m)
			}
			continue
		}
		s := xmlscan.New(strings.NewReader(m), xmlscan.Limits{})
		for {
			_, err := s.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s is no XML: %v", m, err)
			}
		}
	}
}

func written(t *testing.T, messages, columns []string, settings csvfile.Settings) string {
	t.Helper()
	var out bytes.Buffer
	w, err := csvfile.NewWriter(&out, settings.Delimiter, false, columns, text.Output{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if settings.AsJSON {
			err = w.WriteJSON(strings.NewReader(m))
		} else {
			err = w.WriteXML(strings.NewReader(m))
		}
		if err != nil {
			t.Fatalf("%s is not written: %v", m, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
