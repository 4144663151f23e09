package pickup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// submitted submits a file, as a process does that ends before it deletes it.
func (f *Folder) submitted(box files, name string) error {
	begun, err := box.begin(name)
	if err != nil {
		return err
	}
	file, info, err := box.hold(begun)
	if err != nil {
		return err
	}
	return errors.Join(f.submit(file, info, begun), file.Close())
}

// A process ends after each of its steps: the message is submitted once.
func TestFileIsSubmittedOnceWhereverTheProcessEnds(t *testing.T) {
	t.Parallel()
	const text = "From: a@b\nTo: c@d\n\nx"
	put := time.Now().Add(-time.Hour)
	for name, crash := range map[string]func(f *Folder, box files) error{
		"renamed": func(_ *Folder, box files) error {
			_, err := box.begin("a.eml")
			return err
		},
		"submitted": func(f *Folder, box files) error { return f.submitted(box, "a.eml") },
		"submitted while its answer was lost": func(f *Folder, _ files) error {
			s := f.Accepter.(*store)
			s.isAnswerLost = true
			f.poll(t)
			s.isAnswerLost = false
			return nil
		},
	} {
		f, s := newFolder(t, false)
		again := func() {
			f.put(t, "a.eml", text)
			if err := os.Chtimes(filepath.Join(f.Path, "a.eml"), put, put); err != nil {
				t.Fatal(name, err)
			}
		}
		again()
		if err := crash(f, f.opened(t)); err != nil {
			t.Fatal(name, err)
		}
		for range 2 {
			f.poll(t)
		}
		if left := f.files(t); len(s.got) != 1 || len(left) != 0 {
			t.Errorf("%s: %d messages were submitted, left is %q", name, len(s.got), left)
		}
		// Another file, though its name, its text and its time are the same, as where a program copies a file there each day.
		again()
		if f.poll(t); len(s.got) != 2 {
			t.Errorf("%s: a new file was taken for the old one", name)
		}
	}
}

// Two daemons of one folder, and programs that write a file under another name first.
func TestWhatIsInOthersHandsIsLeftToThem(t *testing.T) {
	t.Parallel()
	f, s := newFolder(t, false)
	f.put(t, "half.tmp", "From: a@b\nTo: c@d\n\nx")
	f.put(t, "a.eml", "From: a@b\nTo: c@d\n\nx")
	box := f.opened(t)
	begun, err := box.begin("a.eml")
	if err != nil {
		t.Fatal(err)
	}
	held, _, err := box.hold(begun)
	if err != nil {
		t.Fatal(err)
	}
	f.poll(t)
	if got := f.files(t); len(s.got) != 0 || !slices.Equal(got, []string{"a~.tmp", "half.tmp"}) {
		t.Errorf("%d messages were submitted, left is %q", len(s.got), got)
	}
	if err := held.Close(); err != nil { // as when its process ends
		t.Fatal(err)
	}
	f.poll(t)
	if got := f.files(t); len(s.got) != 1 || !slices.Equal(got, []string{"half.tmp"}) {
		t.Errorf("%d messages were submitted, left is %q", len(s.got), got)
	}
}

func TestFileWithALongNameIsSubmitted(t *testing.T) {
	t.Parallel()
	f, s := newFolder(t, false)
	f.put(t, strings.Repeat("n", 251)+".eml", "From: a@b\nTo: c@d\n\nx")
	if f.poll(t); len(s.got) != 1 || len(f.files(t)) != 0 {
		t.Errorf("%d messages were submitted, left is %q", len(s.got), f.files(t))
	}
}
