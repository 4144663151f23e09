//go:build unix

package site

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/parley-broker/parley/internal/postgres"
)

const (
	// folderPattern names the folders of this package. They stand beside the cached PostgreSQL programs, where the account that
	// runs PostgreSQL can reach them, and on a disk that keeps what it was asked to sync.
	folderPattern = "sites-*"
	// folderLock is locked by the processes that use the folder, as long as they live.
	folderLock = "lock"
)

// Folder is a place for the data of servers and the logs of daemons, for as long as a program needs it.
type Folder struct {
	Path string
	lock *os.File
}

// NewFolder makes an empty folder, and removes those that killed programs left.
func NewFolder() (*Folder, error) {
	cache, err := postgres.CacheFolder()
	if err != nil {
		return nil, err
	}
	sweep(cache)
	path, err := os.MkdirTemp(cache, folderPattern)
	if err != nil {
		return nil, fmt.Errorf("make a folder for the servers: %w", err)
	}
	f := &Folder{Path: path}
	// PostgreSQL's account has to pass through it.
	if err := os.Chmod(path, 0o711); err != nil {
		return nil, errors.Join(fmt.Errorf("open the folder for the servers: %w", err), f.Remove())
	}
	if f.lock, err = lockFolder(path); err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	return f, nil
}

// Make makes a folder in it, for the program itself.
func (f *Folder) Make(name string) (string, error) {
	path := filepath.Join(f.Path, name)
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", fmt.Errorf("make a folder for the servers: %w", err)
	}
	return path, nil
}

// Remove removes the folder and everything in it.
func (f *Folder) Remove() error {
	if err := os.RemoveAll(f.Path); err != nil {
		return fmt.Errorf("remove the folder of the servers: %w", err)
	}
	if f.lock != nil {
		_ = f.lock.Close()
	}
	return nil
}

// lockFolder takes the lock of a folder. The kernel lets go of it with the process.
func lockFolder(path string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(path, folderLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the folder of the servers: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock the folder of the servers: %w", err)
	}
	return file, nil
}

// sweep removes the folders that nobody uses any more. A folder without a lock file is just being made.
func sweep(cache string) {
	locks, _ := filepath.Glob(filepath.Join(cache, folderPattern, folderLock))
	for _, path := range locks {
		folder := filepath.Dir(path)
		lock, err := lockFolder(folder)
		if err != nil {
			continue
		}
		// Its servers have stopped by themselves, or do so within a second; their files are then gone for good the next time.
		_ = os.RemoveAll(folder)
		_ = lock.Close()
	}
}
