package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
)

// location is a location of tests: a folder, and what was taken from it.
type location struct {
	*adaptertest.Intake
	top, folder string
}

func newLocation(t *testing.T) *location {
	t.Helper()
	l := &location{Intake: &adaptertest.Intake{}, top: t.TempDir()}
	l.folder = filepath.Join(l.top, "in")
	if err := os.Mkdir(l.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *location) receiver(t *testing.T, mask, settings string) *receiver {
	t.Helper()
	made, err := newReceiver(adapter.Endpoint{
		Name: "Orders", Address: l.folder + "/" + mask, Settings: json.RawMessage(settings),
		Permission: adapter.Permission{Folders: []string{l.top}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := made.(*receiver)
	r.cutOffAfter = 0
	return r
}

// polled polls once, with what a location takes at first sight.
func (l *location) polled(t *testing.T, mask, settings string) *receiver {
	t.Helper()
	r := l.receiver(t, mask, settings)
	l.poll(t, r)
	return r
}

func (l *location) poll(t *testing.T, r *receiver) {
	t.Helper()
	if _, err := r.Poll(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

func (l *location) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(l.folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// left gives the names of the files that are there, also those that begin with a dot.
func (l *location) left(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(l.top, folder))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func (l *location) want(t *testing.T, bodies []string, left ...string) {
	t.Helper()
	if got := l.Bodies(); !slices.Equal(got, bodies) {
		t.Errorf("taken are %q and not %q", got, bodies)
	}
	if got := l.left(t, "in"); !slices.Equal(got, left) {
		t.Errorf("left are %q and not %q", got, left)
	}
}

const atOnce = `{"ready": "renamed"}`

func TestFilesOfAMaskAreTakenInTheirOrderAndRemoved(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	l.put(t, "b.xml", "2")
	l.put(t, "a.xml", "1")
	l.put(t, ".a.xml", "hidden")
	l.put(t, "a.txt", "other")
	l.polled(t, "*.xml", atOnce)
	l.want(t, []string{"1", "2"}, ".a.xml", "a.txt")
	if got := l.Inputs()[0].Input.Promoted["SourceFileName"]; got != "a.xml" {
		t.Errorf("SourceFileName is %v", got)
	}
	if entries, err := l.Taken(t.Context()); err != nil || len(entries) != 0 {
		t.Errorf("the ledger has %v as not removed, %v", entries, err)
	}
}

func TestFilesAreTakenByTime(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	for n, name := range []string{"c", "a", "B"} {
		l.put(t, name+".XML", name)
		at := time.Now().Add(time.Duration(n-10) * time.Minute)
		if err := os.Chtimes(filepath.Join(l.folder, name+".XML"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	l.polled(t, "*.xml", `{"ready": "renamed", "order": "time", "ignore_case": true}`)
	l.want(t, []string{"c", "a", "B"})
}

func TestAFileThatIsWrittenToIsLeftUntilItStandsStill(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	r := l.receiver(t, "*", `{"poll_interval": "10 milliseconds", "stable_for": "50 milliseconds"}`)
	for n := range 3 {
		l.put(t, "a", strings.Repeat("x", n+1))
		l.poll(t, r)
	}
	l.want(t, nil, "a")
	for deadline := time.Now().Add(adaptertest.Patience); len(l.Bodies()) == 0 && time.Now().Before(deadline); {
		l.poll(t, r)
	}
	l.want(t, []string{"xxx"})
}

func TestAFileIsTakenWhenItsMarkerIsThere(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	const settings = `{"ready": "marker", "marker_suffix": ".ok"}`
	l.put(t, "a.xml", "1")
	r := l.polled(t, "*", settings)
	l.want(t, nil, "a.xml")
	l.put(t, "a.xml.ok", "")
	l.put(t, "b.xml.ok", "") // comes before its file
	l.poll(t, r)
	l.want(t, []string{"1"}, "b.xml.ok")
}

// The same file under the same name, with the same times, is put there again after the first one was taken.
func TestAFileThatComesAgainIsNew(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	at := time.Now().Add(-time.Hour)
	r := l.receiver(t, "*", atOnce)
	for range 3 {
		l.put(t, "a", "same")
		if err := os.Chtimes(filepath.Join(l.folder, "a"), at, at); err != nil {
			t.Fatal(err)
		}
		l.poll(t, r)
	}
	l.put(t, "a", "other")
	l.poll(t, r)
	l.want(t, []string{"same", "same", "same", "other"})
}

func TestEmptyFilesFollowTheSetting(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]struct {
		taken int
		code  string
	}{"suspend": {1, "receive.empty"}, "pass": {1, ""}, "remove": {0, ""}} {
		l := newLocation(t)
		l.put(t, "a", "")
		l.polled(t, "*", fmt.Sprintf(`{"ready": "renamed", "empty": %q}`, setting))
		inputs := l.Inputs()
		if len(inputs) != want.taken || len(l.left(t, "in")) != 0 {
			t.Errorf("%s: taken are %+v, left %v", setting, inputs, l.left(t, "in"))
			continue
		}
		code := ""
		if want.taken > 0 && inputs[0].Input.Failure != nil {
			code = inputs[0].Input.Failure.Code
		}
		if code != want.code {
			t.Errorf("%s: the failure is %q and not %q", setting, code, want.code)
		}
	}
}

func TestFilesAreMovedAndTakeThePlaceOfNone(t *testing.T) {
	t.Parallel()
	for _, moveTo := range []string{"done", "/done"} {
		l := newLocation(t)
		where := filepath.Join("in", "done")
		if moveTo == "/done" {
			moveTo, where = filepath.Join(l.top, "done"), "done"
		}
		if err := os.Mkdir(filepath.Join(l.top, where), 0o700); err != nil {
			t.Fatal(err)
		}
		r := l.receiver(t, "*.xml", fmt.Sprintf(`{"ready": "renamed", "subfolders": true, "move_to": %q}`, moveTo))
		for _, text := range []string{"1", "2"} {
			l.put(t, "a.xml", text)
			l.poll(t, r)
		}
		if got := l.Bodies(); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("%s: taken are %q", moveTo, got)
		}
		got := l.left(t, where)
		if len(got) != 2 || got[0] != "a.xml" || !strings.HasPrefix(got[1], "a~") || !strings.HasSuffix(got[1], ".xml") {
			t.Errorf("%s: moved are %q", moveTo, got)
		}
	}
}

func TestAFolderToMoveToThatCannotBeUsedIsAnErrorBeforeAnythingIsTaken(t *testing.T) {
	t.Parallel()
	for moveTo, want := range map[string]string{"absent": "make it first", ".": "from where they are taken", "/elsewhere": "permit"} {
		l := newLocation(t)
		l.put(t, "a", "1")
		r := l.receiver(t, "*", fmt.Sprintf(`{"ready": "renamed", "move_to": %q}`, moveTo))
		if err := r.Run(t.Context(), l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", moveTo, err)
		}
		l.want(t, nil, "a")
	}
}

func TestAnAddressThatIsAFolderIsAnErrorThatSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	l.folder = l.top
	err := l.receiver(t, "in", atOnce).Run(t.Context(), l)
	if err == nil || !strings.Contains(err.Error(), "write "+l.top+"/in/* for the files in it") {
		t.Errorf("the error is %v", err)
	}
}

func TestSubfoldersAreSearchedWhereASettingSaysSo(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	if err := os.MkdirAll(filepath.Join(l.folder, "x", "y"), 0o700); err != nil {
		t.Fatal(err)
	}
	l.put(t, "x/y/a", "deep")
	l.polled(t, "*", atOnce)
	l.want(t, nil, "x")
	l.polled(t, "*", `{"ready": "renamed", "subfolders": true}`)
	l.want(t, []string{"deep"}, "x")
}

func TestLinksAndFilesWithOtherNamesAreNotRead(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	secret := filepath.Join(l.top, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(secret, filepath.Join(l.folder, "link")), os.Symlink(l.top, filepath.Join(l.folder, "folder")),
		os.Link(secret, filepath.Join(l.folder, "name"))); err != nil {
		t.Fatal(err)
	}
	l.put(t, "z", "good")
	r := l.polled(t, "*", `{"ready": "renamed", "subfolders": true}`)
	l.want(t, []string{"good"}, "folder", "link", "name")
	if r.Passed["link"] == "" || r.Passed["folder"] == "" || r.Pauses["name"].Reason == "" {
		t.Errorf("it was not reported: %v, %v", r.Passed, r.Pauses)
	}
}

func TestAFolderThatIsALinkOutOfThePermittedIsRefused(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "a"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.folder = filepath.Join(l.top, "out")
	if err := os.Symlink(outside, l.folder); err != nil {
		t.Fatal(err)
	}
	if err := l.receiver(t, "*", atOnce).Run(t.Context(), l); err == nil || len(l.Bodies()) != 0 {
		t.Errorf("taken are %q, %v", l.Bodies(), err)
	}
}
