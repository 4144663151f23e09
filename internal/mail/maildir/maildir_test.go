package maildir_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-broker/parley/internal/mail/maildir"
	"github.com/parley-broker/parley/internal/mail/mailtest"
)

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// at gives a store in a folder, which is made when something is delivered.
func at(path string) maildir.Store {
	return maildir.Store{Open: func() (*os.Root, error) {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
		return os.OpenRoot(path)
	}}
}

func deliver(t *testing.T, store maildir.Store, id, recipient string) bool {
	t.Helper()
	const text = "Subject: x\r\n\r\nbody\r\n"
	delivered, err := store.Deliver(maildir.Delivery{
		ID: id, Sender: "from@a.example", Recipient: recipient, Body: strings.NewReader(text), Size: int64(len(text)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return delivered
}

func TestMessageBecomesAFileOfTheMailbox(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store := at(root)
	if !deliver(t, store, "7/1", "Who@B.example") {
		t.Fatal("nothing was delivered")
	}
	found := files(t, root+"/b.example/who/new/*")
	if len(found) != 1 || len(files(t, root+"/b.example/who/tmp/*")) != 0 {
		t.Fatalf("files are %q", found)
	}
	content, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	want := "Return-Path: <from@a.example>\nDelivered-To: Who@B.example\nSubject: x\n\nbody\n"
	if string(content) != want {
		t.Errorf("the message is %q", content)
	}
}

// Lines end as those of files do, wherever the pieces are cut that are read; a CR that ends no line stays.
func TestLinesEndAsThoseOfFiles(t *testing.T) {
	t.Parallel()
	for _, piece := range []int{1, 2, 3, 1000} {
		root := t.TempDir()
		store := at(root)
		body := mailtest.InPieces("A: 1\r\n\r\na\rb\r\r\nc\r\n\r\n\nd\r", piece)
		if _, err := store.Deliver(maildir.Delivery{ID: "1", Sender: "x@y", Recipient: "a@b.example", Body: body, Size: 22}); err != nil {
			t.Fatal(err)
		}
		found := files(t, root+"/b.example/a/new/*")
		if len(found) != 1 {
			t.Fatalf("files are %q", found)
		}
		content, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		if want := "Return-Path: <x@y>\nDelivered-To: a@b.example\nA: 1\n\na\rb\r\nc\n\n\nd\r"; string(content) != want {
			t.Errorf("with %d bytes a time: %q, want %q", piece, content, want)
		}
	}
}

func TestRepeatedDeliveryAddsNothing(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "mail [*]")
	store := at(root)
	deliver(t, store, "7/1", "who@b.example")
	if deliver(t, store, "7/1", "who@b.example") {
		t.Error("the same delivery was made twice")
	}
	// A reader moves the file and adds flags.
	mailbox := root + "/b.example/who/"
	entries, err := os.ReadDir(mailbox + "new")
	if err != nil || len(entries) != 1 {
		t.Fatalf("new holds %v, %v", entries, err)
	}
	if err := os.Rename(mailbox+"new/"+entries[0].Name(), mailbox+"cur/"+entries[0].Name()+":2,S"); err != nil {
		t.Fatal(err)
	}
	if deliver(t, store, "7/1", "who@b.example") {
		t.Error("a delivery that was read was made again")
	}
	if !deliver(t, store, "7/2", "who@b.example") || !deliver(t, store, "7/1", "other@b.example") {
		t.Error("another delivery was taken for the first")
	}
}

func TestOneOfDaemonsSideBySideDelivers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store := at(root)
	var delivered atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if deliver(t, store, "7/1", "who@b.example") {
				delivered.Add(1)
			}
		})
	}
	group.Wait()
	if n := len(files(t, root+"/b.example/who/new/*")); n != 1 || delivered.Load() != 1 {
		t.Errorf("%d files, %d said to be delivered", n, delivered.Load())
	}
}

func TestAddressThatLeadsOutOfTheStore(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, recipient := range []string{"../x@b.example", "x@..", "..@b.example", "a/b@c.example", "x@", "@x", "x", ".hidden@b.example", "a\x00b@c.example"} {
		store := at(filepath.Join(root, "store"))
		_, err := store.Deliver(maildir.Delivery{ID: "1", Recipient: recipient, Body: strings.NewReader("")})
		if !errors.Is(err, maildir.ErrMailbox) {
			t.Errorf("%q: %v", recipient, err)
		}
	}
	if found := files(t, root+"/*"); len(found) != 0 {
		t.Errorf("made %q", found)
	}
}

func TestBodyThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store := at(root)
	_, err := store.Deliver(maildir.Delivery{ID: "1", Recipient: "a@b.example", Body: failingReader{}, Size: 10})
	if err == nil || len(files(t, root+"/b.example/a/*/*")) != 0 {
		t.Errorf("%v, files %q", err, files(t, root+"/b.example/a/*/*"))
	}
}

// A part of a message is no message, nor is one whose daemon may not end it any more.
func TestNoPartOfAMessageGetsIntoAMailbox(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store := at(root)
	over := errors.New("the lease is over")
	for name, c := range map[string]struct {
		size    int64
		confirm func() error
		want    error
	}{
		"cut off":   {size: 5, want: io.ErrUnexpectedEOF},
		"too long":  {size: 3, want: io.ErrUnexpectedEOF},
		"forbidden": {size: 4, confirm: func() error { return over }, want: over},
	} {
		_, err := store.Deliver(maildir.Delivery{
			ID: "1", Recipient: "a@b.example", Body: strings.NewReader("body"), Size: c.size, Confirm: c.confirm,
		})
		if left := files(t, root+"/b.example/a/*/*"); !errors.Is(err, c.want) || len(left) > 0 {
			t.Errorf("%s: %v, files %q", name, err, left)
		}
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

// A user that may write in a mailbox puts a link there in the place of a folder: nothing is written where it leads.
func TestLinkInAMailboxDoesNotLeadOutOfIt(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"b.example", "b.example/a", "b.example/a/new", "b.example/a/tmp"} {
		top := t.TempDir()
		outside := filepath.Join(top, "outside")
		link := filepath.Join(top, "store", filepath.FromSlash(place))
		if err := errors.Join(os.MkdirAll(outside, 0o700), os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(outside, link)); err != nil {
			t.Fatal(err)
		}
		_, err := at(filepath.Join(top, "store")).Deliver(maildir.Delivery{
			ID: "1", Recipient: "a@b.example", Body: strings.NewReader("body"), Size: 4,
		})
		if written := files(t, outside+"/*"); err == nil || len(written) > 0 {
			t.Errorf("a link at %s: %v, files %q", place, err, written)
		}
	}
}
