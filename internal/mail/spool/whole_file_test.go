package spool // It cuts a file off that has no name.

import (
	"errors"
	"io"
	"testing"
)

// A spool file that has lost its end is no shorter body.
func TestFileThatLostItsEndCannotBeRead(t *testing.T) {
	t.Parallel()
	body := New(t.TempDir(), 10, 10).Open()
	defer func() { _ = body.Close() }()
	for range 3 {
		if _, err := body.Write([]byte("0123456789")); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := io.ReadAll(body.Reader()); err != nil || len(got) != 30 {
		t.Fatalf("read %d bytes: %v", len(got), err)
	}
	if err := body.file.Truncate(15); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(body.Reader()); !errors.Is(err, errShort) {
		t.Errorf("read %q: %v", got, err)
	}
}
