//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
)

// lockPoll is how often a lock held by another process is tried again.
const lockPoll = 10 * time.Millisecond

// A fileLock is an advisory lock that the kernel drops with the process, however it ends.
//
// Two of them guard a data folder. The start lock is held, alone, only while a process inspects the server,
// starts it or stops it. The users lock is held, shared, by every process that uses the server; one that can take it
// alone is the last. Lock order: start, then users; the users lock is only ever taken under the start lock.
type fileLock struct{ file *os.File }

func openLock(path string) (*fileLock, error) {
	// A process that may open it may lock it, and so prevent starts and stops of the server.
	file, err := openWithin(path, os.O_RDONLY|os.O_CREATE, 0o600)
	if err == nil {
		if info, infoErr := file.Stat(); infoErr == nil && info.Mode().Perm() != 0o600 {
			err = file.Chmod(0o600) // made by an earlier release
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the lock of the data folder: %w", err)
	}
	return &fileLock{file: file}, nil
}

// try takes the lock in a mode (LOCK_SH or LOCK_EX) if it is free for that. A lock held in another mode is
// lost when the answer is no.
func (l *fileLock) try(mode int) (bool, error) {
	for {
		err := syscall.Flock(int(l.file.Fd()), mode|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return false, fmt.Errorf("lock %s: %w", l.file.Name(), err)
		}
	}
}

// wait takes the lock in a mode, waiting for others.
func (l *fileLock) wait(ctx context.Context, mode int) error {
	for {
		ok, err := l.try(mode)
		if ok || err != nil {
			return err
		}
		if err := backoff.Wait(ctx, lockPoll); err != nil {
			return fmt.Errorf("wait for another command on the data folder (%s): %w", l.file.Name(), err)
		}
	}
}

// release drops the lock and keeps the file, to take it again.
func (l *fileLock) release() { _ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN) }

// close drops the lock for good.
func (l *fileLock) close() { _ = l.file.Close() }
