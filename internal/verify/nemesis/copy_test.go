//go:build unix

package nemesis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/postgres/postgrestest"
)

// notCopied are the folders of a cluster whose contents mean something to the running server only.
var notCopied = []string{"pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans"}

// copyTo makes a copy of the running server in a new folder, by its files; as a standby it will follow.
// It takes the server's low-level interface for backups: not every distribution of the server brings pg_basebackup.
func (s *server) copyTo(t testing.TB, name string, asStandby bool) *server {
	t.Helper()
	folder := postgrestest.Folder(t)
	from, to := filepath.Join(s.Folder(), "cluster"), filepath.Join(folder, "cluster")
	conn := connect(t, s.DSN("postgres"))
	defer conn.Close(context.Background())
	must(t, conn, "select pg_backup_start($1, true)", name)
	err := copyFolder(from, to, func(path string) bool {
		return slices.Contains(notCopied, filepath.Dir(path)) || strings.HasPrefix(path, "postmaster.")
	})
	if err != nil {
		t.Fatalf("copy %s: %v", s.name, err)
	}
	label := ask[string](t, conn, "select labelfile from pg_backup_stop(false)")
	if err := copyFolder(filepath.Join(from, "pg_wal"), filepath.Join(to, "pg_wal"), func(string) bool { return false }); err != nil {
		t.Fatalf("copy the log of %s: %v", s.name, err)
	}
	appendTo(t, filepath.Join(to, "backup_label"), label)
	if asStandby {
		appendTo(t, filepath.Join(to, "standby.signal"), "")
		appendTo(t, filepath.Join(to, "postgresql.auto.conf"), fmt.Sprintf("primary_conninfo = 'host=%s port=%d user=postgres application_name=%s'\n",
			s.SocketFolder(), s.Port(), name))
	}
	err = filepath.WalkDir(to, func(path string, _ fs.DirEntry, err error) error { return errors.Join(err, s.Own(path)) })
	if err != nil {
		t.Fatal(err)
	}
	return startServer(t, name, folder)
}

// copyFolder copies the files of a folder that may come, change and go meanwhile; without names those to leave out.
func copyFolder(from, to string, without func(path string) bool) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case without(relative) && entry.IsDir():
			return filepath.SkipDir
		case without(relative):
			return nil
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, relative), 0o700)
		}
		if err := copyFile(path, filepath.Join(to, relative)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

func appendTo(t testing.TB, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}
