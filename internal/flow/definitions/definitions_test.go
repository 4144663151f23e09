package definitions_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/definitions"
)

func file(name, text string) definitions.Source {
	return definitions.Source{Name: name, Written: []byte(text)}
}

func inJSON(t *testing.T, document *definitions.Document) string {
	t.Helper()
	written, err := document.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

func read(t *testing.T, settings definitions.Settings, sources ...definitions.Source) string {
	t.Helper()
	document, err := definitions.Read(sources, settings)
	if err != nil {
		t.Fatal(err)
	}
	return inJSON(t, document)
}

// refused gives what is said about files that are refused.
func refused(t *testing.T, settings definitions.Settings, sources ...definitions.Source) string {
	t.Helper()
	document, err := definitions.Read(sources, settings)
	if err == nil {
		t.Fatalf("taken as %s", inJSON(t, document))
	}
	faults, are := errors.AsType[definitions.Faults](err)
	if !are {
		t.Fatalf("%v are no faults", err)
	}
	for _, fault := range faults {
		if fault.Remedy == "" || fault.Message == "" {
			t.Errorf("%v has no remedy", fault)
		}
	}
	return err.Error()
}

func TestFilesAreMergedIntoOneDocument(t *testing.T) {
	t.Parallel()
	got := read(t, definitions.Settings{},
		file("a.yaml", "application:\n  Orders: {description: Orders of shops}\nhost:\n  Receive: {role: rx}\n"),
		file("b.yml", "# nothing but this\n---\nhost:\n  Send: {role: tx}\n---\n"),
		file("c.json", "\ufeff{\"application\": {\"Bills\": {\"tracking\": false, \"description\": \"\\ud83d\\ude00 a\\/b\"}}, \"host\": null}\n"),
		file("empty.yaml", ""))
	want := `{"application":{"Orders":{"description":"Orders of shops"},"Bills":{"tracking":false,"description":"😀 a/b"}},` +
		`"host":{"Receive":{"role":"rx"},"Send":{"role":"tx"}}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAnObjectThatIsDefinedTwiceNamesBothPlaces(t *testing.T) {
	t.Parallel()
	got := refused(t, definitions.Settings{},
		file("a.yaml", "host:\n  Send: {role: tx}\n"), file("b.json", "{\"host\":\n  {\"Other\": {}, \"Send\": {\"role\": \"x\"}}}"))
	if want := `b.json:2:17: host "Send" is defined twice, first at a.yaml:2:3`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Each case is a value, and what is read of it as JSON; or, behind an exclamation mark, why it is refused.
func TestScalarsMeanTheSameToEverybodyOrAreRefused(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"true": "true", "False": "false", "~": "null", "": "null", "null": "null", "5": "5", "-0.50": "-0.50", "1e3": "1e3",
		"12345678901234567890.5": "12345678901234567890.5", "5 minutes": `"5 minutes"`, "2026-11-28": `"2026-11-28"`, "erp:9000": `"erp:9000"`,
		`"yes"`: `"yes"`, "'007'": `"007"`, "!!str 5": `"5"`, "|\n      a\n      b": `"a\nb\n"`, "<>": `"<>"`, "/data/*.xml": `"/data/*.xml"`, `"\u20ac"`: `"€"`,
		"yes": "!true or false", "NO": "!true or false", "On": "!true or false", "off": "!true or false", "y": "!true or false",
		"007": "!decimal number", "0x1F": "!decimal number", "0o17": "!decimal number", "0b11": "!decimal number", "1_000": "!decimal number", "+5": "!decimal number",
		".5": "!decimal number", ".inf": "!decimal number", ".NaN": "!decimal number", "12:30": "!decimal number", "1e9999": "!decimal number",
		"!!binary aGFsbG8=": "!tag !!binary is not taken", "!env X": "!tag !env is not taken", `"a\0b"`: "!U+0000", "&a text": "!anchors and aliases",
	} {
		document, err := definitions.Read([]definitions.Source{file("a.yaml", "k:\n  o:\n    s: "+written+"\n")}, definitions.Settings{})
		if reason, isRefused := strings.CutPrefix(want, "!"); isRefused {
			faults, _ := errors.AsType[definitions.Faults](err)
			if len(faults) != 1 || !strings.Contains(faults[0].Message+faults[0].Remedy, reason) || faults[0].Line != 3 || faults[0].Column != 8 {
				t.Errorf("%s is refused by %+v, want %s at 3:8", written, faults, reason)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", written, err)
		} else if got := inJSON(t, document); !sameJSON(t, got, `{"k":{"o":{"s":`+want+`}}}`) {
			t.Errorf("%s is read as %s", written, got)
		}
	}
}

func TestPitfallsOfYAMLAndJSONAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"a.yaml", "k:\n  o: {a: 1, b: 2, a: 3}\n", `a.yaml:2:19: "a" is given twice, first at a.yaml:2:7`},
		{"a.yaml", "k:\n  yes: {a: &x [1]}\n  o: {b: *x}\n", "a.yaml:2:12: anchors and aliases are not taken\na.yaml:3:10: anchors and aliases are not taken"},
		{"a.yaml", "k: {o: {<<: {a: 1}}}\n", "a.yaml:1:9: merge keys are not taken"},
		{"a.yaml", "k: {[a]: 1}\n", "a.yaml:1:5: a key is no text"},
		{"a.yaml", "k:\n  o:\n\ts: 1\n", "a.yaml:3:1: this is no YAML: found character that cannot start any token"},
		{"a.yaml", "k: {}\nl:\n  o:\n    # blanks\n    s: 1\n   t: 2\n    u: 3\n", "a.yaml:6:1: this is no YAML: did not find expected key"},
		{"a.yaml", "k: [1\n", "a.yaml:1:1: this is no YAML: did not find expected ',' or ']'"},
		{"a.yaml", "- 1\n", "a.yaml:1:1: the document is an array"},
		{"a.yaml", strings.Repeat("[", 70) + strings.Repeat("]", 70), "a.yaml:1:66: values are nested more than 64 deep\na.yaml:1:1: the document is an array"},
		{"a.yaml", "k: \"\xff\"\n", "a.yaml:1:5: the file is not in UTF-8"},
		{"a.json", "{\"k\": {\"o\":\n {\"a\": 1, \"a\": 2}}}", `a.json:2:11: "a" is given twice, first at a.json:2:3`},
		{"a.json", "{} {}", "a.json:1:4: something follows the document"},
		{"a.json", "{\"k\":\n  x}", "a.json:2:3: this is no JSON: invalid character 'x' looking for beginning of value"},
		{"a.json", "{\"k\":", "a.json:1:6: this is no JSON: unexpected EOF"},
		{"a.json", strings.Repeat("[", 70), "a.json:1:66: values are nested more than 64 deep"},
		{"a.json", `{"k": "a\u0000"}`, "a.json:1:7: a text holds the character U+0000, which PostgreSQL does not store"},
	} {
		got := refused(t, definitions.Settings{}, file(c.name, c.text))
		for want := range strings.SplitSeq(c.want, "\n") {
			if !strings.Contains(got, want) {
				t.Errorf("%q is refused by\n%s\nwant\n%s", c.text, got, want)
			}
		}
	}
}

func TestAllFaultsOfAllFilesAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	got := refused(t, definitions.Settings{}, file("b.yaml", "k:\n  o: {a: yes, b: '${NONE}'}\n"), file("a.json", "{"))
	for _, want := range []string{"a.json:1:2: ", "b.yaml:2:10: yes means", "\nb.yaml:2:18: there is no variable \"NONE\""} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %q", got, want)
		}
	}
	if !strings.HasPrefix(got, "a.json") {
		t.Errorf("not in the order of files: %s", got)
	}
}

func TestVariablesAreReplacedInTexts(t *testing.T) {
	t.Parallel()
	text := "variables: {HOST: test.example, PORT: 9000, PRIORITY: 5, ON: true, NEEDED: }\n" +
		"send port:\n  ERP:\n    address: ${HOST}:${PORT}\n    priority: ${PRIORITY}\n    ordered: ${ON}\n" +
		"    text: \"${PRIORITY}\"\n    literal: $${HOST} costs $5 or ${\n"
	want := `{"send port":{"ERP":{"address":"%H:9000","priority":%P,"ordered":true,"text":"%P","literal":"${HOST} costs $5 or ${"}}}`
	for _, c := range []struct {
		settings       definitions.Settings
		host, priority string
	}{
		{definitions.Settings{}, "test.example", "5"},
		{definitions.Settings{Environment: []definitions.Source{file("e.yaml", "HOST: erp.example\n")}}, "erp.example", "5"},
		{definitions.Settings{Environment: []definitions.Source{file("e.yaml", "HOST: erp.example\n")}, Set: map[string]string{"HOST": "x", "PRIORITY": "7"}}, "x", "7"},
	} {
		got := read(t, c.settings, file("a.yaml", text))
		if want := strings.NewReplacer("%H", c.host, "%P", c.priority).Replace(want); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestVariablesThatAreNotKnownAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, environment string
		set               map[string]string
		want              string
	}{
		{"k: {o: {a: 'x${Y}'}}", "", nil, `a.yaml:1:12: there is no variable "Y"`},
		{"variables: {Y: }\nk: {o: {a: \"${Y}\"}}", "", nil, "a.yaml:2:12: variable Y has no value here (a.yaml:1:16)"},
		{"k: {\"${Y}\": {}}", "Y: 1", nil, `a.yaml:1:5: the name "${Y}" holds a variable`},
		{"k: {}", "", map[string]string{"Y": "1"}, "--set Y: no definition uses variable Y"},
		{"k: {}", "", map[string]string{"a-b": "1"}, `--set a-b: a variable cannot be called "a-b"`},
		{"variables: {a-b: 1}", "", nil, `a.yaml:1:13: a variable cannot be called "a-b"`},
		{"variables: {Y: [1]}", "", nil, "a.yaml:1:16: variable Y is an array"},
		{"variables: [Y]", "", nil, "a.yaml:1:12: variables are an array"},
		{"variables: {Y: 1}\n---\nvariables: {Y: 2}", "", nil, "a.yaml:3:13: variable Y is given twice, first at a.yaml:1:16"},
	} {
		settings := definitions.Settings{Set: c.set, Environment: []definitions.Source{file("e.yaml", c.environment)}}
		if got := refused(t, settings, file("a.yaml", c.text)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s is refused by %s, want %s", c.text, got, c.want)
		}
	}
}

func TestPathsLeadToTheirPlaces(t *testing.T) {
	t.Parallel()
	document, err := definitions.Read([]definitions.Source{
		file("a.yaml", "send port:\n  ERP:\n    priority: 5\n    filter:\n      - - {property: a, operator: exists}\n        - property: b\n          operator: x\n"),
		file("b.yaml", "send port:\n  Other:\n    priority: 5\n"),
	}, definitions.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"send port": "a.yaml:1:1", "send port/ERP": "a.yaml:2:3", "send port/ERP/priority": "a.yaml:3:5", "send port/ERP/missing": "a.yaml:2:3",
		"send port/ERP/filter/0/1": "a.yaml:6:11", "send port/ERP/filter/0/1/operator": "a.yaml:7:11", "send port/ERP/filter/9": "a.yaml:4:5",
		"send port/Other/priority": "b.yaml:3:5", "send port/Gone/priority": "", "host/Gone": "", "": "",
	} {
		if got := document.Locate(strings.FieldsFunc(path, func(r rune) bool { return r == '/' })).String(); got != want {
			t.Errorf("%s is at %q, want %q", path, got, want)
		}
	}
}

func TestFoldersGiveTheirDefinitionsAndEnvironments(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml": "", "a/c.yml": "", "a/d.JSON": "{}", "environments/test.yaml": "X: 1", "schemas/order.json": "{", ".git/x.yaml": "", ".hidden.yaml": "", "order.xsd": "<",
	} {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := definitions.Find([]string{folder, "-"}, strings.NewReader("k: {}"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, source := range sources {
		names = append(names, strings.TrimPrefix(source.Name, folder+"/"))
	}
	if got := strings.Join(names, " "); got != "a/c.yml a/d.JSON b.yaml -" {
		t.Errorf("found %s", got)
	}
	for _, argument := range []string{folder, filepath.Join(folder, "b.yaml")} {
		if found, err := definitions.FindEnvironment([]string{argument}, "test"); err != nil || len(found) != 1 {
			t.Errorf("%s has environments %v, %v", argument, found, err)
		}
	}
	if _, err := definitions.FindEnvironment([]string{folder}, "gone"); err == nil || !strings.Contains(err.Error(), "environments/gone.yaml") {
		t.Errorf("an environment that is not there: %v", err)
	}
	if _, err := definitions.Find([]string{filepath.Join(folder, "gone")}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := definitions.Find([]string{t.TempDir()}, nil); err == nil || !strings.Contains(err.Error(), "has no definitions") {
		t.Errorf("a folder without definitions: %v", err)
	}
}

func TestSchemasBecomeFilesInWhateverOrderTheKindsStand(t *testing.T) {
	t.Parallel()
	exported := []byte(`{"send port": {}, "message type": {"urn:x#A": {"application": "O", "schema": {"file": "a.xsd", "documents": {"a.xsd": "<a/>"}}}},
		"application": {"O": {}}}`)
	files, err := definitions.WriteEachWith(exported, map[string]any{"X": nil})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, f := range files {
		names = append(names, f.Name)
		if strings.Contains(string(f.Written), "documents") {
			t.Errorf("%s carries the schema too:\n%s", f.Name, f.Written)
		}
	}
	if got := strings.Join(names, " "); got != "a.xsd variables.yaml application.yaml message-type.yaml send-port.yaml" {
		t.Errorf("the files are %s", got)
	}
}
