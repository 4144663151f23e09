package adapter_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

func TestEachSettingThatIsWrongIsAProblemOfItsOwn(t *testing.T) {
	t.Parallel()
	type settings struct {
		Interval adapter.Duration  `json:"interval"`
		Count    int               `json:"count"`
		Names    map[string]string `json:"names"`
		IsOn     bool              `json:"on"`
		Inner    struct {
			Wait adapter.Duration `json:"wait"`
			Size int              `json:"size"`
		} `json:"inner"`
	}
	s := settings{Interval: adapter.Duration(time.Second), Count: 3}
	problems := adapter.CheckSettings(json.RawMessage(
		`{"interval": "5 lightyears", "count": "many", "names": [], "on": null, "colour": "red", "inner": {"size": 1, "wait": 5, "x": 1}}`), &s)
	var got []string
	for _, p := range problems {
		got = append(got, strings.Join(p.Path, ".")+" "+p.Remedy)
	}
	want := []string{
		"settings.colour Its settings are interval, count, names, on, inner.", "settings.count Write a whole number.",
		`settings.inner.wait Write a number and a unit, such as "5 seconds".`, "settings.inner.x Its settings are wait, size.",
		`settings.interval Write a number and a unit, such as "5 seconds".`, "settings.names Write an object of names and texts.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the problems are\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if s.Interval != adapter.Duration(time.Second) || s.Count != 3 || s.Inner.Size != 1 {
		t.Errorf("settings that are wrong have changed the defaults: %+v", s)
	}
	if problems := adapter.CheckSettings(json.RawMessage(`{"interval": "2 minutes", "on": true}`), &s); problems != nil ||
		s.Interval != adapter.Duration(2*time.Minute) || !s.IsOn {
		t.Errorf("right settings give %v and %+v", problems, s)
	}
}

func TestADurationIsWrittenAsItIsRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0 seconds", "1 second", "90 seconds", "250 milliseconds", "2 minutes", "1 day", "36 hours", "0.5 milliseconds"} {
		var d adapter.Duration
		if err := json.Unmarshal([]byte(`"`+text+`"`), &d); err != nil || d.String() != text {
			t.Errorf("%s is written as %s, %v", text, d, err)
		}
	}
}

func TestAFolderIsOpenedFromTheNearestThatIsPermitted(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	inside := filepath.Join(top, "a", "b")
	if err := os.MkdirAll(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(top, filepath.Join(inside, "out")); err != nil {
		t.Fatal(err)
	}
	p := adapter.Permission{Folders: []string{top, inside}}
	root, rest, err := p.OpenFolder(filepath.Join(inside, "out"))
	if err != nil || root.Name() != inside || rest != "out" {
		t.Fatalf("opened %v and %q, %v", root, rest, err)
	}
	defer func() { _ = root.Close() }()
	if _, err := root.OpenRoot(rest); err == nil {
		t.Error("a link has led out of a permitted folder")
	}
	if _, _, err := p.OpenFolder(filepath.Dir(top)); err == nil {
		t.Error("a folder that is not permitted was opened")
	}
}
