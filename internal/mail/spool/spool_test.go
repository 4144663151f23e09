package spool_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/spool"
)

func requireContent(t *testing.T, body *spool.Body, want string) {
	t.Helper()
	for range 2 {
		got, err := io.ReadAll(body.Reader())
		if err != nil || string(got) != want {
			t.Fatalf("read %d bytes, want %d: %v", len(got), len(want), err)
		}
	}
	if body.Size() != int64(len(want)) {
		t.Errorf("the size is %d, want %d", body.Size(), len(want))
	}
}

func TestBodyStaysInMemoryUpToTheLimit(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := spool.New(folder, 100, 1000)
	body := s.Open()
	var all bytes.Buffer
	for i, size := range []int{60, 40, 1, 70, 5000} {
		piece := bytes.Repeat([]byte{byte('a' + i)}, size)
		all.Write(piece)
		if n, err := body.Write(piece); n != size || err != nil {
			t.Fatal(n, err)
		}
		body.SetHead([]byte("head"))
		requireContent(t, body, "head"+all.String())
		pieces, isWhole := body.Pieces()
		if isWhole != (i < 2) {
			t.Errorf("after piece %d the body is in memory: %v", i, isWhole)
		}
		if isWhole && (string(pieces.Whole()) != "head"+all.String() || pieces.Size() != body.Size()) {
			t.Errorf("after piece %d the body in memory is %q", i, pieces.Whole())
		}
	}
	if s.InMemory() != 100 {
		t.Errorf("%d bytes are in memory", s.InMemory())
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 0 {
		t.Errorf("the folder has %v: %v", entries, err)
	}
	for range 2 {
		if err := body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := body.Write([]byte("x")); !errors.Is(err, spool.ErrClosed) || s.InMemory() != 0 {
		t.Errorf("a closed body took a byte: %v; %d bytes are in memory", err, s.InMemory())
	}
}

func TestMemoryOfAllBodiesIsBounded(t *testing.T) {
	t.Parallel()
	s := spool.New(t.TempDir(), 100, 150)
	first, second := s.Open(), s.Open()
	for _, body := range []*spool.Body{first, second} {
		if _, err := body.Write([]byte(strings.Repeat("x", 100))); err != nil {
			t.Fatal(err)
		}
		requireContent(t, body, strings.Repeat("x", 100))
	}
	if s.InMemory() != 100 {
		t.Errorf("%d bytes are in memory, at most 150 may be", s.InMemory())
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil || s.InMemory() != 0 {
		t.Errorf("%d bytes are left: %v", s.InMemory(), err)
	}
}

func TestBodyGrowsInMemoryInPieces(t *testing.T) {
	t.Parallel()
	body := spool.New(t.TempDir(), 4<<20, 4<<20).Open()
	var all bytes.Buffer
	for i := range 300 {
		piece := bytes.Repeat([]byte{byte(i)}, 1+i*37%9000)
		all.Write(piece)
		if _, err := body.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	requireContent(t, body, all.String())
	pieces, isWhole := body.Pieces()
	if !isWhole || !bytes.Equal(pieces.Whole(), all.Bytes()) {
		t.Errorf("%d bytes in %d pieces are not what was written", pieces.Size(), len(pieces))
	}
	for range 2 {
		if got, err := io.ReadAll(pieces.Reader()); err != nil || !bytes.Equal(got, all.Bytes()) {
			t.Errorf("%d bytes were read: %v", len(got), err)
		}
	}
}

func TestTruncatedBodyIsWrittenAnew(t *testing.T) {
	t.Parallel()
	s := spool.New(t.TempDir(), 10, 1000)
	for _, first := range []string{"short", strings.Repeat("long", 100)} {
		body := s.Open()
		body.SetHead([]byte("h:"))
		for _, text := range []string{first, "second"} {
			if err := body.Truncate(); err != nil {
				t.Fatal(err)
			}
			if _, err := body.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		requireContent(t, body, "h:second")
		if err := body.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFolderThatIsMissingIsReported(t *testing.T) {
	t.Parallel()
	body := spool.New(t.TempDir()+"/missing", 1, 1).Open()
	if _, err := body.Write([]byte("xx")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
