package flatfile_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/flatfile"
)

var fence = regexp.MustCompile("(?ms)^```(xml|text) ([a-z ]+)\n(.*?)\n?^```$")

// Every example of the page about flat files is run: the file gives the messages, and the messages give the file.
func TestTheExamplesOfThePageAboutFlatFiles(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/flow/flat-files.md")
	if err != nil {
		t.Fatal(err)
	}
	var schema *flatfile.Schema
	var file, wrong string
	var messages, written []string
	inOnly := false
	examples := 0
	check := func() {
		if schema == nil || file == "" {
			return
		}
		examples++
		if len(messages) > 0 {
			c, _, err := disassembled(t, schema, file, flatfile.ReadSettings{})
			if err != nil {
				t.Errorf("%q cannot be read: %v", file, err)
			}
			var got []string
			for _, m := range c.messages {
				got = append(got, plain(m))
			}
			if strings.Join(got, "\n") != strings.Join(messages, "\n") {
				t.Errorf("%q gives\n%s\nand not\n%s", file, strings.Join(got, "\n"), strings.Join(messages, "\n"))
			}
			if inOnly {
				return
			}
			written = messages
		}
		for i := range written {
			written[i] = named(written[i])
		}
		out, err := assembled(t, schema, flatfile.WriteSettings{}, written...)
		if err != nil || out != file {
			t.Errorf("%s\ngives %q and not %q, %v", strings.Join(written, "\n"), out, file, err)
		}
	}
	for _, found := range fence.FindAllStringSubmatch(string(page), -1) {
		kind, body := found[1]+" "+found[2], found[3]
		switch kind {
		case "xml schema":
			check()
			schema, file, messages, written, inOnly = compiled(t, body, flatfile.Settings{}), "", nil, nil, false
		case "text file", "text file in":
			file, inOnly = unescaped(body), kind == "text file in"
		case "xml message":
			messages = append(messages, body)
		case "xml message out":
			written = append(written, body)
		case "text file error":
			wrong = unescaped(body)
		case "text error":
			examples++
			_, _, err := disassembled(t, schema, wrong, flatfile.ReadSettings{})
			if f, ok := fault.Of(err); !ok || f.Remedy == "" || err.Error() != body {
				t.Errorf("%q is refused with\n%v\nand not\n%s", wrong, err, body)
			}
		default:
			t.Errorf("the page has a block %q", kind)
		}
	}
	check()
	if examples < 25 {
		t.Errorf("only %d examples were found", examples)
	}
}

func unescaped(body string) string {
	return strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(strings.ReplaceAll(body, "\n", ""))
}
