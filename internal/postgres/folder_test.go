//go:build unix

package postgres

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFolderMadeByAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	folder := emptyFolder(t)
	cluster := filepath.Join(folder, "cluster")
	if err := os.Mkdir(cluster, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cluster, "PG_VERSION"), []byte("14\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Config{Data: folder, Version: "16"})
	if err == nil || !strings.Contains(err.Error(), "made by PostgreSQL 14") || !strings.Contains(err.Error(), "--data") {
		t.Errorf("got %v, want both versions and the way out", err)
	}
}

func TestFolderOutOfReachIsRefusedWithTheWayOut(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root hands the server to another user")
	}
	closed := filepath.Join(emptyFolder(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), smallConfig(filepath.Join(closed, "data")))
	if err == nil || !strings.Contains(err.Error(), closed+" is closed to that user") || !strings.Contains(err.Error(), "--data") {
		t.Errorf("got %v, want the closed folder and the way out", err)
	}
}

func TestSocketFolderOfSomebodyElseIsRefused(t *testing.T) {
	t.Parallel()
	f := &folder{sockets: filepath.Join(emptyFolder(t), "socket"), account: account{uid: uint32(os.Geteuid())}}
	if err := f.makeSockets(); err != nil {
		t.Fatal(err)
	}
	if err := f.makeSockets(); err != nil {
		t.Errorf("our own folder is refused the second time: %v", err)
	}
	if err := os.Chmod(f.sockets, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := f.makeSockets(); err == nil {
		t.Error("a folder that everybody may enter is accepted")
	}
	if err := os.RemoveAll(f.sockets); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), f.sockets); err != nil {
		t.Fatal(err)
	}
	if err := f.makeSockets(); err == nil {
		t.Error("a link to somewhere else is accepted")
	}
}

func TestFoldersAreMadeReachableWhateverTheUmask(t *testing.T) {
	t.Parallel()
	base := emptyFolder(t)
	if err := makeFolder(filepath.Join(base, "a", "b"), 0o711); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "a/b"} {
		info, err := os.Stat(filepath.Join(base, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o711 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func TestParseMajor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		major int
		valid bool
	}{
		{"", 0, true},
		{"15", 15, true},
		{"18.3", 18, true},
		{"13", 0, false},
		{"new", 0, false},
		{"-18", 0, false},
	} {
		major, err := parseMajor(c.text)
		if major != c.major || (err == nil) != c.valid {
			t.Errorf("version %q: got %d, %v", c.text, major, err)
		}
	}
}

func TestMemorySettingsFollowTheMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		memory        int64
		sharedBuffers string
	}{
		{128 * megabyte, "65536kB"},
		{8 * gigabyte, "2097152kB"},
		{512 * gigabyte, "8388608kB"},
	} {
		if got := defaultSettings(c.memory)["shared_buffers"]; got != c.sharedBuffers {
			t.Errorf("with %d bytes of memory shared_buffers is %s, want %s", c.memory, got, c.sharedBuffers)
		}
	}
}
