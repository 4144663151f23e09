package flatfile_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/flatfile"
)

var fence = regexp.MustCompile("(?ms)^(?:<!-- ([a-z ]+) -->\n)?```(xml|text)\n(.*?)\n^```$")

// An example of the page: a schema with a file and its messages. The one that stands first makes the other; a file that stands first is also
// what the messages are written as, unless the page says that it is only read.
type example struct {
	schema   *flatfile.Schema
	file     string
	messages []string
	isOut    bool
	isInOnly bool
}

func (e *example) check(t *testing.T) {
	if !e.isOut {
		c, _, err := disassembled(t, e.schema, e.file, flatfile.ReadSettings{})
		if err != nil {
			t.Errorf("%q cannot be read: %v", e.file, err)
		}
		var got []string
		for _, m := range c.messages {
			got = append(got, plain(m))
		}
		if strings.Join(got, "\n") != strings.Join(e.messages, "\n") {
			t.Errorf("%q gives\n%s\nand not\n%s", e.file, strings.Join(got, "\n"), strings.Join(e.messages, "\n"))
		}
	}
	if e.isInOnly {
		return
	}
	var written []string
	for _, m := range e.messages {
		written = append(written, named(m))
	}
	out, err := assembled(t, e.schema, flatfile.WriteSettings{}, written...)
	if err != nil || out != e.file {
		t.Errorf("%s\ngives %q and not %q, %v", strings.Join(written, "\n"), out, e.file, err)
	}
}

func TestTheExamplesOfThePageAboutFlatFiles(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/flow/flat-files.md")
	if err != nil {
		t.Fatal(err)
	}
	var examples []*example
	var refused string
	for _, found := range fence.FindAllStringSubmatch(string(page), -1) {
		mark, isXML, body := found[1], found[2] == "xml", found[3]
		if isXML && strings.Contains(body, "<xs:") {
			if !strings.Contains(body, "<xs:schema") { // that is the frame
				examples = append(examples, &example{schema: compiled(t, body, flatfile.Settings{})})
			}
			continue
		}
		last := examples[len(examples)-1]
		switch {
		case isXML:
			last.isOut = last.isOut || last.file == ""
			last.messages = append(last.messages, body)
		case mark == "refused":
			refused = unescaped(body)
		case refused != "":
			_, _, err := disassembled(t, last.schema, refused, flatfile.ReadSettings{})
			if f, ok := fault.Of(err); !ok || f.Remedy == "" || err.Error() != strings.ReplaceAll(body, "\n", " ") {
				t.Errorf("%q is refused with\n%v\nand not\n%s", refused, err, body)
			}
			refused = ""
		default:
			last.file, last.isInOnly = unescaped(body), mark == "only read"
		}
	}
	for _, e := range examples {
		e.check(t)
	}
	if len(examples) < 25 {
		t.Errorf("only %d examples were found", len(examples))
	}
}

func unescaped(body string) string {
	return strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(strings.ReplaceAll(body, "\n", ""))
}
