package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter/folder"
)

func TestAFileThatCannotBeTakenHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	isMended := false
	l.Refuse = func(inputs []adapter.Input) error {
		for _, input := range inputs {
			if string(input.Body) == "bad" && !isMended {
				return errors.New("the intake has choked")
			}
		}
		return nil
	}
	for n, text := range []string{"bad", "1", "2"} {
		l.put(t, fmt.Sprint(n), text)
	}
	r := l.polled(t, "*", atOnce)
	l.want(t, []string{"1", "2"}, "0")
	isMended = true
	for name, p := range r.Pauses {
		p.Until = time.Now()
		r.Pauses[name] = p
	}
	l.poll(t, r)
	l.want(t, []string{"1", "2", "bad"})
}

func TestAnIntakeThatIsAwayIsAnErrorOfTheLocation(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	tries := 0
	l.Refuse = func([]adapter.Input) error { tries++; return errors.New("the database is away") }
	for n := range 20 {
		l.put(t, fmt.Sprint(n), "x")
	}
	if err := l.receiver(t, "*", atOnce).Run(t.Context(), l); err == nil || tries > 5 || len(l.left(t, "in")) != 20 {
		t.Errorf("%d tries, left are %q, %v", tries, l.left(t, "in"), err)
	}
}

// A file is written to between the look at it and its reading, and while its body is read.
func TestAFileThatChangesWhileItIsReadIsTakenLater(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	l.put(t, "small", "1")
	large := strings.Repeat("x", inMemory+1)
	l.put(t, "large", large)
	r := l.receiver(t, "*", atOnce)
	b, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	files, _, err := r.Ready(b)
	if err != nil || len(files) != 2 {
		t.Fatalf("found are %v, %v", files, err)
	}
	batch, _ := r.Batch(t.Context(), b, files[:1])
	l.put(t, "small", "12")
	l.put(t, "large", large[1:]+"y")
	if more, _ := r.Batch(t.Context(), b, files[1:]); len(more) != 0 {
		t.Error("a small file was taken that has changed since it was found")
	}
	if err := r.Take(t.Context(), l, b, batch); err != nil || len(l.Bodies()) != 0 {
		t.Errorf("a large file was taken that has changed since its hash was made: %v", err)
	}
	clear(r.Pauses)
	l.poll(t, r)
	if got := l.Bodies(); len(got) != 2 || got[0] != large[1:]+"y" || got[1] != "12" {
		t.Errorf("%d files are taken", len(got))
	}
}

// A program writes to a large file while its body is being read.
func TestABodyThatChangesWhileItIsReadEndsWithAnError(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	large := strings.Repeat("x", inMemory+1)
	l.put(t, "large", large)
	r := l.receiver(t, "*", atOnce)
	batch := l.takenOnly(t, r)
	body, err := batch[0].Input.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	if _, err := io.CopyN(io.Discard, body, 1000); err != nil {
		t.Fatal(err)
	}
	l.put(t, "large", large[1:]+"y")
	if _, err := io.Copy(io.Discard, body); !errors.Is(err, folder.ErrChanged) {
		t.Errorf("the body ends with %v", err)
	}
}

func TestNodesOnOneFolderTakeEachFileOnce(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	var want []string
	ctx, stop := context.WithCancel(t.Context())
	var nodes sync.WaitGroup
	for range 3 {
		r := l.receiver(t, "*", `{"ready": "renamed", "poll_interval": "10 milliseconds", "batch_count": 7}`)
		nodes.Go(func() {
			if err := r.Run(ctx, l); err != nil {
				t.Error(err)
			}
		})
	}
	for n := range 200 {
		text := fmt.Sprintf("%03d", n)
		want = append(want, text)
		temporary := filepath.Join(l.folder, ".new")
		if err := errors.Join(os.WriteFile(temporary, []byte(text), 0o600), os.Rename(temporary, filepath.Join(l.folder, text))); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(adaptertest.Patience); len(l.left(t, "in")) > 0 && time.Now().Before(deadline); {
		<-time.After(5 * time.Millisecond)
	}
	stop()
	nodes.Wait()
	got := l.Bodies()
	slices.Sort(got)
	if !slices.Equal(got, want) || len(l.left(t, "in")) != 0 {
		t.Errorf("%d are taken, left are %q", len(got), l.left(t, "in"))
	}
	if entries, err := l.Taken(t.Context()); err != nil || len(entries) != 0 {
		t.Errorf("the ledger has %v as not removed, %v", entries, err)
	}
}

// A program puts the same file there as soon as it is gone, while nodes remove what they and others have taken.
func TestTheSameFileIsTakenAsOftenAsItComes(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{atOnce, `{"ready": "renamed", "move_to": "done"}`} {
		l := newLocation(t)
		if err := os.Mkdir(filepath.Join(l.folder, "done"), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var nodes sync.WaitGroup
		for range 3 {
			r := l.receiver(t, "*", settings)
			r.cutOffAfter = cutOffAfter
			nodes.Go(func() {
				for ctx.Err() == nil {
					r.Settled = time.Time{}
					clear(r.Pauses)
					if _, err := r.Poll(ctx, l); err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
		file, temporary := filepath.Join(l.folder, "a"), filepath.Join(l.folder, ".new")
		old := time.Now().Add(-time.Hour)
		gone := func() {
			for deadline := time.Now().Add(adaptertest.Patience); time.Now().Before(deadline); {
				if _, err := os.Lstat(file); errors.Is(err, os.ErrNotExist) {
					return
				}
			}
			t.Error("the file stays")
		}
		const times = 100
		for range times {
			if err := errors.Join(os.WriteFile(temporary, []byte("same"), 0o600), os.Chtimes(temporary, old, old)); err != nil {
				t.Fatal(err)
			}
			gone()
			<-time.After(10 * time.Millisecond) // the clock of the file system counts in such steps
			// A file that was renamed by mistake may have its name again by now: a link takes the place of none.
			err := os.Link(temporary, file)
			for ; errors.Is(err, os.ErrExist); err = os.Link(temporary, file) {
				gone()
			}
			if err := errors.Join(err, os.Remove(temporary)); err != nil {
				t.Fatal(err)
			}
		}
		gone()
		for entries := 1; entries > 0; {
			left, err := l.Taken(t.Context())
			if entries = len(left); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		nodes.Wait()
		if got := len(l.Bodies()); got != times || len(l.left(t, "in")) != 1 {
			t.Errorf("%s: it came %d times, and was taken %d times; left are %q", settings, times, got, l.left(t, "in"))
		}
		if got := l.left(t, "in/done"); strings.Contains(settings, "done") && len(got) != times {
			t.Errorf("%d files were moved", len(got))
		}
	}
}

func TestFilesWaitWhileIntakeIsThrottled(t *testing.T) {
	t.Parallel()
	l := newLocation(t)
	l.Throttle(true)
	l.put(t, "a", "1")
	done := make(chan error, 1)
	r := l.receiver(t, "*", atOnce)
	go func() {
		_, err := r.Poll(t.Context(), l)
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("a poll has not waited: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	l.Throttle(false)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	l.want(t, []string{"1"})
}
