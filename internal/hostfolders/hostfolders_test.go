//go:build unix

package hostfolders_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/hostfolders"
)

// place is a permitted folder with a folder beside it, and a file named secret in each.
func place(t *testing.T) (folders *hostfolders.Folders, inside, outside string) {
	t.Helper()
	top := t.TempDir()
	inside, outside = filepath.Join(top, "inside"), filepath.Join(top, "outside")
	for _, folder := range []string{inside, outside} {
		if err := os.MkdirAll(filepath.Join(folder, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "secret"), []byte("of "+filepath.Base(folder)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folders, err := hostfolders.Permit(inside)
	if err != nil {
		t.Fatal(err)
	}
	return folders, inside, outside
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func content(folders *hostfolders.Folders, path string) (string, error) {
	file, err := folders.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	read, err := io.ReadAll(file)
	return string(read), err
}

func TestPathOutsideIsNotPermitted(t *testing.T) {
	t.Parallel()
	folders, inside, outside := place(t)
	none, err := hostfolders.Permit()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		folders *hostfolders.Folders
		path    string
	}{
		{folders, filepath.Join(outside, "secret")},
		{folders, inside + "/../outside/secret"},
		{folders, inside + "2/secret"},
		{folders, "secret"},
		{folders, "/"},
		{none, filepath.Join(inside, "secret")},
		{nil, filepath.Join(inside, "secret")},
	} {
		if err := c.folders.Check("", c.path); !errors.Is(err, hostfolders.ErrNotPermitted) {
			t.Errorf("%s is permitted: %v", c.path, err)
		}
		if _, err := content(c.folders, c.path); !errors.Is(err, hostfolders.ErrNotPermitted) {
			t.Errorf("%s is read: %v", c.path, err)
		}
		if _, err := c.folders.Stat(c.path); !errors.Is(err, hostfolders.ErrNotPermitted) {
			t.Errorf("%s is described: %v", c.path, err)
		}
		if _, err := c.folders.OpenRoot(filepath.Dir(c.path)+"/new", 0o700); !errors.Is(err, hostfolders.ErrNotPermitted) {
			t.Errorf("the folder of %s is opened: %v", c.path, err)
		}
		if _, err := c.folders.Dial(t.Context(), new(net.Dialer), "unix", c.path); !errors.Is(err, hostfolders.ErrNotPermitted) {
			t.Errorf("%s is connected to: %v", c.path, err)
		}
	}
	if err := folders.Check(inside, filepath.Join(inside, "any", "path"), inside+"/"); err != nil {
		t.Error(err)
	}
	if read, err := content(folders, filepath.Join(inside, "secret")); read != "of inside" || err != nil {
		t.Errorf("read %q, %v", read, err)
	}
}

func TestLinkThatLeadsOutIsNotFollowed(t *testing.T) {
	t.Parallel()
	folders, inside, outside := place(t)
	link(t, "../outside", filepath.Join(inside, "folder"))
	link(t, "../outside/secret", filepath.Join(inside, "file"))
	link(t, outside, filepath.Join(inside, "full"))
	link(t, "below", filepath.Join(inside, "within"))
	for _, path := range []string{"folder/secret", "file", "full/secret"} {
		if read, err := content(folders, filepath.Join(inside, path)); err == nil {
			t.Errorf("%s is read: %q", path, read)
		}
		if _, err := folders.Stat(filepath.Join(inside, path)); err == nil {
			t.Errorf("%s is described", path)
		}
	}
	for _, path := range []string{"folder", "folder/new", "full/below"} {
		if _, err := folders.OpenRoot(filepath.Join(inside, path), 0o700); err == nil {
			t.Errorf("%s is opened", path)
		}
	}
	if made, err := os.ReadDir(outside); len(made) != 2 || err != nil {
		t.Errorf("outside is %v, %v", made, err)
	}
	opened, err := folders.OpenRoot(filepath.Join(inside, "within"), 0o700)
	if err != nil {
		t.Fatalf("a link that stays within: %v", err)
	}
	defer func() { _ = opened.Close() }()
	if _, err := opened.Open("../secret"); err == nil {
		t.Error("a folder that was opened leads out of itself")
	}
}

// The folder that the operator gives may be a link of his; the configuration may name it either way.
func TestPermittedFolderMayBeGivenByALink(t *testing.T) {
	t.Parallel()
	_, inside, _ := place(t)
	alias := filepath.Join(t.TempDir(), "alias")
	link(t, inside, alias)
	folders, err := hostfolders.Permit(alias)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{alias, inside} {
		if read, err := content(folders, filepath.Join(folder, "secret")); read != "of inside" || err != nil {
			t.Errorf("read %q, %v", read, err)
		}
	}
}

func TestFolderThatOthersCouldReplaceIsNotPermitted(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	if err := os.MkdirAll(filepath.Join(top, "open", "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(top, "open"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(top, "open", "folder"): "others may write to", filepath.Join(top, "absent"): "make it first",
		filepath.Join(top, "file"): "it is no folder", "folder": "give its full path",
	} {
		if _, err := hostfolders.Permit(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestSocketIsConnectedToInsideAlone(t *testing.T) {
	t.Parallel()
	folders, inside, outside := place(t)
	for _, folder := range []string{inside, outside} {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(folder, "s"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
	}
	link(t, "../outside", filepath.Join(inside, "folder"))
	link(t, "../outside/s", filepath.Join(inside, "link"))
	link(t, "s", filepath.Join(inside, "within"))
	conn, err := folders.Dial(t.Context(), new(net.Dialer), "unix", filepath.Join(inside, "s"))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	for _, path := range []string{"folder/s", "link", "within", "secret", "absent"} {
		if _, err := folders.Dial(t.Context(), new(net.Dialer), "unix", filepath.Join(inside, path)); err == nil {
			t.Errorf("%s is connected to", path)
		}
	}
}
