package file

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/folder"
)

// takenOnly publishes the files that are there, as a process does that ends before it removes one.
func (l *location) takenOnly(t *testing.T, r *receiver) []folder.Candidate {
	t.Helper()
	b, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	files, _, err := r.Ready(b)
	if err != nil {
		t.Fatal(err)
	}
	batch, _ := r.Batch(t.Context(), b, files)
	var inputs []adapter.Input
	for _, c := range batch {
		inputs = append(inputs, c.Input)
	}
	if _, err := l.Take(t.Context(), inputs); err != nil {
		t.Fatal(err)
	}
	return batch
}

// A process ends after each of its steps: the file is taken once, and gone.
func TestAFileIsTakenOnceWhereverTheProcessEnds(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]func(l *location, c folder.Candidate) error{
		"published": func(*location, folder.Candidate) error { return nil },
		"renamed":   func(l *location, c folder.Candidate) error { return l.hide(c) },
		"marker removed": func(l *location, c folder.Candidate) error {
			return errors.Join(l.hide(c), os.Remove(filepath.Join(l.folder, "a.xml.done")))
		},
		"removed": func(l *location, _ folder.Candidate) error { return os.Remove(filepath.Join(l.folder, "a.xml")) },
	} {
		l := newLocation(t)
		const settings = `{"ready": "marker"}`
		l.put(t, "a.xml", "1")
		l.put(t, "a.xml.done", "")
		batch := l.takenOnly(t, l.receiver(t, "*.xml", settings))
		if err := crash(l, batch[0]); err != nil {
			t.Fatal(name, err)
		}
		r := l.receiver(t, "*.xml", settings)
		for range 2 {
			l.poll(t, r)
		}
		left := slices.DeleteFunc(l.left(t, "in"), func(n string) bool { return n == "a.xml.done" && name == "removed" })
		if got := l.Bodies(); len(got) != 1 || len(left) != 0 {
			t.Errorf("%s: taken are %q, left %q", name, got, left)
		}
		if entries, err := l.Taken(t.Context()); err != nil || len(entries) != 0 {
			t.Errorf("%s: the ledger has %v as not removed, %v", name, entries, err)
		}
	}
}

func (l *location) hide(c folder.Candidate) error {
	return os.Rename(filepath.Join(l.folder, c.Path), filepath.Join(l.folder, c.Entry.Hidden()+"-OTHER"))
}

// A process ends when a file is published; before the next one removes it another file has come under its name.
func TestAFileThatCameUnderTheNameOfOneThatWasTakenIsNew(t *testing.T) {
	t.Parallel()
	old := time.Now().Add(-time.Hour)
	for name, replace := range map[string]func(l *location, path string) error{
		"other content": func(_ *location, path string) error { return os.WriteFile(path, []byte("2"), 0o600) },
		"other content of the same time": func(_ *location, path string) error {
			return errors.Join(os.WriteFile(path+"~", []byte("2"), 0o600), os.Chtimes(path+"~", old, old), os.Rename(path+"~", path))
		},
		"other content of the same time, written in place": func(_ *location, path string) error {
			return errors.Join(os.WriteFile(path, []byte("2"), 0o600), os.Chtimes(path, old, old))
		},
		"same content of the same time": func(_ *location, path string) error {
			return errors.Join(os.WriteFile(path+"~", []byte("1"), 0o600), os.Chtimes(path+"~", old, old), os.Rename(path+"~", path))
		},
	} {
		l := newLocation(t)
		file := filepath.Join(l.folder, "a")
		l.put(t, "a", "1")
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
		l.takenOnly(t, l.receiver(t, "*", atOnce))
		if err := replace(l, file); err != nil {
			t.Fatal(name, err)
		}
		l.polled(t, "*", atOnce)
		if got := l.Bodies(); len(got) != 2 || len(l.left(t, "in")) != 0 {
			t.Errorf("%s: taken are %q, left %q", name, got, l.left(t, "in"))
		}
	}
}

// Between the check of a file and its renaming another one has come under its name: it gets its name again.
func TestAFileThatWasRenamedByMistakeIsPutBack(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	l.put(t, "a.xml", "1")
	r := l.receiver(t, "*.xml", atOnce)
	batch := l.takenOnly(t, r)
	if err := os.Remove(filepath.Join(l.folder, "a.xml")); err != nil {
		t.Fatal(err)
	}
	l.put(t, filepath.Base(batch[0].Entry.Hidden())+"-OTHER", "2")
	l.put(t, "a.xml", "3") // and one more
	l.poll(t, r)
	l.poll(t, r)
	got := l.Bodies()
	slices.Sort(got)
	if !slices.Equal(got, []string{"1", "2", "3"}) || len(l.left(t, "in")) != 0 {
		t.Errorf("taken are %q, left %q", got, l.left(t, "in"))
	}
}

func TestAFileWithANameThatIsNoTextIsTakenAndRemoved(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	l.put(t, "caf\xe9.xml", "1")
	l.takenOnly(t, l.receiver(t, "*.xml", atOnce)) // and the process ends
	l.polled(t, "*.xml", atOnce)
	l.want(t, []string{"1"})
	if got := l.Inputs()[0].Input.Promoted["SourceFileName"]; got != "caf\uFFFD.xml" {
		t.Errorf("SourceFileName is %q", got)
	}
}

func TestAFileThatCannotBeRemovedIsTakenOnce(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	l.put(t, "a", "1")
	l.put(t, "a.done", "")
	r := l.receiver(t, "*", `{"ready": "marker"}`)
	batch := l.takenOnly(t, r)
	inTheWay := filepath.Join(l.folder, "a.done")
	if err := errors.Join(os.Remove(inTheWay), os.MkdirAll(filepath.Join(inTheWay, "full"), 0o700)); err != nil {
		t.Fatal(err)
	}
	again := func() {
		r.Settled = time.Time{}
		clear(r.Pauses)
		l.poll(t, r)
	}
	for range 3 {
		again()
	}
	left := l.left(t, "in")
	if len(left) != 2 || !strings.HasPrefix(left[0], batch[0].Entry.Hidden()+"-") || left[1] != "a.done" {
		t.Errorf("left are %q", left)
	}
	if err := os.RemoveAll(inTheWay); err != nil {
		t.Fatal(err)
	}
	again()
	l.want(t, []string{"1"})
}
