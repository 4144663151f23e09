//go:build unix

package site_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-broker/parley/internal/measure/site"
)

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func newFolder(t *testing.T) *site.Folder {
	t.Helper()
	f, err := site.NewFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Remove() })
	return f
}

// A folder that is in use stays when another program starts; one that a killed program left goes.
func TestFoldersThatNobodyUsesAreRemoved(t *testing.T) {
	t.Parallel()
	used := newFolder(t)
	if _, err := used.Make("daemon"); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(filepath.Dir(used.Path), "sites-left-behind")
	if err := os.MkdirAll(filepath.Join(left, "target", "cluster"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	newFolder(t)
	if exists(t, left) {
		t.Error("what a killed program left is still there")
	}
	if !exists(t, filepath.Join(used.Path, "daemon")) {
		t.Error("a folder in use was removed")
	}
	if err := used.Remove(); err != nil || exists(t, used.Path) {
		t.Errorf("the folder is still there (%v)", err)
	}
}
