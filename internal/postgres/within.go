//go:build unix

package postgres

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// The account that runs the server owns the cluster, and may put into it what it likes: a link to a file of root's, a pipe, a second name
// of a file. So what is read and written in a folder is opened by way of that folder, which no link leads out of, and must be a file.

var errNoFile = errors.New("it is no ordinary file")

// openWithin opens a file in the folder that it is in.
func openWithin(path string, flags int, mode os.FileMode) (*os.File, error) {
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	// A pipe must not keep us waiting for a process at its other end.
	file, err := folder.OpenFile(filepath.Base(path), flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, mode)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || !info.Mode().IsRegular() || stat.Nlink > 1 {
			err = &os.PathError{Op: "open", Path: path, Err: errNoFile}
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// readWithin reads a file in the folder that it is in.
func readWithin(path string) ([]byte, error) {
	file, err := openWithin(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// replaceWithin writes a file that belongs to an account, beside the one that it replaces.
func replaceWithin(as account, path, text string) error {
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	name := filepath.Base(path)
	fresh := name + ".new"
	// A file there is of a start that was interrupted, or planted. It is removed, not written to.
	if err := folder.Remove(fresh); err != nil && !os.IsNotExist(err) {
		return err
	}
	file, err := folder.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err == nil && as.switched {
		err = file.Chown(int(as.uid), int(as.gid))
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return folder.Rename(fresh, name)
}
