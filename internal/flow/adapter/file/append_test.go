package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMessagesAreAppendedOnce(t *testing.T) {
	t.Parallel()
	const settings = `{"mode": "append"}`
	p := newPort(t, "all.txt", settings)
	p.sent(t, message(1, "one\n"), message(2, "two\n"))
	p.restart(t, "all.txt", settings)
	large := strings.Repeat("x", inMemory+1)
	p.sent(t, message(2, "two\n"), message(3, large), message(1, "one\n"))
	p.want(t, map[string]string{"all.txt": "one\ntwo\n" + large})
	if err := os.Remove(filepath.Join(p.folder, "all.txt")); err != nil { // somebody has taken it away
		t.Fatal(err)
	}
	p.sent(t, message(4, "four\n"))
	p.want(t, map[string]string{"all.txt": "four\n"})
}

// A process ends after each byte that it has appended, and its journal says no more than that it has begun.
func TestAnAppendThatWasCutOffIsFinishedOnce(t *testing.T) {
	t.Parallel()
	const settings = `{"mode": "append", "fsync": false}`
	for cut := range 11 {
		for _, foreign := range []string{"", "appended by others\n"} {
			p := newPort(t, "all.txt", settings)
			p.sent(t, message(1, "one\n"))
			p.sent(t, message(2, "two\n"), message(3, "three\n"))
			file, journal := filepath.Join(p.folder, "all.txt"), filepath.Join(p.folder, journalName("all.txt"))
			lines := strings.SplitAfter(read(t, journal), "\n")
			begins := slices.DeleteFunc(lines, func(l string) bool {
				return strings.HasPrefix(l, "done") && !strings.HasSuffix(l, "-1\n")
			})
			text := read(t, file)[:4+cut] + foreign
			if err := errors.Join(os.WriteFile(journal, []byte(strings.Join(begins, "")), 0o600), os.WriteFile(file, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
			p.restart(t, "all.txt", settings)
			if foreign == "" || cut == 10 {
				p.sent(t, message(4, "four\n"), message(3, "three\n"), message(2, "two\n"))
				got := read(t, file)
				for _, line := range []string{"one\n", "two\n", "three\n", "four\n", foreign} {
					if line != "" && strings.Count(got, line) != 1 {
						t.Errorf("cut at %d: the file is %q", cut, got)
					}
				}
				if want := 20 + len(foreign) - 1; len(got) != want {
					t.Errorf("cut at %d: the file is %q", cut, got)
				}
				continue
			}
			p.sent(t, message(4, "four\n"))
			if got := read(t, file); !strings.Contains(got, foreign) || !strings.HasSuffix(got, "four\n") {
				t.Errorf("cut at %d: what others have appended was cut off: %q", cut, got)
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAJournalIsShortened(t *testing.T) {
	t.Parallel()
	p := newPort(t, "all", `{"mode": "append", "fsync": false}`)
	p.sent(t, message(1, "1"))
	file := filepath.Join(p.folder, journalName("all"))
	key := strings.Fields(read(t, file))[1]
	key = key[:len(key)-1]
	var lines strings.Builder
	for n := range 4 * remembered {
		fmt.Fprintf(&lines, "done %s%d\n", key, n+1)
	}
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	p.sent(t, message(4*remembered, "old"), message(4*remembered+1, "new"), message(4*remembered+2, "2"))
	p.sent(t, message(4*remembered, "old"), message(4*remembered+1, "new"), message(4*remembered+3, "3"))
	p.want(t, map[string]string{"all": "1new23"})
	if n := strings.Count(read(t, file), "\n"); n > 2*remembered {
		t.Errorf("the journal has %d lines", n)
	}
}

// A file with a second name may be somebody else's: whoever may write into the folder has given it a name there.
func TestNothingIsAppendedToAFileOfAnotherName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"all.txt", journalName("all.txt")} {
		p := newPort(t, "all.txt", `{"mode": "append"}`)
		theirs := filepath.Join(p.top, "theirs")
		if err := os.WriteFile(theirs, []byte("theirs"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(theirs, filepath.Join(p.folder, name)); err != nil {
			t.Fatal(err)
		}
		if err := p.send(t, message(1, "one\n"))[0]; err == nil || !strings.Contains(err.Error(), "another name") {
			t.Errorf("%s: %v", name, err)
		}
		if got := read(t, theirs); got != "theirs" {
			t.Errorf("%s: their file is %q", name, got)
		}
	}
}
