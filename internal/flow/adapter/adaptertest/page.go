package adaptertest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// page is where adapters are described.
const page = "docs/flow/adapters.md"

// readPage reads the page from the root of the repository, below which tests run in the folders of adapters.
func readPage() (text []byte, err error) {
	at, err := os.Getwd()
	for err == nil {
		text, err = os.ReadFile(filepath.Join(at, filepath.FromSlash(page)))
		if above := filepath.Dir(at); errors.Is(err, fs.ErrNotExist) && above != at {
			at, err = above, nil
			continue
		}
		return text, err
	}
	return nil, err
}

// words are how the page calls the directions.
var words = map[adapter.Direction]string{adapter.Receive: "in", adapter.Send: "out"}

// CheckPage holds the page of adapters against the code: the row of an adapter and direction has the guarantee and the key of the kind, and
// the table of its section, ## NAME in or out, has the settings with their defaults, and the secrets.
func CheckPage(t *testing.T, kind adapter.Kind, direction adapter.Direction, defaults any, secrets ...string) {
	t.Helper()
	text, err := readPage()
	if err != nil {
		t.Fatal(err)
	}
	row := "| `" + kind.Name + "` " + words[direction] + " | " + kind.Guarantee[direction] + " | " + kind.Key[direction] + " |"
	if !strings.Contains(string(text), "\n"+row+"\n") {
		t.Errorf("docs/flow/adapters.md has no row\n%s", row)
	}
	heading := fmt.Sprintf("\n## %s %s\n", kind.Name, words[direction])
	_, section, found := strings.Cut(string(text), heading)
	if !found {
		t.Fatalf("docs/flow/adapters.md has no section %s", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	got := settingRows(section)
	want := settingsOf("", reflect.Indirect(reflect.ValueOf(defaults)))
	for _, name := range secrets {
		want = append(want, "secret "+name+" | ")
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s %s has the settings\n%s\nand docs/flow/adapters.md\n%s", kind.Name, words[direction],
			strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

// settingsOf gives the settings of a struct with their defaults; those of a group have its name and a point before theirs.
func settingsOf(group string, defaults reflect.Value) []string {
	var settings []string
	for field, v := range defaults.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous:
			settings = append(settings, settingsOf(group, v)...)
		case !slices.Contains(adapter.SettingNames(defaults.Interface()), name):
		case adapter.IsGroup(v.Type()):
			settings = append(settings, settingsOf(group+name+".", v)...)
		default:
			settings = append(settings, group+name+" | "+shown(v))
		}
	}
	return settings
}

var settingRow = regexp.MustCompile("(?m)^\\| ((?:secret )?)`([a-z_.]+)` \\| (?:`([^`]*)`)? *\\|")

// settingRows gives the settings of a section: name and default.
func settingRows(section string) []string {
	var rows []string
	for _, found := range settingRow.FindAllStringSubmatch(section, -1) {
		rows = append(rows, found[1]+found[2]+" | "+found[3])
	}
	return rows
}

// shown is how a default stands on the page; empty for none.
func shown(v reflect.Value) string {
	if v.IsZero() && v.Kind() != reflect.Bool && !v.CanInt() || v.Kind() == reflect.Map {
		return ""
	}
	if v.Kind() == reflect.Slice {
		return "[" + strings.Join(strings.Fields(strings.Trim(fmt.Sprint(v.Interface()), "[]")), ", ") + "]"
	}
	return fmt.Sprint(v.Interface())
}
