package script_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/script"
)

// cut gives the batches of a script, each as text, number and first line, and the error at the end.
func cut(text string, options script.Options) (all []string, err error) {
	for batch, failure := range script.Batches("f.sql", text, options) {
		if failure != nil {
			return all, failure
		}
		stop := ""
		if batch.StopOnError {
			stop = " stop"
		}
		at := batch.Origin(1)
		all = append(all, fmt.Sprintf("%q*%d@%s:%d%s", batch.Text, batch.Count, at.File, at.Line, stop))
	}
	return all, nil
}

// GO separates batches where it stands alone in its line, outside of comments, strings and names.
func TestGoSeparatesBatches(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\nGO\nb\n":                        `"a\n"*1@f.sql:1 "b\n"*1@f.sql:3`,
		"a\n  go 5 -- five\r\nb":            `"a\n"*5@f.sql:1 "b"*1@f.sql:3`,
		"a\nGO -- x\n":                      `"a\n"*1@f.sql:1`,
		"GO\n\nGO\n \nGO\na":                `"a"*1@f.sql:6`,
		"'x\nGO\n'\nGO\nb":                  `"'x\nGO\n'\n"*1@f.sql:1 "b"*1@f.sql:5`,
		"/* /* */\nGO\n*/ a\nGO\nb":         `"/* /* */\nGO\n*/ a\n"*1@f.sql:1 "b"*1@f.sql:5`,
		"[x\nGO\n]\nGO\n\"y\nGO\n\"":        `"[x\nGO\n]\n"*1@f.sql:1 "\"y\nGO\n\""*1@f.sql:5`,
		"-- it's\nGO\n-- [\nGO\nb":          `"-- it's\n"*1@f.sql:1 "-- [\n"*1@f.sql:3 "b"*1@f.sql:5`,
		"'it''s'\nGO\n[a]]b]\nGO\nc":        `"'it''s'\n"*1@f.sql:1 "[a]]b]\n"*1@f.sql:3 "c"*1@f.sql:5`,
		"SELECT 1 GO\nGOTO x\ngo_on":        `"SELECT 1 GO\nGOTO x\ngo_on"*1@f.sql:1`,
		"a\nGO 0\nb":                        `"b"*1@f.sql:3`,
		"a\nEXIT\nb":                        ``,
		"a\nGO\n:quit\nb":                   `"a\n"*1@f.sql:1`,
		"a\nRESET\nb":                       `"b"*1@f.sql:3`,
		"a - - b\nGO\n1 / 2 -\n- 3\nGO\nc":  `"a - - b\n"*1@f.sql:1 "1 / 2 -\n- 3\n"*1@f.sql:3 "c"*1@f.sql:6`,
		"/**/ a\nGO\n/*/ GO\nGO\n*/\nGO\nb": `"/**/ a\n"*1@f.sql:1 "/*/ GO\nGO\n*/\n"*1@f.sql:3 "b"*1@f.sql:7`,
	} {
		all, err := cut(text, script.Options{})
		if got := strings.Join(all, " "); err != nil || got != want {
			t.Errorf("%q: %s %v, want %s", text, got, err, want)
		}
	}
}

// Variables come from -v, then from :setvar, then from the environment; names have no letter case.
func TestVariablesAreReplacedOutsideOfComments(t *testing.T) {
	t.Parallel()
	options := script.Options{
		Variables:   map[string]string{"Db": "shop", "x": "1"},
		Environment: func(name string) (string, bool) { return "home", name == "HOME" },
	}
	for text, want := range map[string]string{
		"USE [$(db)]; '$(DB)' $(HOME)":                      `"USE [shop]; 'shop' home"*1@f.sql:1`,
		"-- $(none)\n/* $(none) */ a":                       `"-- $(none)\n/* $(none) */ a"*1@f.sql:1`,
		":setvar x \"a \"\"b\"\" c\"\n$(x)":                 `"\na \"b\" c"*1@f.sql:1`,
		":setvar y $(db)_2 -- c\n$(y)\nGO\n$(y)":            `"\nshop_2\n"*1@f.sql:1 "shop_2"*1@f.sql:4`,
		"'$(\"x\")' $( a":                                   `"'$(\"x\")' $( a"*1@f.sql:1`,
		":setvar q ''''\nPRINT $(q)\nGO\na":                 `"\nPRINT ''''\n"*1@f.sql:1 "a"*1@f.sql:4`,
		":setvar q '\nPRINT $(q)\nGO\n$(q)\nGO\na":          `"\nPRINT '\nGO\n'\n"*1@f.sql:1 "a"*1@f.sql:6`,
		":on error exit\na\nGO\n:on error ignore\nb":        `"\na\n"*1@f.sql:1 stop "\nb"*1@f.sql:4`,
		"':setvar x 2\n:setvar x 3' $(x)":                   `"':setvar x 2\n:setvar x 3' 1"*1@f.sql:1`,
		":setvar x 5\nGO\n:setvar x\nGO\n:setvar x 6\n$(x)": `"\n6"*1@f.sql:5`,
	} {
		all, err := cut(text, options)
		if got := strings.Join(all, " "); err != nil || got != want {
			t.Errorf("%q: %s %v, want %s", text, got, err, want)
		}
	}
}

// Batches before a fault are given, and the fault names file, line and remedy.
func TestFaultsOfScriptsNameTheirLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\nGO\n$(none)":         "f.sql:3: 'none' scripting variable not defined",
		"a\nGO\n:nosuch x":       "f.sql:3: syntax error near command ':nosuch'",
		"a\nGO\n:connect server": "f.sql:3: the command :connect is not supported",
		"a\nGO\n!!dir":           "f.sql:3: the command !! is not supported",
		"a\nGO\nb\nGO 1x":        "f.sql:4: a number of GO cannot be read: 1x",
		"a\nGO\nGO;":             "f.sql:3: incorrect syntax was encountered while parsing GO",
		"a\nGO\n:on error stop":  "f.sql:3: syntax error near command ':on'",
		"a\nGO\n:setvar x \"a":   "f.sql:3: an open quotation mark in a command",
		"a\nGO\n:setvar x a b":   "f.sql:3: more text behind the value of a command: b",
		"a\nGO\n:r other.sql":    "f.sql:3: the command :r is not supported here",
	} {
		all, err := cut(text, script.Options{})
		var fault *script.Error
		if !errors.As(err, &fault) || err.Error() != want || fault.Hint == "" || len(all) != 1 {
			t.Errorf("%q: %v, %d batches, want %s", text, err, len(all), want)
		}
	}
}

// :r reads a file in its place; lines of a batch keep their files; a file that reads itself is refused.
func TestFilesAreReadInTheirPlace(t *testing.T) {
	t.Parallel()
	files := map[string]string{"in.sql": "b1\nb2\n", "go.sql": "x\nGO\ny", "self.sql": ":r self.sql\n", "crlf.sql": "\xff\xfea\x00\n\x00"}
	options := script.Options{
		Variables: map[string]string{"name": "in"},
		Read: func(from, name string) (string, []byte, error) {
			content, found := files[name]
			if !found {
				return "", nil, fmt.Errorf("no file %s beside %s", name, from)
			}
			return "d/" + name, []byte(content), nil
		},
	}
	for batch, err := range script.Batches("f.sql", "a\n:r \"$(name).sql\"\nc\n", options) {
		if err != nil {
			t.Fatal(err)
		}
		for line, want := range map[int]script.Origin{1: {"f.sql", 1}, 2: {"d/in.sql", 1}, 3: {"d/in.sql", 2}, 4: {"f.sql", 3}} {
			if got := batch.Origin(line); got != want {
				t.Errorf("line %d came from %v, want %v", line, got, want)
			}
		}
		if batch.Text != "a\nb1\nb2\nc\n" {
			t.Errorf("%q", batch.Text)
		}
	}
	all, err := cut("a\n:r go.sql\nc", options)
	if got, want := strings.Join(all, " "), `"a\nx\n"*1@f.sql:1 "y\nc"*1@d/go.sql:3`; got != want || err != nil {
		t.Errorf("%s %v, want %s", got, err, want)
	}
	if _, err := cut(":r self.sql", options); err == nil || !strings.Contains(err.Error(), "more than 32 deep") {
		t.Error(err)
	}
	if _, err := cut(":r none.sql", options); err == nil || !strings.Contains(err.Error(), "f.sql:1: :r none.sql: no file") {
		t.Error(err)
	}
}

// Files of every encoding that scripts come in give the same text.
func TestEncodingsAreFound(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"PRINT 'é€'": "UTF-8", "\xef\xbb\xbfPRINT 'é€'": "UTF-8", "PRINT '\xe9\x80'": "windows-1252",
		"\xff\xfeP\x00R\x00I\x00N\x00T\x00 \x00'\x00\xe9\x00\xac\x20'\x00": "UTF-16 little-endian",
		"\xfe\xff\x00P\x00R\x00I\x00N\x00T\x00 \x00'\x00\xe9\x20\xac\x00'": "UTF-16 big-endian",
		"P\x00R\x00I\x00N\x00T\x00 \x00'\x00\xe9\x00\xac\x20'\x00":         "UTF-16 little-endian",
		"\x00P\x00R\x00I\x00N\x00T\x00 \x00'\x00\xe9\x20\xac\x00'":         "UTF-16 big-endian",
	} {
		if text, encoding := script.Decode([]byte(content)); text != "PRINT 'é€'" || encoding != want {
			t.Errorf("%q: %q in %s, want %s", content, text, encoding, want)
		}
	}
}

// No text makes the script layer panic. Where nothing is replaced, batches and their separators together are the whole text:
// each line of a batch is the line of the file from which it came.
func FuzzBatches(f *testing.F) {
	for _, text := range []string{"a\nGO 2\n'b\nGO\n'", ":setvar x 1\n$(x)\nGO", "/* /*\nGO */ */\n[a\n]\nGO", ":r x\n:on error exit\n", "GO\x00\n\"\nGO"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.SplitAfter(text, "\n")
		for batch, err := range script.Batches("f", text, script.Options{KeepVariables: true}) {
			if err != nil {
				return
			}
			for i, line := range strings.SplitAfter(batch.Text, "\n") {
				from := batch.Origin(i + 1)
				if line == "" {
					continue
				}
				if from.Line < 1 || from.Line > len(lines) || lines[from.Line-1] != line && line != "\n" {
					t.Fatalf("%q: line %d %q came from %v", text, i+1, line, from)
				}
			}
		}
	})
}
