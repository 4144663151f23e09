package sftp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
	"github.com/parley-broker/parley/parleytest"
)

const atOnce = `{"ready": "renamed"}`

func TestFilesOfAServerAreTakenOnceAndRemoved(t *testing.T) {
	each(t, func(t *testing.T, r *remote) {
		var in adaptertest.Intake
		large := strings.Repeat("x", 1<<20+1)
		r.put(t, "b.xml", "2")
		r.put(t, "a.xml", "1")
		r.put(t, "c.txt", "no")
		r.put(t, ".d.xml", "no")
		r.put(t, "large.xml", large)
		if err := os.Symlink("c.txt", filepath.Join(r.folder, "e.xml")); err != nil {
			t.Fatal(err)
		}
		l := r.receiver(t, atOnce)
		poll(t, l, &in)
		poll(t, l, &in)
		want(t, "taken", in.Bodies(), []string{"1", "2", large})
		want(t, "left", r.files(t, "."), []string{".d.xml=no", "c.txt=no", "e.xml=no"})
		if name := in.Inputs()[0].Input.Promoted["SourceFileName"]; name != "a.xml" {
			t.Errorf("the first came from %v", name)
		}
		if dialled := r.relay.dialled.Load(); dialled != 1 {
			t.Errorf("two polls have logged in %d times", dialled)
		}
	})
}

func TestAFileOfAServerIsTakenWhenItIsComplete(t *testing.T) {
	each(t, func(t *testing.T, r *remote) {
		var in adaptertest.Intake
		r.put(t, "a.xml", "1")
		l := r.receiver(t, `{"ready": "marker"}`)
		poll(t, l, &in)
		want(t, "without a marker", in.Bodies(), nil)
		r.put(t, "a.xml.done", "")
		poll(t, l, &in)
		want(t, "with one", in.Bodies(), []string{"1"})
		want(t, "left", r.files(t, "."), []string{})

		r.put(t, "b.xml", "2")
		l = r.receiver(t, `{"stable_for": "100 milliseconds"}`)
		poll(t, l, &in)
		<-time.After(150 * time.Millisecond)
		r.put(t, "b.xml", "2, and more")
		poll(t, l, &in)
		want(t, "while it is written to", in.Bodies(), []string{"1"})
		parleytest.Until(t, "it stands still", func() bool {
			poll(t, l, &in)
			return len(in.Bodies()) == 2
		})
		want(t, "when it stands still", in.Bodies(), []string{"1", "2, and more"})
	})
}

func TestAFileOfAServerIsMovedBesideAnotherOfItsName(t *testing.T) {
	each(t, func(t *testing.T, r *remote) {
		var in adaptertest.Intake
		done := filepath.Join(r.folder, "done")
		if err := os.Mkdir(done, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(done, 0o777); err != nil {
			t.Fatal(err)
		}
		l := r.receiver(t, `{"ready": "renamed", "move_to": "done"}`)
		for _, body := range []string{"1", "22"} {
			r.put(t, "a.xml", body)
			poll(t, l, &in)
		}
		want(t, "taken", in.Bodies(), []string{"1", "22"})
		if moved := r.files(t, "done"); len(moved) != 2 || moved[0] != "a.xml=1" || !strings.HasPrefix(moved[1], "a~") {
			t.Errorf("moved are %q", moved)
		}
	})
}

// A process ends behind the commit and behind the rename: the file is taken once, and gone. Another file that has come under its name, with
// the same size and time, is taken too.
func TestAFileOfAServerIsRemovedAfterACrash(t *testing.T) {
	each(t, func(t *testing.T, r *remote) {
		var in adaptertest.Intake
		stamp := time.Now().Add(-time.Hour).Truncate(time.Second)
		put := func(name, body string) {
			r.put(t, name, body)
			if err := os.Chtimes(filepath.Join(r.folder, name), stamp, stamp); err != nil {
				t.Fatal(err)
			}
		}
		put("a.xml", "1")
		put("b.xml", "2")
		put("c.xml", "3")
		crashed := r.receiver(t, atOnce)
		b, err := crashed.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		files, _, err := crashed.Ready(b)
		if err != nil {
			t.Fatal(err)
		}
		batch, _ := crashed.Batch(t.Context(), b, files)
		var inputs []adapter.Input
		for _, c := range batch {
			inputs = append(inputs, c.Input)
		}
		if _, err := in.Take(t.Context(), inputs); err != nil {
			t.Fatal(err)
		}
		hidden := batch[1].Entry.Hidden() + "-CUT"
		if err := os.Rename(filepath.Join(r.folder, "b.xml"), filepath.Join(r.folder, hidden)); err != nil {
			t.Fatal(err)
		}
		put("c.xml", "4")
		l := r.receiver(t, atOnce)
		poll(t, l, &in)
		poll(t, l, &in)
		want(t, "taken", in.Bodies(), []string{"1", "2", "3", "4"})
		want(t, "left", r.files(t, "."), []string{})
		if entries, _ := in.Taken(t.Context()); len(entries) > 0 {
			t.Errorf("%d entries of the ledger wait for their removal", len(entries))
		}
	})
}

// Several nodes look into one folder at once, and move its files: each is taken once.
func TestSeveralNodesTakeEachFileOfAServerOnce(t *testing.T) {
	each(t, func(t *testing.T, r *remote) {
		var in adaptertest.Intake
		done := filepath.Join(r.folder, "done")
		if err := errors.Join(os.Mkdir(done, 0o777), os.Chmod(done, 0o777)); err != nil {
			t.Fatal(err)
		}
		const count = 40
		ctx, stop := context.WithCancel(t.Context())
		var nodes sync.WaitGroup
		for range 3 {
			l := r.receiver(t, `{"ready": "renamed", "move_to": "done", "batch_count": 3}`)
			nodes.Go(func() {
				for ctx.Err() == nil {
					l.Settled = time.Time{}
					clear(l.Pauses)
					if _, err := l.Poll(ctx, &in); err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for n := range count {
			r.put(t, fmt.Sprintf(".%d", n), fmt.Sprint(n))
			if err := os.Rename(filepath.Join(r.folder, fmt.Sprintf(".%d", n)), filepath.Join(r.folder, fmt.Sprintf("%d.xml", n))); err != nil {
				t.Fatal(err)
			}
		}
		parleytest.Until(t, "all are taken and moved", func() bool { return len(r.files(t, "done")) == count && len(r.files(t, ".")) == 0 })
		stop()
		nodes.Wait()
		if taken := len(in.Bodies()); taken != count {
			t.Errorf("of %d files %d were taken", count, taken)
		}
	})
}
